//! Opens a channel: starts the machine, then places, runs and greets the agent.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{future, io};

use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Quoted, Result};
use backend_run::Activity;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::io::AsyncRead;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::io::StreamReader;

use crate::agent_sandbox::AgentOptions;
use crate::channel::{Channel, ChannelError, ChannelSetup, start};
use crate::handshake::{ClientHello, greet_agent};
use crate::machine::{Machine, OutputChunk, Spawn};
use crate::socket::Socket;

/// The timeout for the machine's diagnosis of a lost channel.
const DIAGNOSIS: Duration = Duration::from_secs(10);
/// The timeout for a lost agent's exit code.
const EXIT: Duration = Duration::from_millis(500);

/// Opens a channel. Runs on the engine.
pub(super) async fn connect<M: Machine>(
    machine: Arc<M>,
    options: AgentOptions,
    activity: Activity,
) -> Result<Channel> {
    machine.start().await?;
    let argv = machine.agent().await?;
    let program = argv.first().cloned().unwrap_or_default();
    let process = machine.spawn(Spawn::new(argv).stdin(true)).await?;
    let Some(stdin) = process.stdin else {
        let text = "the machine gave its program no standard input; please report this";
        return Err(Error::internal(text));
    };
    let messages = Messages::default();
    let output = channel_bytes(process.output, messages.clone());
    let mut socket = Socket::new(output, stdin);
    let received = socket.received();
    let hello = ClientHello {
        heartbeat: options.heartbeat,
    };
    let greeted = timeout(options.patience, greet_agent(&mut socket, hello)).await;
    let greeted = greeted.unwrap_or_else(|_| {
        let seconds = options.patience.as_secs();
        Err(Error::unavailable(format!(
            "the agent said nothing for {seconds} s; see whether {} runs in the sandbox",
            Quoted::new(&program)
        )))
    });
    let info = match greeted {
        Ok(info) => info,
        Err(error) => {
            drop(socket);
            return Err(explain(&*machine, error, process.exit, &messages).await);
        }
    };
    let wanted = machine.working_dir();
    if info.working_dir != wanted {
        return Err(Error::new(
            ErrorKind::Config,
            format!(
                "the agent works in {} and the sandbox in {}; start the agent with that directory",
                Quoted::new(info.working_dir.as_str()),
                Quoted::new(wanted.as_str())
            ),
        ));
    }
    let setup = ChannelSetup {
        socket,
        received,
        busy: Box::new(move || activity.touch()),
        info,
        heartbeat: options.heartbeat,
        patience: options.patience,
        calls: options.calls,
        explain: Box::new(move |what| {
            Box::pin(async move {
                let text = format!("the channel to the agent was lost: {what}");
                let error = Error::unavailable(text);
                ChannelError::from(explain(&*machine, error, process.exit, &messages).await)
            })
        }),
    };
    start(&Handle::current(), setup)
}

/// Returns the reason that the machine knows, or else the noticed error with
/// the agent's exit code and last message.
async fn explain<M: Machine>(
    machine: &M,
    noticed: Error,
    exit: BoxFuture<'static, Result<i32>>,
    messages: &Messages,
) -> Error {
    if let Ok(Some(reason)) = timeout(DIAGNOSIS, machine.diagnose()).await {
        return reason;
    }
    let code = match timeout(EXIT, exit).await {
        Ok(Ok(code)) => format!("; it exited with code {code}"),
        _ => String::new(),
    };
    let words = match messages.last() {
        Some(words) => format!("; it said {}", Quoted::new(&words)),
        None => String::new(),
    };
    if code.is_empty() && words.is_empty() {
        noticed
    } else {
        Error::new(
            noticed.kind(),
            format!("{}{code}{words}", noticed.message()),
        )
    }
}

/// Bytes of an agent's messages that are logged. Later ones are dropped.
const LOGGED: usize = 64 * 1024;
/// Bytes of an agent's last message that are kept for errors.
const KEPT: usize = 150;

/// Returns the bytes of the channel from a process's output, and hands its
/// messages over.
pub(super) fn channel_bytes(
    pieces: BoxStream<'static, Result<OutputChunk>>,
    messages: Messages,
) -> impl AsyncRead + Send + Unpin + 'static {
    let bytes = pieces.filter_map(move |piece| {
        future::ready(match piece {
            Ok(OutputChunk::Stdout(bytes)) => Some(Ok(bytes)),
            Ok(OutputChunk::Stderr(bytes)) => {
                messages.add(&bytes);
                None
            }
            Err(error) => Some(Err(io::Error::other(error))),
        })
    });
    StreamReader::new(bytes)
}

/// An agent's messages on standard error.
#[derive(Debug, Clone, Default)]
pub(super) struct Messages(Arc<Mutex<MessageTail>>);

#[derive(Debug, Default)]
struct MessageTail {
    total: usize,
    last: Vec<u8>,
}

impl Messages {
    fn add(&self, bytes: &[u8]) {
        let mut tail = lock(&self.0);
        let before = tail.total;
        tail.total = before.saturating_add(bytes.len());
        tail.last.extend_from_slice(bytes);
        let over = tail.last.len().saturating_sub(KEPT);
        tail.last.drain(..over);
        drop(tail);
        if before < LOGGED {
            let text = String::from_utf8_lossy(bytes);
            tracing::debug!(target: "sandbox_wire::agent", "{}", text.trim_end().escape_debug());
        }
    }

    /// Returns the end of the messages, if there are any.
    pub(super) fn last(&self) -> Option<String> {
        let tail = lock(&self.0);
        let text = String::from_utf8_lossy(&tail.last);
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}
