// The start: theme, tabs, logging in and out, and the stream of events that keeps the page up to date.

import {hasToken, openEvents, Refusal, useToken, whenRefused} from "./api.js";
import {byId, setText} from "./dom.js";
import {forgetLedger, ledgerOpened, startLedger} from "./ledger.js";
import {also, forget, startNow, take} from "./now.js";
import {closeRun, startRuns} from "./runs.js";
import {offerLimits, offerServers, startTrial, stopTrial} from "./trial.js";

const firstPause = 1_000; // milliseconds before the stream is opened again
const longestPause = 15_000;
const silence = 45_000; // milliseconds without a sign of life after which it counts as broken

let following; // ends the stream of events

function startTheme() {
  const select = byId("theme");
  select.value = localStorage.getItem("bulkhead-theme") ?? "";
  const use = () => {
    if (select.value) {
      document.documentElement.dataset.theme = select.value;
    } else {
      delete document.documentElement.dataset.theme;
    }
  };
  select.addEventListener("change", () => {
    localStorage.setItem("bulkhead-theme", select.value);
    use();
  });
  use();
}

function openTab(tab, focus) {
  for (const each of document.querySelectorAll("[role=tab]")) {
    const chosen = each === tab;
    each.setAttribute("aria-selected", String(chosen));
    each.tabIndex = chosen ? 0 : -1;
    byId(each.getAttribute("aria-controls")).hidden = !chosen;
  }
  if (focus) {
    tab.focus();
  }
  if (tab.id === "tab-ledger") {
    ledgerOpened();
  }
}

function startTabs() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => openTab(tab, false));
    tab.addEventListener("keydown", (event) => {
      const to = {ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1}[event.key];
      if (to !== undefined) {
        event.preventDefault();
        openTab(tabs[(to + tabs.length) % tabs.length], true);
      }
    });
  });
}

function showLogIn(message) {
  following?.abort();
  following = undefined;
  useToken("", false);
  forget();
  forgetLedger();
  stopTrial();
  closeRun();
  openTab(byId("tab-now"), false);
  byId("panels").hidden = true;
  byId("log-out").hidden = true;
  byId("log-in").hidden = false;
  setText(byId("connection"), "");
  setText(byId("log-in-error"), message);
  byId("token").focus();
}

function showPanels() {
  const first = byId("panels").hidden;
  byId("log-in").hidden = true;
  byId("panels").hidden = false;
  byId("log-out").hidden = !hasToken();
  byId("token").value = "";
  setText(byId("connection"), "live");
  if (first) {
    byId("main").focus();
  }
}

/** One stream from its beginning to its end. */
async function readStream(signal) {
  const own = new AbortController();
  const end = () => own.abort();
  signal.addEventListener("abort", end);
  let watch = setTimeout(end, silence);
  try {
    for await (const {event, data} of await openEvents(own.signal)) {
      clearTimeout(watch);
      watch = setTimeout(end, silence);
      showPanels();
      take(event, JSON.parse(data));
    }
  } finally {
    clearTimeout(watch);
    signal.removeEventListener("abort", end);
    own.abort();
  }
}

async function follow() {
  following?.abort();
  const mine = new AbortController();
  following = mine;
  let pause = firstPause;
  while (!mine.signal.aborted) {
    try {
      await readStream(mine.signal);
      pause = firstPause;
    } catch (failure) {
      if (failure instanceof Refusal && failure.status === 401) {
        return;
      }
      if (!mine.signal.aborted) {
        setText(byId("connection"), failure instanceof Refusal ? failure.message : "no connection; trying again");
      }
      pause = Math.min(pause * 2, longestPause);
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

function startLogIn() {
  let tried = hasToken();
  whenRefused((refusal) => {
    // The first look, without a token, only asks whether one is needed.
    showLogIn(tried ? refusal.message : "");
    tried = false;
  });
  byId("log-in").addEventListener("submit", (event) => {
    event.preventDefault();
    tried = true;
    setText(byId("log-in-error"), "");
    useToken(byId("token").value.trim(), byId("keep").checked);
    follow();
  });
  byId("log-out").addEventListener("click", () => showLogIn(""));
}

startTheme();
startTabs();
startLogIn();
startRuns();
startLedger();
startTrial();
startNow();
also("servers", offerServers);
also("about", offerLimits);
follow();
