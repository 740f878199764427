// Many clients of an official SDK at once, each of a tenant: node tenants.mjs sdk1 | sdk2 | sdk2-modern <PLAN
//
// PLAN is {url, seconds, clients: [{tenant, token}]}. Each client runs code and kept interpreters, checks every answer
// against what it sent, and now and then vanishes in the middle of a call and comes back. At the end one JSON object
// on stdout: {done, vanished, refused, wrong: [...], failed: [...]}.
import { randomBytes } from 'node:crypto';

const flavour = process.argv[2];
let input = '';
for await (const chunk of process.stdin) input += chunk;
const plan = JSON.parse(input);
const end = Date.now() + plan.seconds * 1000;
const report = { done: 0, vanished: 0, refused: 0, wrong: [], failed: [] };

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

async function connect(token) {
  const client = new sdk.Client({ name: 'tenants', version: '1.0.0' }, sdk.options);
  const headers = { Authorization: `Bearer ${token}` };
  await client.connect(new sdk.Transport(new URL(plan.url), { requestInit: { headers } }));
  return client;
}

const word = () => randomBytes(12).toString('hex');
const overloaded = (error) => /overload|429|runs wait|turn didn't come/.test(String(error.message ?? error));

async function run(client, values, options = {}) {
  const result = await sdk.call(client, { name: 'run_python', arguments: values }, { timeout: 240_000, ...options });
  const answer = result.structuredContent;
  // A run whose turn didn't come is told in its answer.
  if (answer.status === 'unavailable') throw new Error(answer.error?.message ?? JSON.stringify(answer));
  return answer;
}

/// One thing that a client does; answers the client to go on with.
async function step(client, { tenant, token }, state) {
  const mark = `${tenant}:${word()}`;
  const chance = Math.random();
  if (chance < 0.15) {
    // It vanishes while its code runs, without a word.
    const abort = new AbortController();
    const code = `import time\nprint(${JSON.stringify(mark)}, flush=True)\ntime.sleep(5)`;
    const lost = run(client, { code }, { signal: abort.signal }).catch(() => {});
    await new Promise((done) => setTimeout(done, 100 + Math.random() * 900));
    abort.abort('vanished');
    await lost;
    await client.close();
    report.vanished += 1;
    return connect(token);
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
    if (answer.status === 'session_lost') state.session = undefined;
    else if (answer.stdout !== state.kept + '\n') report.wrong.push({ tenant, mark: state.kept, answer });
  }
  report.done += 1;
  return client;
}

async function live(who) {
  const state = {};
  let client = await connect(who.token);
  while (Date.now() < end) {
    try {
      client = await step(client, who, state);
    } catch (error) {
      if (overloaded(error)) {
        report.refused += 1;
        await new Promise((done) => setTimeout(done, 300));
      } else {
        report.failed.push({ tenant: who.tenant, error: String(error.message ?? error).slice(0, 500) });
        client = await connect(who.token);
      }
    }
  }
  await client.close();
}

await Promise.all(plan.clients.map(live));
process.stdout.write(JSON.stringify(report) + '\n');
process.exit(0);
