// The first part of the page: what goes on now. It is told piece by piece by the stream of events.

import {getJson} from "./api.js";
import {drawDurations, drawOutcomes, latencyBar} from "./charts.js";
import {announce, byId, cell, duration, el, moment, outcome, setText, shortId, syncRows} from "./dom.js";
import {cancelRun, runButton, runsChanged} from "./runs.js";

const everyCalls = 15_000; // milliseconds between two looks at the newest calls
const tellers = {};
const nothing = {about: undefined, runs: {running: [], ended: []}, pool: undefined, sessions: [], servers: [],
                 charts: []};
const state = {...nothing};
let skew = 0; // milliseconds that the server's clock is ahead of ours
let callsOf = new Map();
let callsAsked = 0;

export const about = () => state.about;
export const servers = () => state.servers;
export const serverTime = () => Date.now() + skew;

function tile(name, value, more) {
  return el("div", {}, el("dt", {text: name}), el("dd", {text: value}, more ? el("small", {text: ` ${more}`}) : null));
}

function drawTiles() {
  const {runs, pool, sessions, charts} = state;
  const waits = runs.running.filter((run) => run.stage === "queued").length;
  let done = 0;
  let good = 0;
  for (const each of charts.filter((one) => one.at > serverTime() - 3_600_000)) {
    for (const [name, count] of Object.entries(each.counts)) {
      done += count;
      good += name === "success" ? count : 0;
    }
  }
  const made = [
    tile("Running", runs.running.length - waits, state.about ? `of ${state.about.concurrentRuns}` : ""),
    tile("Waiting", waits),
    tile("Sandboxes ready", pool?.waiting ?? 0, pool?.ceiling ? `of at most ${pool.ceiling}` : "no pool"),
    tile("Sessions", sessions.length, state.about ? `of ${state.about.sessions}` : ""),
    tile("Runs in the last hour", done, done ? `${Math.round(100 * good / done)} % fine` : ""),
  ];
  byId("tiles").replaceChildren(...made);
}

function cancelButton(run) {
  const button = el("button", {type: "button", text: "Cancel", "aria-label": `Cancel run ${shortId(run.run)}`});
  button.addEventListener("click", () => cancelRun(run.run, button));
  return button;
}

const clientOf = (run) => [run.client, run.clientVersion].filter(Boolean).join(" ") || "—";

function drawRuns() {
  const {running, ended} = state.runs;
  // What was written since is for the dialogue.
  const shown = running.map(({written, ...run}) => run);
  syncRows(byId("running").tBodies[0], shown, (run) => run.run, (run) => {
    const since = el("td", {class: "tight"});
    since.dataset.since = run.at;
    return [el("td", {}, runButton(run.run)), cell(run.stage, "tight"), since, cell(clientOf(run)),
            cell(run.servers.join(", ")), cell(run.calls), cell(run.session), el("td", {}, cancelButton(run))];
  });
  byId("running-empty").hidden = running.length > 0;
  byId("running").hidden = running.length === 0;
  syncRows(byId("ended").tBodies[0], ended, (run) => run.run, (run) => [
    el("td", {}, runButton(run.run)),
    el("td", {}, outcome(run.outcome), run.error ? el("span", {text: ` ${run.error}`}) : null),
    cell(duration(run.durationMs), "tight"), el("td", {class: "tight"}, moment(run.endedAt)), cell(clientOf(run)),
    cell(run.servers.join(", ")), cell(run.session)]);
  byId("ended-empty").hidden = ended.length > 0;
  byId("ended").hidden = ended.length === 0;
  drawTimes();
}

function drawTimes() {
  for (const each of document.querySelectorAll("[data-since]")) {
    setText(each, duration(Math.max(0, Math.floor((serverTime() - Number(each.dataset.since)) / 1000) * 1000)));
  }
}

/** Says which runs began and ended, but not at the first look. */
function tellChanges(before, after) {
  if (!before) {
    return;
  }
  const known = new Set(before.running.map((run) => run.run));
  const told = [...after.running.filter((run) => !known.has(run.run)).map((run) => `Run ${shortId(run.run)} began`),
                ...after.ended.filter((run) => known.has(run.run)).map(
                  (run) => `Run ${shortId(run.run)} ended: ${run.outcome.replaceAll("_", " ")}`)];
  if (told.length > 3) {
    announce(`${told.length} runs began or ended`);
  } else if (told.length > 0) {
    announce(told.join(". "));
  }
}

