//! Starting an agent that connects to this process, past the daemon.
//!
//! A message through the daemon changes processes six times. If the agent does not come, it
//! serves on its standard streams, which lead through the daemon.

use std::pin::Pin;
use std::time::Duration;

use backend_core::Result;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use sandbox_wire::{OutputChunk, Process, Spawn};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, sleep_until};

use super::DockerMachine;
use crate::sockets::{self, Listener};
use crate::spec::BOUND_SOCKETS;

/// The wait for an agent. One that comes later serves on its standard streams.
const PATIENCE: Duration = Duration::from_secs(10);
/// Messages that are kept while the agent is awaited.
const MESSAGES: usize = 64;
/// The time in which the last messages of an agent that has ended arrive through the
/// daemon: they say why it ended.
const LAST_WORDS: Duration = Duration::from_millis(300);

type Output = BoxStream<'static, Result<OutputChunk>>;

impl DockerMachine {
    /// Makes a socket for the agent, if its container has the directory.
    pub(super) async fn listen(&self) -> Option<Listener> {
        let core = &self.0;
        let directory = core.config.socket_dir.clone()?;
        if core.state().sockets.as_deref() != directory.to_str() {
            return None;
        }
        let listen = move || Listener::bind(sockets::open(&directory)?);
        let runtime = tokio::runtime::Handle::current();
        let listening = tokio::task::spawn_blocking(move || {
            // The socket is registered with the event loop.
            let _guard = runtime.enter();
            listen()
        });
        match listening.await.ok()? {
            Ok(listener) => Some(listener),
            Err(error) => {
                tracing::debug!("no socket for the agent: {error}");
                None
            }
        }
    }

    /// Starts the agent, and waits until it has come or has given up.
    pub(super) async fn exec_direct(
        &self,
        mut program: Spawn,
        listener: Listener,
    ) -> Result<Process> {
        let path = format!("{BOUND_SOCKETS}/{}", listener.name());
        program.argv.extend(["--socket".to_owned(), path]);
        let process = self.exec(program).await?;
        let (process, provisioned) = futures::join!(meet(listener, process), self.0.provision());
        provisioned?;
        Ok(process)
    }
}

/// Waits for the agent, and returns it as a program whose standard streams are its
/// connection, or else the program as it is.
async fn meet(listener: Listener, mut process: Process) -> Process {
    // It is polled again after its end has been seen.
    let mut output = process.output.fuse();
    let mut line = listener.token().as_str().to_owned();
    line.push('\n');
    let mut seen = Vec::new();
    let indirect = async {
        if let Some(stdin) = &mut process.stdin {
            // If the agent is gone already, its output says why.
            let _ = stdin.write_all(line.as_bytes()).await;
            let _ = stdin.flush().await;
        }
        // It prints something when it has given up, or was never started.
        while let Some(piece) = output.next().await {
            let is_message = matches!(piece, Ok(OutputChunk::Stderr(_)));
            seen.push(piece);
            if !is_message || seen.len() > MESSAGES {
                break;
            }
        }
    };
    let come = tokio::select! {
        stream = listener.agent() => stream,
        () = indirect => None,
        () = sleep(PATIENCE) => None,
    };
    let output = stream::iter(seen).chain(output);
    match come {
        Some(stream) => direct(stream, process.stdin, output, process.exit),
        None => {
            tracing::debug!("the agent is reached through the daemon");
            Process::new(process.stdin, output.boxed(), process.exit)
        }
    }
}

/// The output of an agent that is connected.
struct Direct {
    bytes: Output,
    messages: Output,
    has_messages: bool,
    /// The time until which messages count, once the connection has ended.
    until: Option<Instant>,
    /// Standard input, which stays open as long as the agent.
    _stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
}

fn direct(
    stream: UnixStream,
    stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    output: impl Stream<Item = Result<OutputChunk>> + Send + 'static,
    exit: futures::future::BoxFuture<'static, Result<i32>>,
) -> Process {
    let (reader, writer) = stream.into_split();
    let over = Process::over(reader, writer);
    let messages = output.filter(|piece| {
        let is_message = matches!(piece, Ok(OutputChunk::Stderr(_)));
        std::future::ready(is_message)
    });
    let both = Direct {
        bytes: over.output,
        messages: messages.boxed(),
        has_messages: true,
        until: None,
        _stdin: stdin,
    };
    Process::new(over.stdin, stream::unfold(both, next).boxed(), exit)
}

async fn next(mut both: Direct) -> Option<(Result<OutputChunk>, Direct)> {
    loop {
        let until = both.until;
        let last_words = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            piece = both.bytes.next(), if until.is_none() => match piece {
                Some(Ok(piece)) => return Some((Ok(piece), both)),
                Some(Err(_)) | None => both.until = Some(Instant::now() + LAST_WORDS),
            },
            piece = both.messages.next(), if both.has_messages => match piece {
                Some(piece) => return Some((piece, both)),
                None => both.has_messages = false,
            },
            () = last_words, if both.has_messages => return None,
            else => return None,
        }
    }
}
