//! An MCP server connected by pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// An initialized server. It is killed on drop.
pub(crate) struct Server {
    child: Child,
    /// Open until the server is to end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Server {
    pub(crate) fn start<'a>(
        program: &Path,
        arguments: &[String],
        environment: impl IntoIterator<Item = (&'a str, &'a PathBuf)>,
    ) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()));
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self {
            child,
            input,
            output,
            last: 0,
        };
        let hello = server.request(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "bench", "version": "1" },
            }),
        );
        server.ask(&hello);
        server
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        server
    }

    /// Returns the number of tools.
    pub(crate) fn tools(&mut self) -> usize {
        let request = self.request("tools/list", json!({}));
        let answer = self.ask(&request);
        answer["result"]["tools"].as_array().map_or(0, Vec::len)
    }

    /// Returns the text of the next request.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> String {
        self.last += 1;
        json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }).to_string()
    }

    /// Sends a request and waits for its response. Notifications are skipped.
    pub(crate) fn ask(&mut self, request: &str) -> Value {
        self.send(request);
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "the server has gone; it was asked {request}");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == json!(self.last) {
                return answer;
            }
        }
    }

    fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Closes the server's input, and waits until it has ended what it started.
    pub(crate) fn end(mut self) {
        self.input = None;
        self.child.wait().unwrap();
    }

    /// Returns the peak memory of the process.
    pub(crate) fn peak_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib * 1_024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
