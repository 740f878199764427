// The second part of the page: a search through the ledger.

import {getJson} from "./api.js";
import {explain} from "./answer.js";
import {byId, cell, duration, el, moment, outcome, setText} from "./dom.js";
import {runButton} from "./runs.js";

const outcomes = {
  runs: ["success", "error", "timeout", "out_of_memory", "cancelled", "unavailable", "session_lost"],
  calls: ["success", "tool_error", "denied", "not_found", "invalid_argument", "server_failed", "timeout", "cancelled",
          "limit"],
};
const heads = {
  runs: ["When", "Run", "Outcome", "Took", "Calls", "Client", "Servers", "Session"],
  calls: ["When", "Run", "Tool", "Outcome", "Took", "Arguments", "Result", "Rule of policy"],
};
const pageSize = 100;

let asked;      // the query of what is shown
let serial = 0; // of the newest search

function offerOutcomes() {
  const select = byId("search").elements.outcome;
  const before = select.value;
  const all = outcomes[byId("search").elements.kind.value];
  select.replaceChildren(el("option", {value: "", text: "any"}),
                         ...all.map((name) => el("option", {value: name, text: name.replaceAll("_", " ")})));
  select.value = all.includes(before) ? before : "";
}

const rowOf = {
  runs: (run) => [
    el("td", {class: "tight"}, moment(run.at)), el("td", {}, runButton(run.run)),
    el("td", {}, outcome(run.outcome), run.error ? el("span", {text: ` ${run.error}`}) : null),
    cell(duration(run.durationMs), "tight"), cell(run.calls), cell(`${run.client} ${run.clientVersion}`),
    cell(run.servers.join(", ")), cell(run.session)],
  calls: (call) => [
    el("td", {class: "tight"}, moment(call.at)), el("td", {}, runButton(call.run)), cell(`${call.server}/${call.tool}`),
    el("td", {}, outcome(call.outcome)), cell(duration(call.durationUs / 1000), "tight"),
    cell(`${call.argumentsBytes} bytes`), cell(`${call.resultBytes} bytes`), cell(call.rule)],
};

async function search(more) {
  const form = byId("search").elements;
  if (!more) {
    asked = {kind: form.kind.value, skip: 0, fields: {}};
    for (const name of ["text", "server", "tool", "outcome", "since"]) {
      if (form[name].value.trim()) {
        asked.fields[name] = form[name].value.trim();
      }
    }
  }
  const query = new URLSearchParams({kind: asked.kind, limit: pageSize, skip: asked.skip, ...asked.fields});
  if (asked.until) {
    query.set("until", asked.until);
  }
  const mine = ++serial;
  setText(byId("records-state"), "Searching…");
  byId("older").disabled = true;
  try {
    const page = await getJson(`ledger?${query}`);
    if (mine === serial) {
      show(page, more);
    }
  } catch (failure) {
    if (mine === serial) {
      setText(byId("records-state"), `The ledger can't be read: ${explain(failure)}`);
    }
  } finally {
    byId("older").disabled = false;
  }
}

function show(page, more) {
  const table = byId("records");
  const body = table.tBodies[0];
  if (!more) {
    table.tHead.replaceChildren(el("tr", {}, ...heads[asked.kind].map((text) => el("th", {scope: "col", text}))));
    body.replaceChildren();
  }
  body.append(...page.records.map((record) => el("tr", {}, ...rowOf[asked.kind](record))));
  asked.until = page.until;
  asked.skip += page.records.length;
  const count = body.children.length;
  table.hidden = count === 0;
  byId("older").hidden = !page.more;
  const told = `${count} ${count === 1 ? "record" : "records"}${page.more ? ", and there are more" : ""}.`;
  setText(byId("records-state"), !page.kept ? "No ledger is kept here: it is switched off."
    : count === 0 ? "Nothing fits." : told);
}

let shown = false;

/** The first look fills the table. */
export function ledgerOpened() {
  if (!shown) {
    shown = true;
    search(false);
  }
}

export function forgetLedger() {
  shown = false;
  ++serial;
  byId("records").tBodies[0].replaceChildren();
  byId("records").tHead.replaceChildren();
  byId("older").hidden = true;
  setText(byId("records-state"), "");
}

export function startLedger() {
  const form = byId("search");
  form.elements.kind.addEventListener("change", offerOutcomes);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    search(false);
  });
  byId("older").addEventListener("click", () => search(true));
  offerOutcomes();
}
