// The pages in headless Chromium: `node browser.mjs PROGRAMS CHROMIUM PACKAGES SHOTS`, with the
// directory of the built web_app and predictive_analytics, the browser, the directory of
// `cargo xtask xterm`, and one for screenshots.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

import { predictiveAnalytics } from "../../../predictive_analytics/tests/browser.mjs";

const [programs, executablePath, packages, shots] = process.argv.slice(2).map((path) => resolve(path));
const { chromium } = createRequire(join(packages, "package.json"))("playwright-core");

/** A name and a text that run a script where they are taken for markup. */
const HOSTILE = `<img src=x onerror="document.title='owned'">.txt`;
const SCRIPT = `<script>document.title='owned'</script><img src=x onerror="document.title='owned'">`;

async function start(program, data, more = [], port = 0) {
  const options = ["--listen", `127.0.0.1:${port}`, "--backend", "local", "--data", data, ...more];
  const child = spawn(join(programs, program), options, { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    const [, url] = line.match(/^open (http:.*)/) ?? [];
    if (url) return { child, url };
  }
  throw new Error("the server did not start");
}

async function stop({ child }) {
  child.kill("SIGKILL");
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

const faults = [];

/** Opens the page as a browser of its own. */
async function visit(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  // Only a fault takes this long, also on a busy machine.
  page.setDefaultTimeout(120_000);
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  await load(page, url);
  return page;
}

async function load(page, url) {
  await page.goto(url);
  await page.waitForSelector("body[data-ready]");
}

async function say(page, text) {
  await page.getByLabel("Message").fill(text);
  await page.keyboard.press("Enter");
}

/** A button of the question that waits. */
const answer = (page, name) => page.locator(".question:not(.answered)").getByRole("button", { name, exact: true });

/** Waits for the end of the turn. */
const answered = (page) => page.waitForSelector("#stop", { state: "hidden" });

/** Waits for a listing with these names. It is fetched after a turn has ended. */
async function lists(page, names) {
  const shown = page.locator("#entries .name");
  for (const name of names) await shown.filter({ hasText: name }).first().waitFor();
  assert.deepEqual(await shown.allTextContents(), names);
}

async function chat(page, other) {
  await say(page, "count these four words");
  await answer(page, "Approve").waitFor();
  await page.screenshot({ path: join(shots, "question.png") });
  // By keyboard: the question's first button comes after the conversation.
  await page.locator("#log").focus();
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  for (let presses = 0; (await focused()) !== "Approve" && presses < 20; presses++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText("The script counts 4.").waitFor();
  await answered(page);
  assert.equal(await page.locator(".card .added").first().textContent(), "+count these four words\n");
  assert.equal(await page.locator(".card .removed").count(), 2);
  await lists(page, ["count.sh", "message.txt"]);
  await other.getByRole("button", { name: "Refresh" }).click();
  await other.getByText("Nothing here yet.").waitFor();
  assert.equal(await other.locator(".card").count(), 0);

  await say(page, "run false");
  await answer(page, "Deny").click();
  await page.getByText("Then I leave it.").waitFor();
  // Escape stops a turn that waits.
  await say(page, "run sleep 1000");
  await answer(page, "Approve").waitFor();
  await page.getByLabel("Message").press("Escape");
  await page.getByText("Stopped.").waitFor();
  await answered(page);
}

/** Output is shown while its command runs: as text, its beginning and its end. */
async function live(page) {
  await say(page, `run printf '%s\\n' '${SCRIPT.replaceAll("'", "'\\''")}'; seq 200000; until [ -e go ]; do sleep 0.1; done`);
  await answer(page, "Approve").click();
  const output = page.locator(".card .live");
  await output.filter({ hasText: "200000" }).waitFor();
  const shown = await output.textContent();
  assert.ok(shown.startsWith(`${SCRIPT}\n1\n2\n`), shown.slice(0, 200));
  assert.ok(shown.length < 50_000, `${shown.length} characters`);
  assert.match(shown, / not shown /);
  await page.screenshot({ path: join(shots, "live.png") });
  await page.setInputFiles("#upload", { name: "go", mimeType: "text/plain", buffer: Buffer.from("") });
  await answered(page);
  assert.equal(await output.count(), 0);
  await say(page, "run rm go");
  await answer(page, "Approve").click();
  await answered(page);
}

async function files(page) {
  await page.getByRole("button", { name: "message.txt" }).click();
  const editor = page.locator("#content");
  await editor.fill("changed\n");
  await editor.press("Control+Enter");
  await page.getByText("Saved.").waitFor();
  await page.screenshot({ path: join(shots, "editor.png") });
  await editor.press("Escape");
  await editor.waitFor({ state: "hidden" });

  await page.setInputFiles("#upload", { name: "upload.txt", mimeType: "text/plain", buffer: Buffer.from("up\n") });
  await page.getByRole("button", { name: "upload.txt" }).waitFor();
  await page.getByRole("button", { name: "upload.txt" }).click();
  const downloading = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download" }).click();
  assert.equal((await downloading).suggestedFilename(), "upload.txt");
  await page.getByRole("button", { name: "Close" }).click();
}

/** Markup in a message, in output and in the name of a file is text. */
async function hostile(page) {
  await say(page, `run printf '%s' '${SCRIPT.replaceAll("'", "'\\''")}'; touch '${HOSTILE.replaceAll("'", "'\\''")}'`);
  await answer(page, "Approve").click();
  await answered(page);
  assert.equal(await page.locator(".output").last().textContent(), SCRIPT);
  await page.locator("#entries .name", { hasText: HOSTILE }).click();
  await page.locator("#edited", { hasText: HOSTILE }).waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  assert.equal(await page.locator("main img, main script").count(), 0);
  assert.equal(await page.title(), "agentbox");
}

async function terminal(page) {
  await page.getByRole("tab", { name: "Files" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.getByText("Shift+Escape leaves").waitFor();
  await page.keyboard.type("echo 'in the'' sandbox'; ls; stty size\n");
  await page.locator(".xterm-rows", { hasText: "in the sandbox" }).waitFor();
  await page.locator(".xterm-rows", { hasText: "count.sh" }).waitFor();
  await page.screenshot({ path: join(shots, "terminal.png") });
  await page.keyboard.press("Shift+Escape");
  assert.equal(await page.evaluate(() => document.activeElement.id), "connect");
}

/** A new session deletes the old one. */
async function begin(page) {
  await page.setInputFiles("#upload", { name: "old.txt", mimeType: "text/plain", buffer: Buffer.from("old\n") });
  await page.getByRole("button", { name: "old.txt" }).waitFor();
  page.once("dialog", (dialog) => dialog.accept());
  await page.getByRole("button", { name: "New session" }).click();
  await page.getByText("Nothing here yet.").waitFor();
}

async function small(browser, url, storageState) {
  const page = await visit(browser, url, { viewport: { width: 390, height: 800 }, colorScheme: "dark", storageState });
  const width = () => page.evaluate(() => document.documentElement.scrollWidth);
  for (const view of ["Chat", "Files", "Terminal"]) {
    await page.getByRole("tab", { name: view }).click();
    await page.getByRole("tabpanel", { name: view }).waitFor();
    assert.equal(await page.getByRole("tabpanel").count(), 1, view);
    assert.ok((await width()) <= 390, `${view} is ${await width()} pixels wide`);
    if (view === "Terminal") await page.locator(".xterm-rows", { hasText: "workspace" }).waitFor();
    await page.screenshot({ path: join(shots, `small-${view.toLowerCase()}.png`) });
  }
  await page.context().close();
}

await mkdir(shots, { recursive: true });
const data = await mkdtemp(join(tmpdir(), "web_app-"));
const startWebApp = (port) => start("web_app", join(data, "web_app"), ["--xterm", packages], port);
let server = await startWebApp();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const [one, other] = [await visit(browser, server.url), await visit(browser, server.url)];
  await chat(one, other);
  await one.screenshot({ path: join(shots, "chat.png") });
  await small(browser, server.url, await one.context().storageState());
  await live(one);
  await files(one);
  await hostile(one);
  await terminal(one);
  await begin(other);
  await one.getByRole("tab", { name: "Files" }).click();

  // A reload, and a server that was killed: the conversation and the files are there.
  const cards = await one.locator(".card:not(.question)").count();
  await load(one, server.url);
  assert.equal(await one.locator(".card").count(), cards - 1, "without the call that was stopped");
  const { port } = new URL(server.url);
  await stop(server);
  faults.length = 0;
  server = await startWebApp(port);
  await load(one, server.url);
  assert.equal(await one.locator(".card").count(), cards - 1);
  await lists(one, [HOSTILE, "count.sh", "message.txt", "upload.txt"]);
  await load(other, server.url);
  await other.getByText("Nothing here yet.").waitFor();
  const tools = { start, stop, visit, load, say, answered };
  await predictiveAnalytics(browser, "predictive_analytics", data, shots, tools);
  assert.deepEqual(faults, []);
  console.log("the pages pass");
} catch (error) {
  const pages = browser.contexts().flatMap((context) => context.pages());
  for (const [at, page] of pages.entries()) await page.screenshot({ path: join(shots, `failed-${at}.png`) });
  console.error(faults);
  throw error;
} finally {
  await browser.close();
  await stop(server);
  await rm(data, { recursive: true });
}
