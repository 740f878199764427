// One run, in a dialogue: what is noted of it, what it wrote, and a way to cancel it.

import {getJson, postJson} from "./api.js";
import {answerView, explain} from "./answer.js";
import {announce, byId, bytes, duration, el, moment, outcome, setText, shortId} from "./dom.js";

let open = "";      // the run that is shown
let seen = "";      // what the stream of events said of it when it was asked for last
let asking = false; // an answer is on its way
let again = false;  // and another is wanted after it

export function runButton(id) {
  return el("button", {type: "button", class: "link", "aria-haspopup": "dialog", title: id, text: shortId(id),
                       onclick: () => openRun(id)});
}

export function openRun(id) {
  open = id;
  seen = "";
  setText(byId("run-title"), `Run ${id}`);
  byId("run-body").replaceChildren();
  byId("run-cancel").hidden = true;
  setText(byId("run-state"), "Loading…");
  if (!byId("run").open) {
    byId("run").showModal();
  }
  byId("run-title").focus();
  load();
}

/** The stream of events told of runs: is the one that is shown another now? */
export function runsChanged(runs) {
  if (!open) {
    return;
  }
  const now = JSON.stringify([...runs.running, ...runs.ended].find((run) => run.run === open) ?? null);
  if (now !== seen) {
    seen = now;
    load();
  }
}

async function load() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  const id = open;
  try {
    const what = await getJson(`runs/${id}`);
    if (id === open) {
      show(what);
    }
  } catch (failure) {
    if (id === open) {
      setText(byId("run-state"), explain(failure));
    }
  } finally {
    asking = false;
    if (again && open) {
      again = false;
      load();
    }
  }
}

function facts(what) {
  const record = what.record ?? {};
  const now = what.now ?? {};
  const rows = [
    ["Asked for", record.at || now.at ? moment(record.at ?? now.at) : undefined],
    ["Client", [now.client ?? record.client, now.clientVersion ?? record.clientVersion].filter(Boolean).join(" ")],
    ["Servers", (now.servers ?? record.servers ?? []).join(", ")],
    ["Session", now.session || record.session],
    ["Took", record.durationMs === undefined ? undefined : duration(record.durationMs)],
    ["Tool calls", record.calls === undefined ? undefined : String(record.calls)],
    ["Code", record.codeBytes ? `${bytes(record.codeBytes)}, SHA-256 ${record.codeSha256}` : undefined],
  ];
  return el("dl", {class: "facts"}, ...rows.filter(([, value]) => value).flatMap(([name, value]) =>
    [el("dt", {text: name}), typeof value === "string" ? el("dd", {text: value}) : el("dd", {}, value)]));
}

function callTable(calls) {
  const row = (call) => el("tr", {}, el("td", {}, moment(call.at)), el("td", {text: `${call.server}/${call.tool}`}),
                           el("td", {}, outcome(call.outcome)), el("td", {text: duration(call.durationUs / 1000)}),
                           el("td", {text: call.rule || ""}));
  const heads = ["When", "Tool", "Outcome", "Took", "Rule of policy"];
  return el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Tool calls"},
            el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((text) => el("th", {scope: "col", text})))),
               el("tbody", {}, ...calls.map(row))));
}

function show(what) {
  const body = byId("run-body");
  const running = what.now?.stage !== undefined && what.now.stage !== "ended";
  byId("run-cancel").hidden = !running;
  byId("run-cancel").disabled = false;
  setText(byId("run-state"), running ? `Now: ${what.now.stage}` : "");
  const parts = [facts(what)];
  if (what.answer) {
    parts.push(...answerView(what.answer));
  } else if (running) {
    parts.push(el("h3", {text: "Written so far, as far as it was told"}),
               el("pre", {tabindex: 0, "aria-label": "output so far", text: what.live ?? ""}));
  } else if (what.record) {
    parts.push(el("p", {}, outcome(what.record.outcome), what.record.error ? ` (${what.record.error})` : ""),
               el("p", {class: "hint", text: "Its output isn't kept here any more."}));
  }
  if (what.record?.code) {
    parts.push(el("h3", {text: "Code"}), el("pre", {tabindex: 0, "aria-label": "code", text: what.record.code}));
  }
  if (what.calls?.length) {
    parts.push(el("h3", {text: "Tool calls"}), callTable(what.calls));
  }
  const place = body.parentElement.scrollTop;
  body.replaceChildren(...parts);
  body.parentElement.scrollTop = place;
}

export async function cancelRun(id, button) {
  button.disabled = true;
  try {
    await postJson(`runs/${id}/cancel`);
    announce(`Run ${shortId(id)} is being cancelled`);
  } catch (failure) {
    announce(`Run ${shortId(id)} can't be cancelled: ${explain(failure)}`);
    button.disabled = false;
  }
}

export function startRuns() {
  const dialog = byId("run");
  byId("run-close").addEventListener("click", () => dialog.close());
  byId("run-cancel").addEventListener("click", () => cancelRun(open, byId("run-cancel")));
  dialog.addEventListener("close", () => {
    open = "";
    byId("run-body").replaceChildren();
  });
}

export function closeRun() {
  byId("run").close();
}
