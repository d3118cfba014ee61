//! The program under test, and requests to it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Longer than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A running server. It ends when it is dropped.
pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) client: reqwest::Client,
    lines: Lines<BufReader<ChildStdout>>,
    child: Child,
}

impl Server {
    /// Returns the program with its data in this directory.
    pub(crate) fn program(data: &Path) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_web_app"));
        program
            .args(["--listen", "127.0.0.1:0", "--data"])
            .arg(data);
        // Not the xterm.js of this machine.
        program.env("XDG_CACHE_HOME", data);
        program
    }

    /// Starts the program with local sandboxes.
    pub(crate) async fn start(data: &Path, options: &[&str]) -> Self {
        let mut program = Self::program(data);
        Self::launch(program.args(["--backend", "local"]).args(options)).await
    }

    pub(crate) async fn launch(program: &mut Command) -> Self {
        let program = program.stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = program.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut server = Self {
            address: String::new(),
            // A server may close a connection after it refused a body.
            client: examples::chat::client()
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
    pub(crate) async fn line(&mut self, part: &str) -> String {
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
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Asks the server to end, and waits for it: it removes what only it uses.
    pub(crate) async fn stop(mut self) {
        let id = self.child.id().unwrap().to_string();
        let signal = Command::new("kill").arg(id).status().await;
        assert!(signal.unwrap().success());
        let ended = tokio::time::timeout(LONG, self.child.wait()).await;
        assert!(ended.expect("it ends").unwrap().success());
    }

    pub(crate) fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://{}{path}", self.address);
        self.client.request(method, url).timeout(LONG)
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.ask(Method::GET, path).send().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        json_body(self.ask(Method::POST, path), body)
            .send()
            .await
            .unwrap()
    }

    pub(crate) async fn put(&self, path: &str, content: impl Into<reqwest::Body>) -> StatusCode {
        let request = self.ask(Method::PUT, path).body(content);
        request.send().await.unwrap().status()
    }

    /// Begins a session. Returns the path of its routes.
    pub(crate) async fn session(&self) -> String {
        let response = self.post("/sessions", &json!({})).await;
        assert_eq!(response.status(), StatusCode::CREATED);
        let session = json_of(response).await;
        format!("/sessions/{}", session["id"].as_str().unwrap())
    }

    /// Runs a command in a session.
    pub(crate) async fn execute(&self, session: &str, command: &str) -> Value {
        let path = format!("{session}/execute");
        let response = self.post(&path, &json!({"command": command})).await;
        assert_eq!(response.status(), StatusCode::OK);
        json_of(response).await
    }

    /// Returns the names in the working directory of a session.
    pub(crate) async fn names(&self, session: &str) -> Vec<String> {
        let response = self.get(&format!("{session}/files")).await;
        assert_eq!(response.status(), StatusCode::OK);
        let listing = json_of(response).await;
        let entries = listing["entries"].as_array().unwrap().iter();
        entries
            .map(|entry| entry["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

pub(crate) fn json_body(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request
        .header("content-type", "application/json")
        .body(body.to_string())
}

pub(crate) async fn json_of(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// Starts a server with new data, which lasts as long as the directory.
pub(crate) async fn server() -> (TempDir, Server) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]).await;
    (data, server)
}
