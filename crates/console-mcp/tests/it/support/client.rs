//! A client that writes its own JSON, and the backends it works on.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::{Backend, Error};
use backend_local::LocalBackend;
use backend_state::StateBackend;
use console_mcp::{Connect, ServeError, Settings, serve_pipes};
use console_tools::{Options, Toolset, ToolsetBuilder};
use permissions::Ruleset;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Nothing here takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Awaits with a timeout.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("took too long")
}

/// Waits until a process is gone.
pub(crate) async fn gone(pid: &str) {
    let mut tail = tokio::process::Command::new("tail");
    tail.args(["--pid", pid, "-s", "0.02", "-f", "/dev/null"])
        .kill_on_drop(true);
    assert!(soon(tail.status()).await.unwrap().success());
}

/// A kind of backend, created anew for each client.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestBackend {
    /// The directory; files in memory if `None`.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) asks: bool,
    pub(crate) ruleset: Option<Ruleset>,
    /// Maximum size of a reply's text, if not the default.
    pub(crate) reply_bytes: Option<usize>,
}

impl TestBackend {
    pub(crate) fn local(directory: &std::path::Path) -> Self {
        Self {
            directory: Some(directory.to_owned()),
            ..Self::default()
        }
    }

    fn builder(&self) -> backend_core::Result<ToolsetBuilder> {
        let backend: Arc<dyn Backend> = match &self.directory {
            Some(directory) => Arc::new(
                LocalBackend::builder(directory)
                    .enable_execute(true)
                    .open()?,
            ),
            None => Arc::new(StateBackend::new()),
        };
        let mut options = Options::default();
        options.image_support = true;
        options.document_support = true;
        options.require_execute_approval = self.asks;
        options.require_write_approval = self.asks;
        if let Some(bytes) = self.reply_bytes {
            options.limits.reply_bytes = bytes;
        }
        let builder = Toolset::builder(backend).options(options);
        Ok(match &self.ruleset {
            Some(ruleset) => builder.ruleset(ruleset.clone()),
            None => builder,
        })
    }
}

#[async_trait]
impl Connect for TestBackend {
    async fn connect(&self, _: &console_mcp::Client) -> backend_core::Result<Toolset> {
        let toolset = self.builder()?.build();
        toolset.map_err(|error| Error::internal(error.to_string()))
    }
}

type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>;

/// A client on a pipe.
pub(crate) struct Client {
    output: WriteHalf<DuplexStream>,
    waiting: Waiting,
    /// Messages the server sends on its own: notifications, questions, and errors that
    /// answer no request.
    pub(crate) events: mpsc::UnboundedReceiver<Value>,
    pub(crate) server: JoinHandle<Result<(), ServeError>>,
    reader: JoinHandle<()>,
    next: u64,
}

impl Client {
    /// Connects without initializing.
    pub(crate) fn raw(connect: impl Connect, settings: Settings) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        let server = tokio::spawn(serve_pipes(Arc::new(connect), settings, input, output));
        let (input, output) = tokio::io::split(ours);
        let waiting = Waiting::default();
        let (told, events) = mpsc::unbounded_channel();
        let answers = Arc::clone(&waiting);
        let reader = tokio::spawn(async move {
            let mut lines = BufReader::new(input).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).expect("the server writes JSON");
                let is_answer = message.get("method").is_none();
                let waiting = is_answer
                    .then(|| answers.lock().unwrap().remove(&message["id"].to_string()))
                    .flatten();
                match waiting {
                    Some(waiting) => drop(waiting.send(message)),
                    None => drop(told.send(message)),
                }
            }
        });
        Self {
            output,
            waiting,
            events,
            server,
            reader,
            next: 0,
        }
    }

    /// Connects and declares its capabilities.
    pub(crate) async fn new(connect: impl Connect, settings: Settings, able: Value) -> Self {
        let mut client = Self::raw(connect, settings);
        let answer = client.initialize(able).await;
        assert!(answer["result"]["instructions"].is_string(), "{answer}");
        client
    }

    /// Connects to a backend, without special capabilities.
    pub(crate) async fn plain(backend: TestBackend) -> Self {
        Self::new(backend, Settings::default(), json!({})).await
    }

    pub(crate) async fn initialize(&mut self, able: Value) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": able, "clientInfo": client,
        });
        let answer = self.ask("initialize", params).await;
        if answer.get("error").is_some() {
            return answer;
        }
        self.notify("notifications/initialized", json!({})).await;
        answer
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.output.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: Value) {
        let mut line = serde_json::to_vec(&message).unwrap();
        line.push(b'\n');
        self.write(&line).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    /// Sends a request. Returns its id and a receiver for the response.
    pub(crate) async fn begin(
        &mut self,
        method: &str,
        params: Value,
    ) -> (u64, oneshot::Receiver<Value>) {
        self.next += 1;
        let (told, answer) = oneshot::channel();
        self.waiting
            .lock()
            .unwrap()
            .insert(self.next.to_string(), told);
        let id = self.next;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        (id, answer)
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let (_, answer) = self.begin(method, params).await;
        soon(answer).await.expect("the server is gone")
    }

    pub(crate) async fn begin_call(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> (u64, oneshot::Receiver<Value>) {
        let meta = json!({"progressToken": format!("token-{}", self.next + 1)});
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        self.begin("tools/call", params).await
    }

    /// Calls a tool and returns its result.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.ask("tools/call", params).await;
        answer
            .get("result")
            .unwrap_or_else(|| panic!("{tool}: {answer}"))
            .clone()
    }

    /// Returns the next message with this method that the server sends on its own.
    pub(crate) async fn event(&mut self, method: &str) -> Value {
        loop {
            let event = soon(self.events.recv()).await.expect("the server is gone");
            if event["method"] == method {
                return event;
            }
        }
    }

    /// Waits until a command prints something.
    pub(crate) async fn printed(&mut self) -> String {
        let event = self.event("notifications/message").await;
        event["params"]["data"].as_str().expect("text").to_owned()
    }

    /// Returns the id and text of the server's next question.
    pub(crate) async fn question(&mut self) -> (Value, String) {
        let event = self.event("elicitation/create").await;
        let text = event["params"]["message"]
            .as_str()
            .expect("a message")
            .to_owned();
        (event["id"].clone(), text)
    }

    pub(crate) async fn answer(&mut self, id: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result}))
            .await;
    }

    /// Closes the input; responses are still read.
    pub(crate) async fn end_input(&mut self) {
        self.output.shutdown().await.unwrap();
    }

    /// Stops reading responses.
    pub(crate) fn stop_reading(&mut self) {
        self.reader.abort();
    }

    /// Disconnects and waits until the server has ended.
    pub(crate) async fn leave(self) {
        let Self {
            output,
            reader,
            server,
            ..
        } = self;
        reader.abort();
        let _ = reader.await;
        drop(output);
        soon(server).await.unwrap().unwrap();
    }
}

/// Returns the text of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("text")
}

pub(crate) fn failed(result: &Value) -> bool {
    result["_meta"]["console-tools/failure"].is_string()
}
