// Makes an MCP client of an official SDK do what a test asks: node driver.mjs sdk1 | sdk2 [auto | REVISION]
//
// One JSON object a line on stdin: {n, op, ...}; each is answered by {n, ok} or {n, error: {code, message}}
// on stdout as soon as it is done, so that operations overlap. `cancel` ends the call that has the number
// `call`. Progress, log and change notifications come as {progress: {...}, call}, {log: {...}} and
// {change: {method, params}}; `answer`, before `connect`, says what the client answers when it is asked, and
// what it was asked comes as {asked: {method, params}}.
import readline from 'node:readline';

const say = (message) => process.stdout.write(JSON.stringify(message) + '\n');

async function makeClient(flavour, mode) {
  const info = { name: `bulkhead-test-${flavour}`, version: '1.0.0' };
  if (flavour === 'sdk1') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const types = await import('@modelcontextprotocol/sdk/types.js');
    const client = new Client(info);
    client.setNotificationHandler(types.LoggingMessageNotificationSchema, (note) => say({ log: note.params }));
    for (const schema of [types.ResourceListChangedNotificationSchema, types.ResourceUpdatedNotificationSchema]) {
      client.setNotificationHandler(schema, ({ method, params }) => say({ change: { method, params } }));
    }
    const schemas = {
      'elicitation/create': types.ElicitRequestSchema,
      'sampling/createMessage': types.CreateMessageRequestSchema,
    };
    return {
      handle: (method, handler) => client.setRequestHandler(schemas[method], handler),
      subscribe: (uri) => client.subscribeResource({ uri }),
      client,
      transport: StdioClientTransport,
      http: StreamableHTTPClientTransport,
      call: (params, options) => client.callTool(params, undefined, options),
      version: (transport) => transport.protocolVersion ?? client.getNegotiatedProtocolVersion?.(),
    };
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const negotiation = !mode ? {} : mode === 'auto' ? { mode } : { mode: { pin: mode } };
  const client = new Client(info, { versionNegotiation: negotiation });
  client.setNotificationHandler('notifications/message', (note) => say({ log: note.params }));
  for (const name of ['notifications/resources/list_changed', 'notifications/resources/updated']) {
    client.setNotificationHandler(name, ({ method, params }) => say({ change: { method, params } }));
  }
  const modern = () => client.getNegotiatedProtocolVersion() >= '2026-07-28';
  return {
    handle: (method, handler) => client.setRequestHandler(method, handler),
    subscribe: async (uri) => {
      if (modern()) {
        const { honoredFilter } = await client.listen({ resourcesListChanged: true, resourceSubscriptions: [uri] });
        return honoredFilter;
      }
      return client.subscribeResource({ uri });
    },
    client,
    transport: StdioClientTransport,
    http: StreamableHTTPClientTransport,
    call: (params, options) => client.callTool(params, options),
    version: () => client.getNegotiatedProtocolVersion(),
  };
}

const { client, transport: Transport, http: HttpTransport, call, version, handle, subscribe } =
  await makeClient(process.argv[2], process.argv[3]);
const calls = new Map();
let transport;

const operations = {
  answer({ capabilities, answers }) {
    client.registerCapabilities(capabilities);
    for (const [method, result] of Object.entries(answers)) {
      handle(method, (request) => {
        say({ asked: { method, params: request.params } });
        return result;
      });
    }
  },
  async connect({ command, args = [], url, token }) {
    transport = url
      ? new HttpTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
      : new Transport({ command, args, stderr: 'inherit' });
    await client.connect(transport);
    return {
      version: version(transport),
      server: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
      instructions: client.getInstructions(),
    };
  },
  ping: () => client.ping(),
  listTools: () => client.listTools(),
  listResources: () => client.listResources(),
  listTemplates: () => client.listResourceTemplates(),
  readResource: ({ uri }) => client.readResource({ uri }),
  listPrompts: () => client.listPrompts(),
  getPrompt: ({ name, arguments: values }) => client.getPrompt({ name, arguments: values }),
  complete: ({ ref, argument }) => client.complete({ ref, argument }),
  subscribe: ({ uri }) => subscribe(uri),
  setLogLevel: ({ level }) => client.setLoggingLevel(level),
  async callTool({ n, name, arguments: values, progress, meta }) {
    const abort = new AbortController();
    calls.set(n, abort);
    const options = { signal: abort.signal, timeout: 300_000, resetTimeoutOnProgress: true };
    if (progress) {
      options.onprogress = (step) => say({ progress: step, call: n });
    }
    try {
      return await call({ name, arguments: values, ...(meta ? { _meta: meta } : {}) }, options);
    } finally {
      calls.delete(n);
    }
  },
  cancel: ({ call: number }) => calls.get(number).abort('test'),
  // Ends the session, where there is one.
  terminate: () => transport.terminateSession?.(),
  close: () => client.close(),
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  Promise.resolve()
    .then(() => operations[request.op](request))
    .then(
      (ok) => say({ n: request.n, ok: ok ?? null }),
      (error) => say({ n: request.n, error: { code: error.code ?? null, message: String(error.message ?? error) } }),
    );
}
