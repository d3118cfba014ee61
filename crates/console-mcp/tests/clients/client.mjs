// Tests a server with the official TypeScript SDK.
//
//     client.mjs --server "COMMAND {dir}" --asking "COMMAND {dir}" --structured "COMMAND {dir}"
//         [--http "COMMAND {dir}"]
//
// {dir} is a new directory. The server of --asking asks before it runs commands or
// writes. The server of --structured has data in its results. The server of --http
// listens and prints its URL on standard error.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

// The SDK is installed in the current directory, not beside the script.
const require = createRequire(join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)).href);
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const types = await load("types.js");

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const FOR_EVER = "echo $$; exec sleep 1000";

const words = (line, directory) => line.split(" ").map((word) => word.replaceAll("{dir}", directory));
const text = (result) => result.content[0].text;
const failure = (result) => result._meta?.["console-tools/failure"];

async function inDirectory(work) {
  const directory = mkdtempSync(join(tmpdir(), "client-"));
  try {
    return await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function connect(line, directory, capabilities = {}, prepare = () => {}) {
  const [command, ...args] = words(line, directory);
  const client = new Client({ name: "test", version: "1" }, { capabilities });
  prepare(client);
  await client.connect(new StdioClientTransport({ command, args, stderr: "inherit" }));
  return client;
}

async function gone(pid) {
  for (let waited = 0; existsSync(`/proc/${pid}`); waited += 20) {
    assert(waited < 20000, `process ${pid} is still there`);
    await sleep(20);
  }
}

const call = (client, name, args, options) =>
  client.callTool({ name, arguments: args }, undefined, options);

async function tools(client) {
  const listed = await client.listTools();
  const read = listed.tools.find((tool) => tool.name === "read_file");
  assert(read.annotations.readOnlyHint && !read.outputSchema);
  assert(listed.tools.some((tool) => tool.name === "execute"));
}

async function files(client) {
  const wrote = await call(client, "write_file", { path: "notes.md", content: "- three\n" });
  assert(!wrote.isError && !wrote.structuredContent);
  const failed = await call(client, "edit_file", { path: "notes.md", old_string: "- four" });
  assert(failure(failed) === "fixable" && text(failed).includes("new_string"));
}

// Data beside the text, which the SDK checks against the schemas.
async function structured(line) {
  await inDirectory(async (directory) => {
    writeFileSync(join(directory, "pixel.png"), Buffer.from(PIXEL, "base64"));
    const client = await connect(line, directory);
    const listed = await client.listTools();
    assert(listed.tools.filter((tool) => tool.outputSchema).length > 5);
    for (const [tool, args] of [
      ["write_file", { path: "notes.md", content: "- three\n" }],
      ["read_file", { path: "notes.md" }],
      ["grep", { pattern: "three", output_mode: "content" }],
      ["edit_file", { path: "notes.md", old_string: "- four", new_string: "" }],
      ["execute", { command: "echo a; exit 3" }],
      ["list_shells", {}],
    ]) {
      const result = await call(client, tool, args);
      assert.equal(result.structuredContent.text, text(result));
    }
    const picture = await call(client, "read_file", { path: "pixel.png" });
    assert.equal(picture.content[1].type, "image");
    assert(!picture.structuredContent);
    await client.close();
  });
}

async function resources(client) {
  const listed = await client.listResources();
  assert(listed.resources.some((resource) => resource.uri === "file:///notes.md"));
  const read = await client.readResource({ uri: "file:///notes.md" });
  assert(read.contents[0].text.includes("- three"));
  const templates = await client.listResourceTemplates();
  assert.equal(templates.resourceTemplates.length, 1);
}

async function picture(client, directory) {
  writeFileSync(join(directory, "pixel.png"), Buffer.from(PIXEL, "base64"));
  const image = (await call(client, "read_file", { path: "pixel.png" })).content[1];
  assert.equal(image.type, "image");
  assert.equal(image.mimeType, "image/png");
  writeFileSync(join(directory, "tiny.pdf"), "%PDF-1.4 tiny");
  const document = (await call(client, "read_file", { path: "tiny.pdf" })).content[1];
  assert.equal(document.resource.mimeType, "application/pdf");
}

async function cancel(client) {
  const controller = new AbortController();
  let told;
  const pid = new Promise((resolve) => (told = resolve));
  const running = call(client, "execute", { command: FOR_EVER }, {
    signal: controller.signal,
    onprogress: ({ message }) => /^\d+$/.test(message ?? "") && told(message),
  });
  const ended = assert.rejects(running);
  const found = await pid;
  controller.abort("enough");
  await ended;
  await gone(found);
  assert.equal(text(await call(client, "execute", { command: "echo alive" })), "alive\n");
}

async function approvals(line) {
  await inDirectory(async (directory) => {
    const asked = [];
    const client = await connect(line, directory, { elicitation: {} }, (client) => {
      client.setRequestHandler(types.ElicitRequestSchema, async ({ params }) => {
        asked.push(params.message);
        const decision = asked.length === 1 ? "allow once" : "deny";
        return { action: "accept", content: { decision } };
      });
    });
    assert.equal(text(await call(client, "execute", { command: "echo approved" })), "approved\n");
    const no = await call(client, "execute", { command: "touch denied" });
    assert(failure(no) === "refused" && text(no).includes("not approved"), JSON.stringify(no));
    assert(asked.length === 2 && asked[0].includes("echo approved"), JSON.stringify(asked));
    assert(!existsSync(join(directory, "denied")));
    await client.close();
    const plain = await connect(line, directory);
    const refused = await call(plain, "execute", { command: "echo x" });
    assert(failure(refused) && text(refused).includes("elicitation"), JSON.stringify(refused));
    await plain.close();
  });
}

async function roots(line) {
  await inDirectory(async (directory) => {
    for (const name of ["in", "out"]) {
      mkdirSync(join(directory, name));
      writeFileSync(join(directory, name, "a.txt"), name);
    }
    const client = await connect(line, directory, { roots: {} }, (client) => {
      client.setRequestHandler(types.ListRootsRequestSchema, async () => ({
        roots: [{ uri: pathToFileURL(join(directory, "in")).href }],
      }));
    });
    assert(!failure(await call(client, "read_file", { path: "in/a.txt" })));
    assert(failure(await call(client, "read_file", { path: "out/a.txt" })));
    await client.close();
  });
}

async function leavesNothing(line) {
  await inDirectory(async (directory) => {
    const client = await connect(line, directory);
    const command = "echo $$ > pid.new; mv pid.new pid; exec sleep 1000";
    await call(client, "run_in_background", { command });
    const wait = "until test -e pid; do sleep 0.01; done; cat pid";
    const pid = text(await call(client, "execute", { command: wait })).trim();
    await client.close();
    await gone(pid);
  });
}

async function everything(client, directory) {
  await tools(client);
  await files(client);
  await resources(client);
  await picture(client, directory);
  await cancel(client);
  await client.close();
}

async function overHttp(line) {
  await inDirectory(async (directory) => {
    const [command, ...args] = words(line, directory);
    const server = spawn(command, args, { stdio: ["ignore", "ignore", "pipe"] });
    try {
      let url;
      for await (const said of createInterface({ input: server.stderr })) {
        if (said.startsWith("http")) {
          url = said.trim();
          break;
        }
      }
      const client = new Client({ name: "test", version: "1" });
      await client.connect(new StreamableHTTPClientTransport(new URL(url)));
      await everything(client, directory);
    } finally {
      server.kill();
    }
  });
}

const option = { type: "string" };
const options = { server: option, asking: option, structured: option, http: option };
const { values } = parseArgs({ options });
await inDirectory(async (directory) => {
  await everything(await connect(values.server, directory), directory);
});
await structured(values.structured);
await approvals(values.asking);
await roots(values.server);
await leavesNothing(values.server);
if (values.http) {
  await overHttp(values.http);
}
console.log("the TypeScript SDK is content");
