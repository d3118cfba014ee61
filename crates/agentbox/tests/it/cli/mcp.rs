//! `mcp`.

use std::fs::Permissions;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::TestDir;

#[test]
fn what_cannot_be_served_is_said_before_anybody_connects() {
    let dir = TestDir::new();
    dir.run(&["mcp", "--token-file", "token"])
        .code(64)
        .complains("--http");
    for (address, instead) in [
        ("8124", "127.0.0.1:8124"),
        ("localhost:8124", "127.0.0.1:8124"),
        ("here", "127.0.0.1:8000"),
    ] {
        let ended = dir.run(&["mcp", "--http", address]).code(64);
        let said = format!("not a valid address; write {instead}");
        assert!(ended.err.contains(&said), "{}", ended.err);
    }
    let lost = &[
        "mcp",
        "--http",
        "127.0.0.1:0",
        "--token-file",
        "no/where/token",
    ];
    // As for every directory that is not there.
    dir.run(lost).code(3).complains("no directory no/where");
    assert!(!dir.path("no").exists());
    let open = &["mcp", "--http", "0.0.0.0:0", "--no-token"];
    dir.run(open).code(64).complains("need a token");
    dir.file(
        "config.toml",
        "[mcp]\ntoken_file = \"a\"\nno_token = true\n",
    );
    let both = &["mcp", "--http", "127.0.0.1:0", "--config", "config.toml"];
    dir.run(both).code(64).complains("exclude each other");
    let kept = &["mcp", "--http", "127.0.0.1:0", "--token-file", "token"];
    let token = dir.file("token", "short\n");
    for (mode, about) in [
        (0o644, "chmod 600"),
        (0o620, "chmod 600"),
        (0o601, "chmod 600"),
        (0o600, "16"),
    ] {
        std::fs::set_permissions(&token, Permissions::from_mode(mode)).unwrap();
        dir.run(kept).code(64).complains(about);
    }
    dir.run(&["mcp", "--backend", "local:none"])
        .code(3)
        .complains("mkdir");
    dir.run(&["mcp", "--permissions", "none.toml"])
        .code(64)
        .complains("none.toml");
}

/// A minimal client.
pub(crate) struct Client {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    last: u64,
    /// The server's text for the model.
    instructions: String,
}

impl Client {
    fn start(dir: &TestDir, flags: &[&str]) -> Self {
        Self::greet(dir.command(&[&["mcp"], flags].concat()))
    }

    /// Starts a server and initializes.
    pub(crate) fn greet(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut client = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
            last: 0,
            instructions: String::new(),
        };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        });
        let server = client.asks("initialize", hello);
        assert_eq!(server["serverInfo"]["name"], "agentbox");
        client.instructions = server["instructions"].as_str().unwrap().to_owned();
        client.says(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn says(&mut self, message: Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Returns the result of a request. Other messages are skipped.
    pub(crate) fn asks(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.says(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = self.output.next().expect("the server is gone").unwrap();
            let message: Value = serde_json::from_str(&line).expect("nothing but JSON");
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    fn calls(&mut self, tool: &str, arguments: Value) -> Value {
        self.asks("tools/call", json!({"name": tool, "arguments": arguments}))
    }
}

#[test]
fn a_client_gets_the_tools_that_were_asked_for() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("work")).unwrap();
    let flags = ["--backend", "local:work", "--edit-format", "hashline"];
    let mut client = Client::start(&dir, &flags);
    let tools = client.asks("tools/list", json!({}))["tools"].take();
    let tool = |name: &str| {
        tools
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == name)
    };
    assert!(tool("hashline_edit") && tool("execute") && tool("move_file"));
    assert!(!tools.to_string().contains("outputSchema"), "{tools}");
    assert!(!tool("edit_file"));
    let done = client.calls("write_file", json!({"path": "a", "content": "one"}));
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(done.get("structuredContent"), None, "{done}");
    assert_eq!(dir.read("work/a"), "one");
    // Commands need no approval unless rules say so.
    let done = client.calls("execute", json!({"command": "cat a"}));
    assert!(
        done["content"][0]["text"].as_str().unwrap().contains("one"),
        "{done}"
    );
    // The server ends when the client disconnects.
    drop(client.input.take());
    assert!(client.child.wait().unwrap().success());
}

