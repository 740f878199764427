// Runs pieces of JavaScript that come line by line on stdin, each with `page` and `context` (Playwright's) at hand, and
// answers with what they return, one line each. Console messages of the page and its errors go along.

import {createInterface} from "node:readline";

import {chromium} from "playwright-core";

const [executable, ...flags] = process.argv.slice(2);
const browser = await chromium.launch({executablePath: executable, args: flags, headless: true});
let context;
let page;
let heard = [];

async function open(options) {
  await context?.close();
  heard = []; // what an earlier page said concerns nobody any more
  context = await browser.newContext(options);
  page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && heard.push(message.text()));
  page.on("pageerror", (failure) => heard.push(String(failure)));
  return null;
}

const AsyncFunction = (async () => {}).constructor;

for await (const line of createInterface({input: process.stdin})) {
  const {open: options, run, given} = JSON.parse(line);
  let answer;
  try {
    const ok = options ? await open(options)
      : await new AsyncFunction("page", "context", "given", run)(page, context, given);
    answer = {ok: ok ?? null};
  } catch (failure) {
    answer = {error: String(failure.stack ?? failure)};
  }
  process.stdout.write(`${JSON.stringify({...answer, heard})}\n`);
  heard = [];
}
await browser.close();
