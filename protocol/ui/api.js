// The way to the server. The token goes along as a header and never into an address.

const kept = "bulkhead-token";

let token = sessionStorage.getItem(kept) ?? "";
let onRefused = () => {};

export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Tells what to do when the token isn't good (any more). */
export function whenRefused(callback) {
  onRefused = callback;
}

export function useToken(value, keep) {
  token = value;
  if (keep && value) {
    sessionStorage.setItem(kept, value);
  } else {
    sessionStorage.removeItem(kept);
  }
}

export const hasToken = () => token !== "";

async function ask(path, options = {}) {
  const headers = {...options.headers};
  if (token) {
    headers.Authorization = `Bearer ${token}`;
  }
  const answer = await fetch(path, {...options, headers, cache: "no-store", credentials: "omit", redirect: "error",
                                    referrerPolicy: "no-referrer"});
  if (answer.ok) {
    return answer;
  }
  const refusal = new Refusal(answer.status, await reasonOf(answer));
  if (answer.status === 401) {
    onRefused(refusal);
  }
  throw refusal;
}

async function reasonOf(answer) {
  try {
    const body = await answer.json();
    return body.error?.message ?? `the server answered with ${answer.status}`;
  } catch {
    return `the server answered with ${answer.status}`;
  }
}

export async function getJson(path, signal) {
  return (await ask(`api/${path}`, {signal})).json();
}

export async function postJson(path, body = {}) {
  const answer = await ask(`api/${path}`, {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)});
  return answer.json();
}

export async function getBlob(path) {
  return (await ask(`api/${path}`)).blob();
}

/** The events of a stream, as {event, data}, until it ends. */
export async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) {
        return;
      }
      text += value;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const event = readEvent(text.slice(0, end));
        text = text.slice(end + 2);
        if (event.data !== "") {
          yield event;
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function readEvent(block) {
  const event = {event: "message", data: ""};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon);
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") {
      event.event = value;
    } else if (name === "data") {
      event.data += (event.data && "\n") + value;
    }
  }
  return event;
}

export async function openEvents(signal) {
  return eventsOf(await ask("api/events", {signal, headers: {Accept: "text/event-stream"}}));
}

let lastRequest = 0;

/** Calls the tool `run_python` as any MCP client does (2026-07-28); yields messages about it, and the answer last. */
export async function* callRunPython(endpoint, args, signal) {
  const version = "2026-07-28";
  const prefix = "io.modelcontextprotocol/";
  const body = {
    jsonrpc: "2.0", id: ++lastRequest, method: "tools/call",
    params: {
      name: "run_python", arguments: args,
      _meta: {
        [`${prefix}protocolVersion`]: version, [`${prefix}clientCapabilities`]: {},
        [`${prefix}clientInfo`]: {name: "Bulkhead's page", version: "1"}, [`${prefix}logLevel`]: "debug",
      },
    },
  };
  const answer = await ask(endpoint, {
    method: "POST", signal, body: JSON.stringify(body),
    headers: {
      "Content-Type": "application/json", Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "run_python",
    },
  });
  if (answer.headers.get("Content-Type")?.startsWith("text/event-stream")) {
    for await (const event of eventsOf(answer)) {
      yield JSON.parse(event.data);
    }
  } else {
    yield answer.json();
  }
}