#[test]
fn a_client_is_told_about_other_directories() {
    let dir = TestDir::new();
    for name in ["work", "more"] {
        dir.file(&format!("{name}/a.txt"), name);
    }
    let here = dir.path("").canonicalize().unwrap();
    let [work, more] = ["work", "more"].map(|name| here.join(name).display().to_string());
    let mut alone = Client::start(&dir, &["--backend", "local:work"]);
    assert!(
        !alone.instructions.contains(&work),
        "{}",
        alone.instructions
    );
    let flags = ["--backend", "local:work", "--allow-dir", "more"];
    let mut client = Client::start(&dir, &flags);
    let told = format!(
        "The file tools reach these directories: `{work}`, `{more}`. Relative paths start in \
         `{work}`."
    );
    assert!(
        client.instructions.ends_with(&told),
        "{}",
        client.instructions
    );
    let listed = client.calls("ls", json!({"path": "/"}));
    let text = listed["content"][0]["text"].as_str().unwrap();
    let readable = format!("readable: {work}, {more}");
    assert!(text.contains(&readable), "{text}");
    for client in [&mut alone, &mut client] {
        drop(client.input.take());
        assert!(client.child.wait().unwrap().success());
    }
}

#[test]
fn a_client_gets_data_and_errors_if_that_is_configured() {
    let dir = TestDir::new();
    dir.file(
        "config.toml",
        "[mcp]\nstructured = true\nmark_failures = true\n",
    );
    let by_file = ["--backend", "state", "--config", "config.toml"];
    let by_flag = ["--backend", "state", "--structured", "--mark-failures"];
    for flags in [by_file, by_flag] {
        let mut client = Client::start(&dir, &flags);
        let tools = client.asks("tools/list", json!({}))["tools"].take();
        assert!(tools.to_string().contains("outputSchema"), "{tools}");
        let missing = client.calls("read_file", json!({"path": "a"}));
        assert_eq!(missing["isError"], true, "{missing}");
        let text = &missing["content"][0]["text"];
        assert_eq!(missing["structuredContent"]["text"], *text, "{missing}");
        drop(client.input.take());
        assert!(client.child.wait().unwrap().success());
    }
}

#[test]
fn rules_count_for_a_client() {
    let dir = TestDir::new();
    let mut client = Client::start(&dir, &["--backend", "state", "--permissions", "readonly"]);
    let tools = client.asks("tools/list", json!({}))["tools"].take();
    assert_eq!(tools.as_array().unwrap().len(), 4, "{tools}");
    let refused = client.calls("write_file", json!({"path": "a", "content": ""}));
    let class = &refused["_meta"]["console-tools/failure"];
    assert_eq!(*class, "refused", "{refused}");
    drop(client.input.take());
    assert!(client.child.wait().unwrap().success());
}

#[test]
fn a_model_uses_a_terminal_as_the_guide_shows() {
    let page = include_str!("../../../../../docs/tools.md");
    let mark = "<!-- replayed by the tests of the program: a terminal -->\n```text\n";
    let (_, rest) = page.split_once(mark).unwrap();
    let (block, _) = rest.split_once("\n```\n").unwrap();
    let dir = TestDir::new();
    let flags = ["--backend", "local:.", "--permissions", "permissive"];
    let mut client = Client::start(&dir, &flags);
    for step in block.split("\n\n> ") {
        let (call, expected) = step.split_once('\n').unwrap();
        let (tool, arguments) = call.trim_start_matches("> ").split_once(' ').unwrap();
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let mut text = || {
            let reply = client.calls(tool, arguments.clone());
            reply["content"][0]["text"].as_str().unwrap().to_owned()
        };
        let mut last = text();
        // The screen may have been read too early. Each read waits for more.
        while tool == "read_output" && last != expected {
            let next = text();
            assert_ne!(next, last, "{call} should say\n{expected}");
            last = next;
        }
        if tool == "run_in_background" {
            assert!(
                last.ends_with(expected.split_once('\n').unwrap().1),
                "{last}"
            );
        } else {
            assert_eq!(last, expected, "{call}");
        }
    }
}

