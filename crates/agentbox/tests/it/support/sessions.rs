//! A server whose clients have sessions, and handwritten clients.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A server whose clients have sessions.
pub(crate) struct SessionServer {
    child: Child,
    address: String,
    /// Kept open: the server may write more.
    _said: Lines<BufReader<ChildStderr>>,
}

/// A connected client.
pub(crate) struct SessionClient<'s> {
    server: &'s SessionServer,
    headers: String,
    calls: AtomicU64,
}

impl SessionServer {
    /// Starts a server and waits until it listens.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut before = String::new();
        let address = loop {
            let line = said.next().unwrap_or_else(|| panic!("it ended: {before}"));
            let line = line.unwrap();
            if let Some((_, rest)) = line.split_once("listening on http://") {
                break rest.split("/mcp").next().unwrap().to_owned();
            }
            before.push_str(&line);
        };
        Self {
            child,
            address,
            _said: said,
        }
    }

    fn send(&self, headers: &str, message: &Value) -> (Vec<String>, Value) {
        self.request("POST", headers, &message.to_string())
    }

    /// Sends a request. Returns the lines of the head and the message in the body, or the
    /// body as text if there is none.
    fn request(&self, method: &str, headers: &str, body: &str) -> (Vec<String>, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, length) = (&self.address, body.len());
        // Responses to HTTP/1.0 are not chunked.
        let whole = format!(
            "{method} /mcp HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\
             {headers}\r\n{body}"
        );
        // In one piece: a server that refuses the head does not wait for the body.
        stream.write_all(whole.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        let mut text = String::new();
        for line in lines {
            let data = line.strip_prefix("data:");
            let message = data.and_then(|data| serde_json::from_str::<Value>(data.trim()).ok());
            match message {
                Some(message) if message.get("method").is_none() => return (head, message),
                Some(_) => {}
                None => text.push_str(&line),
            }
        }
        (head, Value::String(text))
    }

    /// Connects a client. `session` is the one that it asks for. Returns the error, or the
    /// status line and the text of the response, if it is refused.
    pub(crate) fn connect(
        &self,
        token: &str,
        session: Option<&str>,
    ) -> Result<SessionClient<'_>, String> {
        let mut headers = format!("Authorization: Bearer {token}\r\n");
        if let Some(session) = session {
            headers.push_str(&format!("Agentbox-Session: {session}\r\n"));
        }
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        }});
        let (head, answer) = self.send(&headers, &hello);
        if let Some(error) = answer.get("error") {
            return Err(error.to_string());
        }
        let header = |line: &String| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("mcp-session-id")
                .then(|| value.to_owned())
        };
        let id = head.iter().find_map(header);
        let refused = || format!("{} {}", head[0], answer.as_str().unwrap_or_default());
        let id = id.ok_or_else(refused)?;
        headers.push_str(&format!("Mcp-Session-Id: {id}\r\n"));
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.send(&headers, &ready);
        Ok(SessionClient {
            server: self,
            headers,
            calls: AtomicU64::new(2),
        })
    }

    /// Kills the server.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the server and waits until it has.
    pub(crate) fn end(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl SessionClient<'_> {
    /// Ends the connection. Returns the status line of the response.
    pub(crate) fn disconnect(self) -> String {
        let (head, _) = self.server.request("DELETE", &self.headers, "");
        head.into_iter().next().unwrap()
    }

    /// Calls a tool. Returns the text of its reply.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> String {
        let params = json!({"name": tool, "arguments": arguments});
        // The server may be about to forget the id of a call that it has answered.
        let id = self.calls.fetch_add(1, Ordering::Relaxed);
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let (head, answer) = self.server.send(&self.headers, &call);
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{head:?} {answer}"))
            .to_owned()
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let written = self.call("write_file", json!({"path": path, "content": content}));
        assert!(!written.starts_with("Error"), "{written}");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        self.call("read_file", json!({"path": path}))
    }
}
