//! The server side: serves any backend over a byte stream.

mod call;
mod connect;
mod files;
mod stream;
mod watch;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use backend_core::{Backend, Error, Result};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use yamux::{Connection, Mode};

use crate::handshake::{AgentInfo, greet_host};
use crate::message::{FrameError, LONGEST_TICK, SHORTEST_TICK};
use crate::socket::Socket;

/// The number of streams that the multiplexer keeps. A client that cancels many
/// calls may be ahead of the tasks that notice it.
const STREAMS: usize = 8 * 1024;

/// The number of steps in which silence is counted.
const STEPS: u32 = 10;

/// Options for serving a backend.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServeOptions {
    /// The time of silence, heartbeats included, after which the client counts
    /// as gone. Only time in which this process runs counts, so a paused
    /// process does not exit when it continues. At least four of the client's
    /// heartbeats.
    pub patience: Duration,
    /// The number of concurrent calls; further ones fail with `Unavailable`.
    pub calls: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(60),
            calls: 2048,
        }
    }
}

impl ServeOptions {
    backend_core::setters! {
        /// Sets how long the client may be silent.
        patience: Duration,
        /// Sets the number of concurrent calls.
        calls: usize,
    }
}

/// Serves `backend` until the stream ends or the client closes the channel.
///
/// Calls that are still running then are dropped, which cancels them. The
/// caller must end what the backend itself keeps, such as shells.
///
/// # Errors
///
/// `Unavailable` if the other side breaks the protocol or goes silent.
pub async fn serve<R, W>(
    reader: R,
    writer: W,
    backend: Arc<dyn Backend>,
    options: ServeOptions,
) -> Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let mut socket = Socket::new(reader, writer);
    let received = socket.received();
    let greeted = timeout(options.patience, greet_host(&mut socket, &info(&*backend))).await;
    let hello = greeted.map_err(|_| Error::unavailable("the host said nothing"))??;
    let patience = options.patience.max(hello.heartbeat.saturating_mul(4));

    let mut config = yamux::Config::default();
    config
        .set_max_connection_receive_window(None)
        .set_max_num_streams(STREAMS)
        .set_split_send_size(32 * 1024);
    let mut connection = Connection::new(socket, config, Mode::Server);
    let mut calls = JoinSet::new();
    let mut ticks = interval((patience / STEPS).clamp(SHORTEST_TICK, LONGEST_TICK));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut seen, mut silent) = (0, 0);
    let ended = loop {
        tokio::select! {
            inbound = std::future::poll_fn(|cx| connection.poll_next_inbound(cx)) => match inbound {
                Some(Ok(stream)) => {
                    let room = calls.len() < options.calls.saturating_add(1);
                    calls.spawn(call::answer(Arc::clone(&backend), stream, room));
                }
                Some(Err(error)) => {
                    let broken = Error::unavailable("the stream to the host broke");
                    break Err(broken.with_source(error));
                }
                None => break Ok(()),
            },
            Some(answered) = calls.join_next() => match answered {
                Ok(Err(FrameError::Broken(what))) => {
                    let text = format!("the host broke the protocol: it sent {what}");
                    break Err(Error::unavailable(text));
                }
                // A call that panicked has reset its stream, which tells the
                // host.
                Ok(Ok(()) | Err(FrameError::Ended)) | Err(_) => {}
            },
            _ = ticks.tick() => {
                let now = received.load(Ordering::Relaxed);
                silent = if now == seen { silent + 1 } else { 0 };
                seen = now;
                if silent > STEPS {
                    break Err(Error::unavailable("the host has gone silent"));
                }
            }
        }
    };
    drop(connection);
    calls.shutdown().await;
    ended
}

fn info(backend: &dyn Backend) -> AgentInfo {
    AgentInfo {
        pid: std::process::id(),
        #[cfg(unix)]
        uid: Some(rustix::process::geteuid().as_raw()),
        #[cfg(not(unix))]
        uid: None,
        capabilities: backend.info().capabilities,
        working_dir: backend.working_dir(),
    }
}