#[test]
fn a_signal_ends_the_server_and_its_commands() {
    let dir = TestDir::new();
    let mut client = Client::start(&dir, &["--backend", "local:.", "--structured"]);
    let started = client.calls("run_in_background", json!({"command": "sleep 1000"}));
    let pid = started["structuredContent"]["data"]["pid"].as_i64();
    let pid = pid.unwrap_or_else(|| panic!("{started}"));
    let server = Pid::from_child(&client.child);
    kill_process(server, Signal::TERM).unwrap();
    assert!(client.child.wait().unwrap().success());
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

/// A server that listens.
struct Listening {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
    address: String,
    /// The line about its token.
    about_token: String,
}

impl Listening {
    fn start(dir: &TestDir, flags: &[&str]) -> Self {
        let serve = ["mcp", "--backend", "state", "--http", "127.0.0.1:0"];
        let mut child = dir.start(&[&serve, flags].concat());
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = said.next().unwrap().unwrap();
        let address = line.split("http://").nth(1).unwrap();
        Self {
            address: address.split("/mcp").next().unwrap().to_owned(),
            about_token: said.next().unwrap().unwrap(),
            child,
            said,
        }
    }

    /// Returns the status line of the response to a request.
    fn ask(&self, method: &str, headers: &str) -> String {
        let address = &self.address;
        let mut stream = TcpStream::connect(address).unwrap();
        let params = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"0"}}"#;
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let length = body.len();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut status = String::new();
        BufReader::new(stream).read_line(&mut status).unwrap();
        status
    }

    /// Ends the server. Returns the rest of its messages.
    fn end(mut self) -> Vec<String> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        assert!(self.child.wait().unwrap().success());
        self.said.map(Result::unwrap).collect()
    }
}

#[test]
fn http_is_served_until_a_signal() {
    let dir = TestDir::new();
    let token = dir.file("token", "0123456789abcdef\n");
    std::fs::set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
    let server = Listening::start(&dir, &["--token-file", "token", "--log", "info"]);
    let token = "Authorization: Bearer 0123456789abcdef\r\n";
    assert!(server.ask("initialize", "").contains("401"));
    assert!(server.ask("initialize", token).contains("200"));
    let newer = format!("{token}MCP-Protocol-Version: 2026-07-28\r\n");
    assert!(server.ask("server/discover", &newer).contains("400"));
    // A client that tries a newer protocol first causes no warning.
    let rest = server.end();
    assert!(rest.iter().all(|line| !line.contains("WARN")), "{rest:?}");
}

#[test]
fn a_server_that_listens_makes_a_token_and_prints_it() {
    let dir = TestDir::new();
    let token_of = |server: &Listening| {
        let said = server.about_token.split("Bearer ").nth(1).unwrap();
        let token = said.split('\'').next().unwrap().to_owned();
        assert!(token.len() >= 32, "{}", server.about_token);
        token
    };
    let server = Listening::start(&dir, &[]);
    let token = token_of(&server);
    assert!(server.ask("initialize", "").contains("401"));
    let header = format!("Authorization: Bearer {token}\r\n");
    assert!(server.ask("initialize", &header).contains("200"));
    server.end();
    // Each start has a new token.
    let server = Listening::start(&dir, &[]);
    assert_ne!(token_of(&server), token);
    assert!(server.ask("initialize", &header).contains("401"));
    server.end();
    // There is no token only if that is asked for.
    let server = Listening::start(&dir, &["--no-token"]);
    assert!(server.about_token.contains("every user and program"));
    assert!(server.ask("initialize", "").contains("200"));
    // Pages of this machine get no special treatment.
    let page = "Origin: http://localhost:8080\r\n";
    assert!(server.ask("initialize", page).contains("403"));
    server.end();
    let page_only = ["--no-token", "--origin", "http://localhost:8080"];
    let server = Listening::start(&dir, &page_only);
    assert!(server.ask("initialize", page).contains("200"));
    server.end();
}

#[test]
fn a_token_file_that_is_missing_is_made_and_kept() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("keys")).unwrap();
    let flags = ["--token-file", "keys/token"];
    let server = Listening::start(&dir, &flags);
    assert!(
        server.about_token.contains("a new token is in"),
        "{}",
        server.about_token
    );
    let token = dir.read("keys/token");
    assert!(
        !server.about_token.contains(token.trim()),
        "it is in a file"
    );
    let about = std::fs::metadata(dir.path("keys/token")).unwrap();
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    let header = format!("Authorization: Bearer {}\r\n", token.trim());
    assert!(server.ask("initialize", &header).contains("200"));
    server.end();
    let server = Listening::start(&dir, &flags);
    assert!(server.ask("initialize", &header).contains("200"));
    assert!(server.ask("initialize", "").contains("401"));
    server.end();
    assert_eq!(dir.read("keys/token"), token);
    // The directory that `mcp-config` names is created.
    let usual = dir.path("home/.config/agentbox/token");
    Listening::start(&dir, &["--token-file", usual.to_str().unwrap()]).end();
    assert!(usual.is_file());
}
