// Replays the calls of the scripted conversation with the official TypeScript SDK.
//
//     replay.mjs AGENTBOX BACKEND CONFIGS
//
// The input and output are described in crates/console-testkit/examples/replay.rs.

import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// The SDK is installed in the current directory, not beside the script.
const require = createRequire(join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)).href);
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { ElicitRequestSchema } = await load("types.js");

const [agentbox, backend, configs] = process.argv.slice(2);

// Gives the step's answer, and counts the questions.
const person = { answer: null, questions: 0 };

const clients = new Map();
for (const file of readdirSync(configs)) {
  const client = new Client({ name: "replay", version: "1" }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, () => {
    person.questions += 1;
    const decision = person.answer === "yes" ? "allow once" : "deny";
    return { action: "accept", content: { decision } };
  });
  const args = ["mcp", "--config", join(configs, file), "--backend", backend];
  // The daemon's address is in a variable that the SDK does not pass on by default.
  const env = { ...process.env };
  await client.connect(new StdioClientTransport({ command: agentbox, args, env, stderr: "inherit" }));
  clients.set(basename(file, ".toml"), client);
}

const block = (content) =>
  content.type === "resource"
    ? { media_type: content.resource.mimeType, base64: content.resource.blob }
    : { media_type: content.mimeType ?? content.type, base64: content.data ?? "" };

for await (const line of createInterface({ input: process.stdin })) {
  const step = JSON.parse(line);
  Object.assign(person, { answer: step.answer, questions: 0 });
  const call = { name: step.tool, arguments: step.arguments };
  const result = await clients.get(step.conversation).callTool(call, undefined, { timeout: 120_000 });
  const [text, ...blocks] = result.content;
  const answer = {
    text: text.text,
    is_error: result.isError ?? false,
    blocks: blocks.map(block),
    structured: result.structuredContent ?? null,
    questions: person.questions,
  };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
for (const client of clients.values()) {
  await client.close();
}
