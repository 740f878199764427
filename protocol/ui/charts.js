// Charts of the last hour. Each says in words what it shows, and has its numbers in a table.

import {duration, el, svg} from "./dom.js";

const minutes = 60;
const minute = 60_000;
const wide = 600;
const high = 170;
const left = 46;
const bottom = 20;
const top = 8;

/** Outcomes that have a colour of their own, in the order in which they are stacked. */
const shownOutcomes = ["success", "error", "timeout", "out_of_memory", "cancelled", "other"];

const plotted = high - bottom - top;
const step = (wide - left) / minutes;

function place(at, now) {
  return minutes - 1 - Math.floor((Math.floor(now / minute) * minute - at) / minute);
}

function inTheHour(all, now) {
  return all.map((each) => ({...each, place: place(each.at, now)}))
    .filter((each) => each.place >= 0 && each.place < minutes);
}

function byShown(counts) {
  const result = Object.fromEntries(shownOutcomes.map((name) => [name, 0]));
  for (const [name, count] of Object.entries(counts)) {
    result[name in result ? name : "other"] += count;
  }
  return result;
}

/** A round number that is not less. */
function ceiling(value) {
  for (let unit = 1; ; unit *= 10) {
    for (const factor of [1, 2, 5]) {
      if (unit * factor >= value) {
        return unit * factor;
      }
    }
  }
}

function frame(label, most, textOf) {
  const drawn = svg("svg", {viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": label});
  for (const part of [0, 0.5, 1]) {
    const y = top + plotted * (1 - part);
    drawn.append(svg("line", {class: "grid", x1: left, x2: wide, y1: y, y2: y}),
                 svg("text", {x: left - 6, y: y + 4, "text-anchor": "end", text: textOf(most * part)}));
  }
  for (const ago of [60, 45, 30, 15, 0]) {
    drawn.append(svg("text", {
      x: left + (minutes - ago) * step, y: high - 4,
      "text-anchor": ago === 60 ? "start" : ago === 0 ? "end" : "middle", text: ago === 0 ? "now" : `−${ago} min`}));
  }
  return drawn;
}

function legend(entries) {
  return el("ul", {class: "legend"}, ...entries.map(([name, mark]) =>
    el("li", {}, svg("svg", {viewBox: "0 0 12 12", "aria-hidden": "true"}, mark), name)));
}

const swatch = (kind) => svg("rect", {class: kind, width: 12, height: 12});
const stroke = (kind) => svg("line", {class: kind, x1: 0, x2: 12, y1: 6, y2: 6});

function numbers(container, head, rows) {
  const open = container.querySelector("details")?.open ?? false;
  return el("details", {open}, el("summary", {text: "As a table"}),
            el("div", {class: "scroll", tabindex: 0},
               el("table", {}, el("thead", {}, el("tr", {}, ...head.map((text) => el("th", {scope: "col", text})))),
                  el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((text) => el("td", {text}))))))));
}

const timeOf = (at) => new Date(at).toLocaleTimeString([], {hour: "2-digit", minute: "2-digit"});

export function drawOutcomes(container, all, now) {
  const shown = inTheHour(all, now).map((each) => ({...each, counts: byShown(each.counts)}));
  const totals = byShown({});
  let most = 1;
  for (const each of shown) {
    let sum = 0;
    for (const name of shownOutcomes) {
      totals[name] += each.counts[name];
      sum += each.counts[name];
    }
    most = Math.max(most, sum);
  }
  most = ceiling(most);
  const told = shownOutcomes.filter((name) => totals[name] > 0)
    .map((name) => `${totals[name]} ${name.replaceAll("_", " ")}`);
  const drawn = frame(told.length ? `Runs in the last hour: ${told.join(", ")}` : "No runs in the last hour", most,
                      (value) => Number.isInteger(value) ? value : "");
  for (const each of shown) {
    let y = top + plotted;
    for (const name of shownOutcomes) {
      const height = plotted * each.counts[name] / most;
      y -= height;
      if (height > 0) {
        drawn.append(svg("rect", {class: `s-${name}`, x: left + each.place * step + 1, y, width: step - 2, height}));
      }
    }
  }
  container.replaceChildren(
    drawn,
    legend(shownOutcomes.filter((name) => totals[name] > 0 || name === "success")
      .map((name) => [`${name.replaceAll("_", " ")} ${totals[name]}`, swatch(`s-${name}`)])),
    numbers(container, ["Minute", ...shownOutcomes.map((name) => name.replaceAll("_", " "))],
            shown.map((each) => [timeOf(each.at), ...shownOutcomes.map((name) => each.counts[name])])));
}

export function drawDurations(container, all, now) {
  const shown = inTheHour(all, now);
  const most = ceiling(Math.max(1, ...shown.map((each) => each.high)));
  const newest = shown.at(-1);
  const drawn = frame(
    newest ? `Durations by minute; the newest, of ${timeOf(newest.at)}: median ${duration(newest.median)}, ` +
             `95 percent within ${duration(newest.high)}` : "No runs in the last hour",
    most, (value) => duration(value));
  const yOf = (value) => top + plotted * (1 - value / most);
  for (const [name, line, dot] of [["high", "l-high", "d-high"], ["median", "l-median", "d-median"]]) {
    const points = shown.map((each) => `${left + (each.place + 0.5) * step},${yOf(each[name])}`);
    drawn.append(svg("polyline", {class: line, points: points.join(" ")}),
                 ...shown.map((each) => svg("circle", {
                   class: dot, cx: left + (each.place + 0.5) * step, cy: yOf(each[name]), r: 2.5})));
  }
  container.replaceChildren(
    drawn, legend([["median", stroke("l-median")], ["95 % are within", stroke("l-high")]]),
    numbers(container, ["Minute", "Median", "95 % within"],
            shown.map((each) => [timeOf(each.at), duration(each.median), duration(each.high)])));
}

/** A server's latency as a bar beside its numbers; `most` is the longest that any has. */
export function latencyBar(median, highest, most) {
  const width = (value) => Math.max(1, 100 * Math.sqrt(value / Math.max(most, 1)));
  return el("span", {class: "latency"},
            svg("svg", {viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true"},
                svg("rect", {class: "b-high", y: 1, width: width(highest), height: 8}),
                svg("rect", {class: "b-median", y: 1, width: width(median), height: 8})),
            el("span", {text: `${duration(median)}, ${duration(highest)}`}));
}
