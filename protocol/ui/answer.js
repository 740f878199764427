// What a run left, shown: its output, its result, its files.

import {getBlob, Refusal} from "./api.js";
import {bytes, duration, el, outcome} from "./dom.js";

const imageTypes = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const shownImage = 4 * 1024 * 1024;

/** The path below api/ of a resource's URI; nothing for another. */
export function pathOf(uri) {
  const found = /^bulkhead:\/\/(output|artifacts)\/([0-9a-f]{32})\/([^/?#]+)$/.exec(uri ?? "");
  return found ? `${found[1] === "output" ? "outputs" : "artifacts"}/${found[2]}/${found[3]}` : "";
}

function stream(title, text, cut) {
  if (!text && !cut?.uri) {
    return [];
  }
  const parts = [el("h3", {text: title}), el("pre", {tabindex: 0, "aria-label": title, text: text ?? ""})];
  if (cut?.omittedBytes) {
    parts.push(el("p", {class: "hint", text: `${bytes(cut.omittedBytes)} of ${bytes(cut.totalBytes)} aren't shown` +
                                            (cut.notKept ? `; kept are ${bytes(cut.keptBytes ?? 0)}: ${cut.notKept}`
                                                         : "")}));
  }
  if (pathOf(cut?.uri)) {
    parts.push(el("p", {}, downloadButton(pathOf(cut.uri), `${title}.txt`, `Download all of ${title}`)));
  }
  return parts;
}

function downloadButton(path, name, label) {
  const problem = el("span", {class: "problem", role: "alert"});
  const button = el("button", {type: "button", text: label});
  button.addEventListener("click", async () => {
    button.disabled = true;
    problem.textContent = "";
    try {
      saveAs(await getBlob(path), name);
    } catch (failure) {
      problem.textContent = ` ${explain(failure)}`;
    } finally {
      button.disabled = false;
    }
  });
  return el("span", {}, button, problem);
}

export function explain(failure) {
  return failure instanceof Refusal ? failure.message : "the server can't be reached";
}

function saveAs(blob, name) {
  // Whatever it is, it is saved, never opened as a page of this server's.
  const url = URL.createObjectURL(new Blob([blob], {type: "application/octet-stream"}));
  el("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

function file(artifact) {
  const path = pathOf(artifact.uri);
  const row = el("li", {}, el("span", {text: `${artifact.name} (${artifact.mimeType}, ${bytes(artifact.bytes)}) `}));
  if (path) {
    row.append(downloadButton(path, artifact.name, "Download"));
  }
  if (path && imageTypes.has(artifact.mimeType) && artifact.bytes <= shownImage) {
    showImage(row, artifact, path);
  }
  return row;
}

async function showImage(row, artifact, path) {
  try {
    const blob = await getBlob(path);
    const url = URL.createObjectURL(new Blob([blob], {type: artifact.mimeType}));
    const image = el("img", {src: url, alt: `The image ${artifact.name}`});
    image.addEventListener("load", () => URL.revokeObjectURL(url));
    image.addEventListener("error", () => {
      URL.revokeObjectURL(url);
      image.remove();
    });
    row.append(image);
  } catch {
    // It is gone; the download says so.
  }
}

const asText = (value) => typeof value === "string" ? value : JSON.stringify(value, null, 2);

/** The elements that show a run's structured content. */
export function answerView(answer) {
  const cut = answer.truncated ?? {};
  const parts = [el("p", {}, outcome(answer.status ?? "unknown"),
                    answer.durationMs === undefined ? "" : ` in ${duration(answer.durationMs)}`,
                    answer.exitCode === undefined ? "" : `, exit code ${answer.exitCode}`)];
  if (answer.error) {
    parts.push(el("h3", {text: "Error"}),
               el("pre", {tabindex: 0, "aria-label": "Error",
                          text: answer.error.traceback ?? `${answer.error.code ?? answer.error.type ?? "error"}: ` +
                                                          (answer.error.message ?? "")}));
    if (answer.error.traceback && answer.error.code) {
      parts.push(el("p", {text: `${answer.error.code}: ${answer.error.message ?? ""}`}));
    }
  }
  parts.push(...stream("stdout", answer.stdout, cut.stdout), ...stream("stderr", answer.stderr, cut.stderr));
  if (answer.result !== undefined) {
    parts.push(el("h3", {text: "result"}),
               el("pre", {tabindex: 0, "aria-label": "result", text: asText(answer.result)}));
  }
  if (answer.artifacts?.length) {
    parts.push(el("h3", {text: "Files"}), el("ul", {class: "files"}, ...answer.artifacts.map(file)));
  }
  if (!answer.stdout && !answer.stderr && answer.result === undefined && !answer.error && !answer.artifacts?.length) {
    parts.push(el("p", {class: "empty", text: "It wrote nothing."}));
  }
  return parts;
}
