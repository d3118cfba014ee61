//! A service under test as a browser sees it: the built program, over HTTP on loopback.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test stops where it fails"
)]

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Longer than anything here takes.
pub const LONG: Duration = Duration::from_secs(60);

/// A running server. It ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    /// Its host and port.
    pub address: String,
    /// Sends the requests.
    pub client: reqwest::Client,
    lines: Lines<BufReader<ChildStdout>>,
    child: Child,
}

/// The path of a built program.
#[derive(Debug, Clone, Copy)]
pub struct Built(pub &'static str);

impl Built {
    /// Returns the program with its data in this directory, on any free port.
    pub fn program(self, data: &Path) -> Command {
        let mut program = Command::new(self.0);
        program
            .args(["--listen", "127.0.0.1:0", "--data"])
            .arg(data);
        // Not the xterm.js of this machine.
        program.env("XDG_CACHE_HOME", data);
        program
    }

    /// Starts the program with local sandboxes.
    pub async fn start(self, data: &Path, options: &[&str]) -> Server {
        let mut program = self.program(data);
        Server::launch(program.args(["--backend", "local"]).args(options)).await
    }

    /// Starts a server with new data, which lasts as long as the directory.
    pub async fn server(self) -> (TempDir, Server) {
        let data = tempfile::tempdir().unwrap();
        let server = self.start(data.path(), &[]).await;
        (data, server)
    }
}

impl Server {
    /// Starts a program, and waits until it serves.
    pub async fn launch(program: &mut Command) -> Self {
        let program = program.stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = program.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut server = Self {
            address: String::new(),
            // A server may close a connection after it refused a body.
            client: crate::chat::client()
                .no_proxy()
                .pool_max_idle_per_host(0)
                .build()
                .unwrap(),
            lines: BufReader::new(stdout).lines(),
            child,
        };
        let line = server.line("open http://").await;
        server.address = line.trim_start_matches("open http://").to_owned();
        server
    }

    /// Waits for a line that the server prints.
    pub async fn line(&mut self, part: &str) -> String {
        let find = async {
            loop {
                let line = self.lines.next_line().await.unwrap();
                let line = line.expect("the server runs on");
                if line.contains(part) {
                    return line;
                }
            }
        };
        tokio::time::timeout(LONG, find).await.expect(part)
    }

    /// Kills the server, as a crash does.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Asks the server to end, and waits for it: it removes what only it uses.
    pub async fn stop(mut self) {
        let id = self.child.id().unwrap().to_string();
        let signal = Command::new("kill").arg(id).status().await;
        assert!(signal.unwrap().success());
        let ended = tokio::time::timeout(LONG, self.child.wait()).await;
        assert!(ended.expect("it ends").unwrap().success());
    }

    /// Returns a request.
    pub fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://{}{path}", self.address);
        self.client.request(method, url).timeout(LONG)
    }

    /// Sends a request.
    pub async fn get(&self, path: &str) -> Response {
        self.ask(Method::GET, path).send().await.unwrap()
    }

    /// Sends a request with JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Response {
        json_body(self.ask(Method::POST, path), body)
            .send()
            .await
            .unwrap()
    }

    /// Sends a file. Returns the status.
    pub async fn put(&self, path: &str, content: impl Into<reqwest::Body>) -> StatusCode {
        let request = self.ask(Method::PUT, path).body(content);
        request.send().await.unwrap().status()
    }

    /// Begins a session. Returns the path of its routes.
    pub async fn session(&self) -> String {
        let response = self.post("/sessions", &json!({})).await;
        assert_eq!(response.status(), StatusCode::CREATED);
        let session = json_of(response).await;
        format!("/sessions/{}", session["id"].as_str().unwrap())
    }

    /// Checks that the page is locked down and that all parts it names are there. Returns
    /// their paths.
    pub async fn page(&self) -> Vec<String> {
        let page = self.get("/").await;
        assert_eq!(page.status(), StatusCode::OK);
        let header = |name: &str| page.headers()[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        let page = page.text().await.unwrap();
        let parts = page.split('"').filter(|part| part.starts_with('/'));
        let parts: Vec<_> = parts.map(str::to_owned).collect();
        for part in &parts {
            assert_eq!(self.get(part).await.status(), StatusCode::OK, "{part}");
        }
        parts
    }

    /// Runs a command in a session.
    pub async fn execute(&self, session: &str, command: &str) -> Value {
        let path = format!("{session}/execute");
        let response = self.post(&path, &json!({"command": command})).await;
        assert_eq!(response.status(), StatusCode::OK);
        json_of(response).await
    }

    /// Returns the names in the working directory of a session.
    pub async fn names(&self, session: &str) -> Vec<String> {
        let response = self.get(&format!("{session}/files")).await;
        assert_eq!(response.status(), StatusCode::OK);
        let listing = json_of(response).await;
        let entries = listing["entries"].as_array().unwrap().iter();
        entries
            .map(|entry| entry["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Adds JSON to a request.
pub fn json_body(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request
        .header("content-type", "application/json")
        .body(body.to_string())
}

/// Returns the JSON of a response.
pub async fn json_of(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// The stream of a turn.
#[derive(Debug)]
pub struct Turn {
    response: Response,
    rest: Vec<u8>,
    ready: VecDeque<Value>,
    /// The live output of its commands.
    pub output: String,
}

impl Turn {
    /// Says something in a session.
    pub async fn begin(server: &Server, session: &str, text: &str) -> Self {
        let request = server.ask(Method::POST, &format!("{session}/chat"));
        let request = json_body(request, &json!({"text": text}));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Self {
            response,
            rest: Vec::new(),
            ready: VecDeque::new(),
            output: String::new(),
        }
    }

    /// Returns the next event, unless the turn has ended.
    pub async fn next(&mut self) -> Option<Value> {
        while self.ready.is_empty() {
            let chunk = tokio::time::timeout(LONG, self.response.chunk());
            let chunk = chunk.await.expect("an event").unwrap()?;
            self.rest.extend_from_slice(&chunk);
            while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                self.ready.push_back(serde_json::from_slice(&line).unwrap());
            }
        }
        self.ready.pop_front()
    }

    /// Returns the events up to the next question, with text in one piece, or to the end.
    /// Live output, which a quick command may have none of, is added to `output`.
    pub async fn events(&mut self) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        while let Some(event) = self.next().await {
            if event["type"] == "output" {
                self.output.push_str(event["text"].as_str().unwrap());
                continue;
            }
            let is_question = event["type"] == "question";
            match events.last_mut() {
                Some(last) if event["type"] == "text" && last["type"] == "text" => {
                    let [one, other] = [&last["text"], &event["text"]];
                    let both = format!("{}{}", one.as_str().unwrap(), other.as_str().unwrap());
                    last["text"] = both.into();
                }
                _ => events.push(event),
            }
            if is_question {
                break;
            }
        }
        events
    }
}

/// Returns the types of events.
pub fn types(events: &[Value]) -> Vec<&str> {
    let types = events.iter().map(|event| event["type"].as_str().unwrap());
    types.collect()
}
