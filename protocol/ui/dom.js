// Making and updating elements. Text from elsewhere gets into the page by `textContent` alone.

const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The text with what could hide or turn around its rest written out: control characters, marks of direction. */
export function visible(text) {
  return String(text).replace(unseen, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** An element; attributes but `text`, `class` and `on…` are set as they are, and those without a value left out. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) {
      continue;
    }
    if (name === "text") {
      made.textContent = visible(value);
    } else if (name.startsWith("on")) {
      made.addEventListener(name.slice(2), value);
    } else {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

export const byId = (id) => document.getElementById(id);

export function setText(element, text) {
  const shown = visible(text);
  if (element.textContent !== shown) {
    element.textContent = shown;
  }
}

/**
 * Makes the rows of a table's body those of the items, in their order. A row that stays keeps its elements, and with
 * them the focus.
 */
export function syncRows(body, items, keyOf, make) {
  const old = new Map([...body.children].map((row) => [row.dataset.key, row]));
  let before = body.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const shown = JSON.stringify(item);
    let row = old.get(key);
    old.delete(key);
    if (!row) {
      row = el("tr");
      row.dataset.key = key;
    }
    if (row.dataset.shown !== shown) {
      row.dataset.shown = shown;
      updateCells(row, make(item));
    }
    if (row === before) {
      before = before.nextElementSibling;
    } else {
      body.insertBefore(row, before);
    }
  }
  for (const row of old.values()) {
    row.remove();
  }
}

/** A cell whose button says the same as before stays as it is. */
function updateCells(row, cells) {
  cells.forEach((cell, index) => {
    const old = row.children[index];
    if (!old) {
      row.append(cell);
    } else if (old.outerHTML !== cell.outerHTML) {
      old.replaceWith(cell);
    }
  });
}

export const cell = (text, kind) => el("td", {text, class: kind});

export function outcome(name) {
  return el("span", {class: `outcome ${/^[a-z_]+$/.test(name) ? name : ""}`, text: name.replaceAll("_", " ")});
}

export function duration(milliseconds) {
  if (milliseconds < 1000) {
    return `${milliseconds < 10 ? Math.round(milliseconds * 10) / 10 : Math.round(milliseconds)} ms`;
  }
  if (milliseconds < 60_000) {
    return `${(milliseconds / 1000).toFixed(milliseconds < 10_000 ? 1 : 0)} s`;
  }
  const minutes = Math.floor(milliseconds / 60_000);
  return minutes < 120 ? `${minutes} min ${Math.floor((milliseconds % 60_000) / 1000)} s`
                       : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function bytes(count) {
  return count < 1024 ? `${count} bytes`
    : count < 1024 * 1024 ? `${(count / 1024).toFixed(1)} KiB` : `${(count / 1024 / 1024).toFixed(1)} MiB`;
}

export function moment(milliseconds) {
  const date = new Date(milliseconds);
  const today = new Date().toDateString() === date.toDateString();
  return el("time", {datetime: date.toISOString(), title: date.toISOString(),
                     text: today ? date.toLocaleTimeString() : date.toLocaleString()});
}

export const shortId = (id) => id.slice(0, 12);

/** What a screen reader is to say; the newest replaces what it hasn't said yet. */
export function announce(text) {
  setText(byId("announcer"), text);
}
