// Many clients of an official SDK at once, each of a tenant: node tenants.mjs sdk1 | sdk2 | sdk2-modern <PLAN
//
// PLAN is a line, {url, timeout, restarts, clients: [{tenant, token}]}. Each client runs code and kept interpreters,
// checks every answer against what it sent, and now and then vanishes in the middle of a call and comes back, for the
// answer, too, where its era can. They end when stdin does. With `restarts` the server may go and come back at any
// time: calls may be cut then, but not wait for more than the timeout (milliseconds), and the client goes on. A line "answers N"
// on stdout tells how far it is; the last line is an object: {done, vanished, resumed, refused, cut, lost, kinds,
// wrong: [...], failed: [...]}, `kinds` being the words of what was cut, and how often.
import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';

const flavour = process.argv[2];
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const plan = JSON.parse((await lines.next()).value);
let over = false;
lines.next().then(() => (over = true));
const report = {
  done: 0, vanished: 0, resumed: 0, refused: 0, cut: 0, lost: 0, kinds: {}, wrong: [], failed: [],
};

const sdk =
  flavour === 'sdk1'
    ? {
        Client: (await import('@modelcontextprotocol/sdk/client/index.js')).Client,
        Transport: (await import('@modelcontextprotocol/sdk/client/streamableHttp.js')).StreamableHTTPClientTransport,
        options: {},
        call: (client, params, options) => client.callTool(params, undefined, options),
      }
    : {
        Client: (await import('@modelcontextprotocol/client')).Client,
        Transport: (await import('@modelcontextprotocol/client')).StreamableHTTPClientTransport,
        options: flavour === 'sdk2-modern' ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {},
        call: (client, params, options) => client.callTool(params, options),
      };

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

async function connect(token, sessionId) {
  const client = new sdk.Client({ name: 'tenants', version: '1.0.0' }, sdk.options);
  const headers = { Authorization: `Bearer ${token}` };
  // Where a stream breaks off, the SDKs leave the call that waits for it to its timeout.
  client.broken = new Promise((_, reject) => (client.onerror = reject));
  client.broken.catch(() => {});
  client.stream = new sdk.Transport(new URL(plan.url), { requestInit: { headers }, sessionId });
  await client.connect(client.stream);
  return client;
}

/// Also while the server is away, for two minutes.
async function connected({ token }) {
  for (const until = Date.now() + 120_000; ; await pause(200)) {
    try {
      return await connect(token);
    } catch (error) {
      if (!isCut(error) || Date.now() > until) throw error;
    }
  }
}

const word = () => randomBytes(12).toString('hex');
const words = (error) => [error.message ?? error, error.cause?.code, error.cause?.message].filter(Boolean).join(' ');
const overloaded = (error) => /overload|429|runs wait|turn didn't come/.test(words(error));
/// What a server that goes or comes back may do to a call: no connection, one that ends, a session that is no more.
const isCut = (error) =>
  plan.restarts &&
  /fetch failed|terminated|ECONNREFUSED|ECONNRESET|other side closed|disconnected|Connection closed|404|503|stopp/.test(
    words(error),
  );

async function run(client, values, options = {}) {
  const call = sdk.call(client, { name: 'run_python', arguments: values }, { timeout: plan.timeout, ...options });
  const result = await (plan.restarts ? Promise.race([call, client.broken]) : call);
  const answer = result.structuredContent;
  // A run whose turn didn't come is told in its answer.
  if (answer.status === 'unavailable') throw new Error(answer.error?.message ?? JSON.stringify(answer));
  return answer;
}

/// It vanishes while its code runs, and comes back for the answer, to the place on the stream where it was.
async function resume(client, who, mark) {
  const code = `import time\nprint(${JSON.stringify(mark)}, flush=True)\ntime.sleep(1)`;
  const params = { name: 'run_python', arguments: { code } };
  let resumptionToken;
  const began = new Promise((done) => {
    const options = { timeout: plan.timeout, onresumptiontoken: (token) => done((resumptionToken = token)) };
    sdk.call(client, params, options).then(done, done);
  });
  await Promise.race([began, client.broken]);
  const session = client.stream.sessionId;
  await client.close();
  if (!resumptionToken) return connected(who); // it was put off, or answered at once
  const again = await connect(who.token, session);
  const answer = (await Promise.race([sdk.call(again, params, { timeout: plan.timeout, resumptionToken }), again.broken]))
    .structuredContent;
  if (answer.stdout !== mark + '\n') report.wrong.push({ tenant: who.tenant, mark, answer });
  report.resumed += 1;
  return again;
}

/// One thing that a client does; answers the client to go on with. The first two clients begin by what is rare.
async function step(client, who, state) {
  const { tenant } = who;
  const mark = `${tenant}:${word()}`;
  const rare = who.begun ? undefined : [0.14, 0.04][plan.clients.indexOf(who)];
  const chance = rare ?? Math.random();
  who.begun = true;
  if (chance < 0.05 && flavour !== 'sdk2-modern') return resume(client, who, mark);
  if (chance < 0.15) {
    // It vanishes while its code runs, without a word.
    const abort = new AbortController();
    const code = `import time\nprint(${JSON.stringify(mark)}, flush=True)\ntime.sleep(5)`;
    const lost = run(client, { code }, { signal: abort.signal }).catch(() => {});
    await pause(100 + Math.random() * 900);
    abort.abort('vanished');
    await lost;
    await client.close();
    report.vanished += 1;
    return connected(who);
  }
  if (chance < 0.55) {
    const answer = await run(client, { code: `print(${JSON.stringify(mark)})` });
    if (answer.stdout !== mark + '\n') report.wrong.push({ tenant, mark, answer });
  } else if (!state.session) {
    const answer = await run(client, { code: `kept = ${JSON.stringify(mark)}`, session: 'new' });
    if (answer.status !== 'success') throw new Error(JSON.stringify(answer));
    Object.assign(state, { session: answer.session, kept: mark });
  } else {
    const answer = await run(client, { code: 'print(kept)', session: state.session });
    if (answer.status === 'session_lost') {
      state.session = undefined;
      report.lost += 1;
    } else if (answer.stdout !== state.kept + '\n') report.wrong.push({ tenant, mark: state.kept, answer });
  }
  report.done += 1;
  process.stdout.write(`answers ${report.done}\n`);
  return client;
}

async function live(who) {
  const state = {};
  let client = await connected(who);
  while (!over) {
    try {
      client = await step(client, who, state);
    } catch (error) {
      if (overloaded(error)) {
        report.refused += 1;
        await pause(300);
        continue;
      }
      const text = words(error).slice(0, 300);
      if (isCut(error)) {
        report.cut += 1;
        report.kinds[text] = (report.kinds[text] ?? 0) + 1;
      } else {
        report.failed.push({ tenant: who.tenant, error: text });
      }
      await client.close().catch(() => {});
      client = await connected(who);
    }
  }
  await client.close().catch(() => {});
}

await Promise.all(plan.clients.map(live));
process.stdout.write(JSON.stringify(report) + '\n', () => process.exit(0));
