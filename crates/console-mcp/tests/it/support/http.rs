//! A server on a local port, and handwritten requests.

use std::net::SocketAddr;
use std::sync::Arc;

use console_mcp::{Connect, HttpSettings, ServeError, Settings, serve_http};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::client::soon;

/// A running server.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Result<(), ServeError>>,
}

impl TestServer {
    pub(crate) async fn start(connect: impl Connect, http: HttpSettings) -> Self {
        Self::new(connect, Settings::default(), http).await
    }

    pub(crate) async fn new(connect: impl Connect, settings: Settings, http: HttpSettings) -> Self {
        let (told, address) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let ready = |address| {
            let _ = told.send(address);
        };
        let shutdown = async { drop(stopped.await) };
        let served = serve_http(Arc::new(connect), settings, http, ready, shutdown);
        let served = tokio::spawn(served);
        Self {
            address: soon(address).await.expect("it listens"),
            stop,
            served,
        }
    }

    /// Stops the server and waits until it has ended.
    pub(crate) async fn stop(self) {
        drop(self.stop);
        soon(self.served).await.unwrap().unwrap();
    }

    /// Returns a client that has initialized.
    pub(crate) async fn client(&self, able: Value) -> HttpClient {
        let mut client = HttpClient::new(self.address);
        let answer = client.initialize(able).await;
        assert!(answer["result"]["protocolVersion"].is_string(), "{answer}");
        client
    }
}

/// A client.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient {
    address: SocketAddr,
    /// Headers sent with every request.
    pub(crate) headers: Vec<(String, String)>,
    next: u64,
}

/// The response to a request.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    body: BufReader<TcpStream>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) async fn text(mut self) -> String {
        let mut text = String::new();
        soon(self.body.read_to_string(&mut text)).await.unwrap();
        text
    }

    /// Returns the next message of the stream.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if soon(self.body.read_line(&mut line)).await.unwrap() == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data:")
                && let Ok(message) = serde_json::from_str(data.trim())
            {
                return Some(message);
            }
        }
    }

    /// Returns the next message of the stream with this method.
    pub(crate) async fn event(&mut self, method: &str) -> Value {
        loop {
            let message = self.message().await.expect("the stream has ended");
            if message["method"] == method {
                return message;
            }
        }
    }

    /// Returns the response at the end of the stream.
    pub(crate) async fn answer(mut self) -> Value {
        loop {
            let message = self.message().await.expect("the stream has ended");
            if message.get("method").is_none() {
                return message;
            }
        }
    }
}

impl HttpClient {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            headers: Vec::new(),
            next: 0,
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers
            .retain(|(key, _)| !key.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends a request with HTTP/1.0, whose responses are not chunked.
    pub(crate) async fn send(&self, method: &str, body: &str) -> Response {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let mut body_of = BufReader::new(stream);
        let mut head = format!(
            "{method} /mcp HTTP/1.0\r\ncontent-length: {}\r\n",
            body.len()
        );
        let own = [
            ("host", "localhost"),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let given = |name: &str| self.headers.iter().any(|(key, _)| key == name);
        let all = own
            .iter()
            .filter(|(name, _)| !given(name))
            .chain(&self.headers);
        for (name, value) in all {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let whole = format!("{head}\r\n{body}");
        // A server that refuses a request may not read all of it.
        let _ = body_of.get_mut().write_all(whole.as_bytes()).await;
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            soon(body_of.read_line(&mut line)).await.unwrap();
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .iter()
            .skip(1)
            .filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        Response {
            status,
            headers: headers.collect(),
            body: body_of,
        }
    }

    pub(crate) async fn post(&self, message: &Value) -> Response {
        self.send("POST", &message.to_string()).await
    }

    pub(crate) async fn begin(&mut self, method: &str, params: Value) -> (u64, Response) {
        self.next += 1;
        let id = self.next;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        (id, self.post(&message).await)
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let (_, response) = self.begin(method, params).await;
        assert_eq!(response.status, 200);
        response.answer().await
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        assert_eq!(self.post(&message).await.status, 202);
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self
            .ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        answer
            .get("result")
            .unwrap_or_else(|| panic!("{answer}"))
            .clone()
    }

    pub(crate) async fn initialize(&mut self, able: Value) -> Value {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": able,
            "clientInfo": {"name": "test", "version": "1"}});
        let (_, response) = self.begin("initialize", params).await;
        assert_eq!(response.status, 200);
        let session = response
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        let answer = response.answer().await;
        *self = self.clone().with("mcp-session-id", &session);
        self.notify("notifications/initialized", json!({})).await;
        answer
    }
}