function quantile(sorted, part) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

/** How the newest calls went, by server. */
async function lookAtCalls() {
  if (!state.about?.ledger || Date.now() - callsAsked < everyCalls) {
    return;
  }
  callsAsked = Date.now();
  const {records} = await getJson("ledger?kind=calls&limit=200&since=1d");
  const found = new Map();
  for (const call of records) {
    const of = found.get(call.server) ?? {times: [], failed: 0};
    of.times.push(call.durationUs / 1000);
    of.failed += call.outcome === "success" ? 0 : 1;
    found.set(call.server, of);
  }
  callsOf = new Map([...found].map(([name, {times, failed}]) => {
    times.sort((a, b) => a - b);
    return [name, {count: times.length, failed, median: quantile(times, 0.5), high: quantile(times, 0.95)}];
  }));
  drawServers();
}

function drawServers() {
  const most = Math.max(0, ...[...callsOf.values()].map((of) => of.high));
  const shown = state.servers.map((server) => ({...server, calls: callsOf.get(server.name), most}));
  syncRows(byId("servers").tBodies[0], shown, (server) => server.name, (server) => [
    el("td", {}, el("strong", {text: server.name}),
       server.description ? el("div", {class: "hint", text: server.description}) : null),
    el("td", {class: "tight"}, el("span", {
      class: `outcome ${server.state === "ready" ? "success" : server.state === "failed" ? "failed" : "cancelled"}`,
      text: server.state})),
    cell(server.tools || "", "tight"), cell(server.calls?.count ?? "", "tight"),
    cell(server.calls?.failed ?? "", "tight"),
    el("td", {}, server.calls ? latencyBar(server.calls.median, server.calls.high, most) : null),
    cell(server.lastError)]);
  byId("servers-empty").hidden = shown.length > 0;
  byId("servers").hidden = shown.length === 0;
  setText(byId("servers-hint"), state.about?.ledger === false
    ? "Calls aren't counted here: the ledger is switched off." : "Calls are the newest 200 of the last day.");
}

function drawSessions() {
  syncRows(byId("sessions").tBodies[0], state.sessions, (session) => session.session, (session) => [
    cell(session.session), cell(session.busy ? "runs code" : "idle"),
    el("td", {class: "tight"}, session.usedAt ? moment(session.usedAt) : "—"), cell(session.servers.join(", "))]);
  byId("sessions-empty").hidden = state.sessions.length > 0;
  byId("sessions").hidden = state.sessions.length === 0;
}

function drawCharts() {
  drawOutcomes(byId("outcomes"), state.charts, serverTime());
  drawDurations(byId("durations"), state.charts, serverTime());
}

let shownBefore = false;

const drawers = {
  time: (now) => {
    skew = now - Date.now();
  },
  about: (value) => {
    setText(byId("tenant"), value.tenant);
    document.title = `Bulkhead · ${value.tenant}`;
    drawTiles();
    drawServers();
  },
  runs: (value, before) => {
    tellChanges(shownBefore ? before : undefined, value);
    shownBefore = true;
    drawRuns();
    drawTiles();
    runsChanged(value);
    lookAtCalls().catch(() => {});
  },
  pool: drawTiles,
  sessions: () => {
    drawSessions();
    drawTiles();
  },
  servers: drawServers,
  charts: () => {
    drawCharts();
    drawTiles();
  },
};

/** A piece of the state, as the stream of events or a snapshot tells it. */
export function take(name, value) {
  if (!(name in drawers)) {
    return;
  }
  const before = state[name];
  state[name] = value;
  drawers[name](value, before);
  tellers[name]?.(value);
}

/** Has another part of the page told of a piece, too. */
export function also(name, callback) {
  tellers[name] = callback;
}

export function forget() {
  shownBefore = false;
  callsOf = new Map();
  callsAsked = 0;
  Object.assign(state, nothing);
  for (const draw of [drawTiles, drawRuns, drawServers, drawSessions, drawCharts]) {
    draw();
  }
  setText(byId("tenant"), "");
  document.title = "Bulkhead";
}

export function startNow() {
  setInterval(drawTimes, 1000);
  setInterval(() => state.about && drawCharts(), 20_000);
}
