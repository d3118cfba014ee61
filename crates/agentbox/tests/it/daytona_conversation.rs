//! The scripted conversation through `agentbox mcp` in a hosted sandbox, on a stand-in for
//! Daytona. The transcript must equal that of every other backend and client, byte for byte.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use backend_core::sync::lock;
use backend_core::{Backend, BackendExt as _};
use backend_daytona::{AgentBinary, DaytonaSandbox, Mode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use console_testkit::{
    BlockSummary, Call, Client, Environment, Outcome, Script, Transcript, YesNo, play,
};
use serde_json::{Value, json};

use crate::support::hosted::Hosted;
use crate::support::variable;

/// A server for one conversation, and the user in front of it.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    last: u64,
}

impl Server {
    fn start(mut command: Command) -> Self {
        // Warnings are not compared.
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut server = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
            last: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "0"},
        });
        server.ask("initialize", &hello, None);
        server.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Returns the result of a request, and how many questions were answered before it came.
    fn ask(&mut self, method: &str, params: &Value, answer: Option<YesNo>) -> (Value, usize) {
        self.last += 1;
        let id = self.last;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut questions = 0;
        loop {
            let line = self.output.next().expect("the server is gone").unwrap();
            let mut message: Value = serde_json::from_str(&line).unwrap();
            match message["method"].as_str() {
                Some("elicitation/create") => {
                    questions += 1;
                    let is_yes = matches!(answer, Some(YesNo::Yes));
                    let decision = if is_yes { "allow once" } else { "deny" };
                    let result = json!({"action": "accept", "content": {"decision": decision}});
                    let id = &message["id"];
                    self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
                }
                Some(_) => {}
                None if message["id"] == id => return (message["result"].take(), questions),
                None => {}
            }
        }
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// A client with a server for each conversation.
struct Servers(Mutex<BTreeMap<String, Server>>);

#[async_trait]
impl Client for Servers {
    async fn call(&self, call: Call<'_>) -> Outcome {
        let mut servers = lock(&self.0);
        let server = servers.get_mut(call.conversation).unwrap();
        let params = json!({"name": call.tool, "arguments": call.arguments});
        let (result, questions) = server.ask("tools/call", &params, call.answer);
        let content = result["content"].as_array().unwrap();
        let text = content[0]["text"].as_str().unwrap().to_owned();
        let structured = &result["structuredContent"];
        if !structured.is_null() {
            assert_eq!(structured["text"], *text, "the data repeats the text");
        }
        Outcome {
            text,
            is_error: result["isError"] == true,
            blocks: content[1..].iter().map(summary).collect(),
            structured: structured.get("data").cloned(),
            questions,
        }
    }
}

/// Summarizes a picture or a document.
fn summary(block: &Value) -> BlockSummary {
    let (media_type, data) = match block["type"].as_str() {
        Some("resource") => (&block["resource"]["mimeType"], &block["resource"]["blob"]),
        _ => (&block["mimeType"], &block["data"]),
    };
    let data = STANDARD.decode(data.as_str().unwrap()).unwrap();
    BlockSummary::new(media_type.as_str().unwrap(), &data)
}

/// Writes the setup of a conversation as a config file of the program.
fn write_config(hosted: &Hosted, script: &Script, mode: &str) {
    for setup in &script.conversations {
        let mut config = toml::Table::try_from(&setup.capability).unwrap();
        // The client decides who approves calls.
        config.remove("approver");
        let mcp = json!({"structured": true, "mark_failures": true});
        let daytona = json!({"mode": mode});
        for (key, table) in [("mcp", mcp), ("daytona", daytona)] {
            let table = toml::Table::try_from(table).unwrap();
            config.insert(key.to_owned(), table.into());
        }
        let name = format!("{}.toml", setup.name);
        hosted.dir.file(&name, &toml::to_string(&config).unwrap());
    }
}

/// Plays the conversation: each of its parts has a server of its own, and all use one sandbox.
fn converse(mode: &str, agent: Option<AgentBinary>) {
    let hosted = Hosted::new();
    let script = Script::bundled().unwrap();
    write_config(&hosted, &script, mode);
    let builder = DaytonaSandbox::builder()
        .account(hosted.account())
        .name("conversation")
        // The home holds other files.
        .working_dir("/home/daytona/conversation")
        .mode(Mode::Portable);
    let sandbox: Arc<dyn Backend> = Arc::new(builder.build().unwrap());
    hosted.runtime.block_on(script.seed(&*sandbox)).unwrap();
    let environment = Environment::of(&*sandbox);
    let start = |name: &str| {
        let config = format!("{name}.toml");
        let arguments = ["mcp", "--backend", "daytona:attach=conversation"];
        let mut command = hosted.command_with(&config, &arguments);
        if let Some(agent) = &agent {
            command.env("SANDBOX_AGENT", agent.path());
        }
        (name.to_owned(), Server::start(command))
    };
    let servers = script.conversations.iter().map(|setup| start(&setup.name));
    let servers = Servers(Mutex::new(servers.collect()));
    let played = play(&servers, &script, &environment);
    let played = hosted.runtime.block_on(played);
    for server in servers.0.into_inner().unwrap().into_values() {
        server.end();
    }
    let mut expected = Transcript::expected().for_environment(&script, &environment);
    for entry in &mut expected.entries {
        without_data_beside_blocks(&mut entry.text);
    }
    assert_eq!(played.difference(&expected), None);
    let left = hosted.runtime.block_on(sandbox.list_dir(".")).unwrap();
    assert_eq!(left.entries, [], "every file was removed again");
}

/// A reply with blocks has no structured data, because some clients would then show the model
/// nothing else.
fn without_data_beside_blocks(text: &mut String) {
    if text.lines().any(|line| line.starts_with("block: ")) {
        let lines = text.split_inclusive('\n');
        *text = lines.filter(|line| !line.starts_with("data: ")).collect();
    }
}

#[test]
fn the_conversation_in_portable_mode() {
    converse("portable", None);
}

#[test]
#[ignore = "needs the agent; run by cargo xtask test-all"]
fn the_conversation_by_the_agent() {
    let agent = AgentBinary::new(variable("SANDBOX_AGENT")).unwrap();
    converse("agent", Some(agent));
}
