//! [`JsonLines`]: one JSON message per line, of bounded length.
//!
//! A message that is too long or not JSON is answered with an error, and reading
//! continues with the next line.

use std::io;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::Mutex;

/// Size of the read buffer.
const READ_BYTES: usize = 64 * 1024;

/// A line buffer larger than this is freed after use.
const KEPT_BYTES: usize = 256 * 1024;

pub(crate) struct JsonLines<R, W> {
    input: BufReader<R>,
    /// The line read so far. Kept here because `receive` may be dropped at any time.
    line: Vec<u8>,
    limit: usize,
    /// Whether the rest of an overlong line is being skipped.
    skipping: bool,
    output: Arc<Mutex<Option<W>>>,
    /// A response sent by the transport itself, in flight.
    reply: Option<BoxFuture<'static, ()>>,
}

/// The result of reading a line.
enum LineRead {
    Whole,
    TooLong,
    End,
}

impl<R, W> JsonLines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(crate) fn new(input: R, output: W, limit: usize) -> Self {
        Self {
            input: BufReader::with_capacity(READ_BYTES, input),
            line: Vec::new(),
            limit,
            skipping: false,
            output: Arc::new(Mutex::new(Some(output))),
            reply: None,
        }
    }

    /// Reads until a line is complete. Dropping the future loses nothing.
    async fn read_line(&mut self) -> LineRead {
        loop {
            let room = if self.skipping {
                // An earlier call may have left a part when it was dropped.
                self.line.clear();
                READ_BYTES
            } else {
                // One byte more, for the newline.
                self.limit.saturating_sub(self.line.len()).saturating_add(1)
            };
            let mut input = (&mut self.input).take(room as u64);
            let Ok(count) = input.read_until(b'\n', &mut self.line).await else {
                return LineRead::End;
            };
            let ended = self.line.pop_if(|last| *last == b'\n').is_some();
            if self.skipping {
                self.line.clear();
                self.skipping = !ended;
                if count == 0 {
                    return LineRead::End;
                }
            } else if self.line.len() > self.limit {
                self.skipping = true;
                return LineRead::TooLong;
            } else if ended || (count == 0 && !self.line.is_empty()) {
                // The last line may lack a newline.
                return LineRead::Whole;
            } else if count == 0 {
                return LineRead::End;
            }
        }
    }
}

/// The error for a line, and the id of the request if it could be read.
type LineError = Box<(ErrorData, Option<RequestId>)>;

/// Parses a line. Returns `None` for a line that needs no response.
fn parse(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, LineError> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    match serde_json::from_slice(line) {
        Ok(message) => Ok(Some(message)),
        Err(error) => match serde_json::from_slice::<Value>(line) {
            Ok(value) => invalid_message(&value),
            Err(_) => {
                let text = format!("this is not valid JSON: {error}; send one message per line");
                Err(Box::new((ErrorData::parse_error(text, None), None)))
            }
        },
    }
}

/// Handles JSON that is not a valid message.
fn invalid_message(value: &Value) -> Result<Option<ClientJsonRpcMessage>, LineError> {
    let id = match value.get("id") {
        Some(Value::String(id)) => Some(RequestId::String(id.as_str().into())),
        Some(Value::Number(id)) => id.as_i64().map(RequestId::Number),
        _ => None,
    };
    let method = value.get("method");
    // Notifications get no response.
    if id.is_none() && value.get("id").is_none() && method.is_some_and(Value::is_string) {
        return Ok(None);
    }
    let text = match value {
        Value::Array(_) => "batches are not supported; send one message per line",
        _ => {
            "this is not a valid JSON-RPC 2.0 message; it needs jsonrpc, method and, for a request, an id"
        }
    };
    Err(Box::new((ErrorData::invalid_request(text, None), id)))
}

async fn write<W>(output: Arc<Mutex<Option<W>>>, message: ServerJsonRpcMessage) -> io::Result<()>
where
    W: AsyncWrite + Send + Unpin,
{
    let mut line = serde_json::to_vec(&message)?;
    if let ServerJsonRpcMessage::Error(error) = &message
        && error.id.is_none()
    {
        // JSON-RPC requires a null id if the id is not known.
        let whole = json!({"jsonrpc": "2.0", "id": null, "error": error.error});
        line = serde_json::to_vec(&whole)?;
    }
    line.push(b'\n');
    let mut output = output.lock().await;
    let Some(output) = output.as_mut() else {
        return Err(io::ErrorKind::NotConnected.into());
    };
    output.write_all(&line).await?;
    output.flush().await
}

impl<R, W> Transport<RoleServer> for JsonLines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        write(Arc::clone(&self.output), item)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(reply) = &mut self.reply {
                reply.await;
                self.reply = None;
            }
            let parsed = match self.read_line().await {
                LineRead::End => return None,
                LineRead::TooLong => {
                    let limit = self.limit;
                    let text =
                        format!("this message has more than {limit} bytes; send less at a time");
                    Err(Box::new((ErrorData::invalid_request(text, None), None)))
                }
                LineRead::Whole => parse(&self.line),
            };
            if self.line.capacity() > KEPT_BYTES {
                self.line = Vec::new();
            }
            self.line.clear();
            match parsed {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                // Sent before anything else is read.
                Err(error) => {
                    let (error, id) = *error;
                    let message = ServerJsonRpcMessage::error(error, id);
                    let sent = write(Arc::clone(&self.output), message).map(|_| ());
                    self.reply = Some(sent.boxed());
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        drop(self.output.lock().await.take());
        Ok(())
    }
}
