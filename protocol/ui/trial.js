// The third part of the page: a box to try code. It is an MCP client like any other, so that what is tried is bound by
// the same admission, limits and policy.

import {callRunPython} from "./api.js";
import {answerView, explain} from "./answer.js";
import {byId, el, setText, shortId} from "./dom.js";
import {about} from "./now.js";
import {runButton} from "./runs.js";

const mostLive = 65_536; // characters of live output that are kept

let going; // stops what is tried

export function offerServers(servers) {
  const box = byId("try-servers");
  const chosen = new Set([...box.querySelectorAll("input:checked")].map((input) => input.value));
  const names = servers.map((server) => server.name);
  if (box.dataset.names === JSON.stringify(names)) {
    return;
  }
  box.dataset.names = JSON.stringify(names);
  box.hidden = names.length === 0;
  box.replaceChildren(el("legend", {text: "Servers that it may call"}), ...servers.map((server) =>
    el("label", {class: "choice"},
       el("input", {type: "checkbox", value: server.name, checked: chosen.has(server.name)}),
       el("span", {text: server.alias === server.name ? server.name : `${server.name} (mcp_${server.alias})`}))));
}

export function offerLimits(value) {
  const field = byId("try-timeout");
  field.max = value.maxTimeout;
  field.placeholder = String(value.timeout);
}

function argumentsOf() {
  const result = {code: byId("code").value};
  const servers = [...byId("try-servers").querySelectorAll("input:checked")].map((input) => input.value);
  const session = byId("try-session").value;
  if (servers.length) {
    result.servers = servers;
  }
  if (byId("try-timeout").value) {
    result.timeout = Number(byId("try-timeout").value);
  }
  if (session) {
    result.session = session;
  }
  return result;
}

/** The session that an answer names is offered for the next run. */
function offerSession(handle) {
  const select = byId("try-session");
  if (handle && ![...select.options].some((option) => option.value === handle)) {
    // Its name here says nothing: the handle opens it.
    select.append(el("option", {value: handle, text: `session ${select.options.length - 1}`}));
    select.value = handle;
  }
}

function lookAtMessage(message, live) {
  const data = message.params?.data;
  if (message.method !== "notifications/message" || data?.event !== "output") {
    return;
  }
  if (!live.run) {
    live.run = data.run;
    byId("try-result").prepend(el("p", {}, "Run ", runButton(data.run)));
    setText(byId("try-state"), `Run ${shortId(data.run)} goes on…`);
  }
  live.text = (live.text + data.text + "\n").slice(-mostLive);
  setText(live.box, live.text);
}

async function run() {
  if (going) {
    return;
  }
  going = new AbortController();
  byId("try-run").disabled = true;
  byId("try-stop").disabled = false;
  setText(byId("try-state"), "It waits for a place, or runs…");
  const live = {text: "", run: "", box: el("pre", {tabindex: 0, "aria-label": "output so far"})};
  byId("try-result").replaceChildren(live.box);
  try {
    let answer;
    for await (const message of callRunPython(about()?.mcp ?? "../mcp", argumentsOf(), going.signal)) {
      if (message.result || message.error) {
        answer = message;
      } else {
        lookAtMessage(message, live);
      }
    }
    finish(answer);
  } catch (failure) {
    setText(byId("try-state"), failure.name === "AbortError" ? "Stopped." : `It didn't run: ${explain(failure)}`);
  } finally {
    going = undefined;
    byId("try-run").disabled = false;
    byId("try-stop").disabled = true;
  }
}

function finish(answer) {
  if (!answer || answer.error) {
    setText(byId("try-state"), `It didn't run: ${answer?.error.message ?? "the connection broke"}`);
    return;
  }
  const content = answer.result.structuredContent;
  setText(byId("try-state"), `Ended: ${content.status.replaceAll("_", " ")}`);
  byId("try-result").replaceChildren(...answerView(content));
  offerSession(content.session);
}

export function stopTrial() {
  going?.abort();
  byId("try-result").replaceChildren();
  setText(byId("try-state"), "");
  byId("try-session").replaceChildren(...[...byId("try-session").options].slice(0, 2));
}

export function startTrial() {
  byId("try-form").addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  byId("code").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      byId("try-form").requestSubmit();
    }
  });
  byId("try-stop").addEventListener("click", () => going?.abort());
}
