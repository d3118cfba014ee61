//! The task that moves a channel's bytes, opens its streams and sends its
//! heartbeat.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use backend_core::Result;
use futures::future::BoxFuture;
use futures::io::WriteHalf;
use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use yamux::{Connection, Mode, Stream};

use crate::channel::{CALLS, CONNECTIONS, Channel, ChannelError};
use crate::handshake::AgentInfo;
use crate::message::{
    FrameError, LONGEST_TICK, More, Reply, Request, SHORTEST_TICK, encode, receive,
};

/// The number of streams that the multiplexer keeps. Far more than [`Channel`]
/// opens.
const STREAMS: usize = 2048;
/// Memory for received but unread bytes, beyond 256 KiB for each stream.
const WINDOWS: usize = 64 * 1024 * 1024;
/// The timeout for closing a channel.
const CLOSE: Duration = Duration::from_secs(2);

/// A request from a call to the task.
pub(super) enum DriverRequest {
    /// Opens a stream with this first message.
    Open {
        first: Vec<u8>,
        reply: oneshot::Sender<OpenedStream>,
    },
    /// Asks for an answer, which shows that the channel still exists.
    Probe(oneshot::Sender<()>),
    /// Ends the channel with this reason for the waiting calls.
    End(ChannelError),
}

/// A stream, and the unsent rest of its first message.
pub(super) struct OpenedStream {
    pub(super) stream: Stream,
    pub(super) unsent: Vec<u8>,
}

/// A stream to an agent after the greeting.
pub(crate) struct ChannelSetup<S> {
    pub(crate) socket: S,
    pub(crate) received: Arc<AtomicU64>,
    /// Called now and then while the agent reports running commands.
    pub(crate) busy: Box<dyn Fn() + Send + Sync>,
    pub(crate) info: AgentInfo,
    pub(crate) heartbeat: Duration,
    pub(crate) patience: Duration,
    pub(crate) calls: usize,
    /// Returns the reason why the stream ended, given what was noticed.
    pub(crate) explain: Box<dyn FnOnce(String) -> BoxFuture<'static, ChannelError> + Send>,
}

/// Starts the task for a channel.
pub(crate) fn start<S>(engine: &Handle, setup: ChannelSetup<S>) -> Result<Channel>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (requests, receiver) = mpsc::unbounded_channel();
    let (tell, lost) = watch::channel(None);
    let (reply, control) = oneshot::channel();
    let first = encode(&Request::Control)?;
    let _ = requests.send(DriverRequest::Open { first, reply });
    let channel = Channel {
        requests,
        lost,
        permits: Arc::new(Semaphore::new(setup.calls.clamp(1, CALLS))),
        connections: Arc::new(Semaphore::new(CONNECTIONS)),
        info: setup.info.clone(),
    };
    backend_run::spawn(engine, drive(setup, receiver, control, tell));
    Ok(channel)
}

enum CloseReason {
    /// This side ended it. The reason is known.
    Known(ChannelError),
    /// The end was noticed, with this description.
    Noticed(String),
}

async fn drive<S>(
    setup: ChannelSetup<S>,
    requests: mpsc::UnboundedReceiver<DriverRequest>,
    control: oneshot::Receiver<OpenedStream>,
    tell: watch::Sender<Option<ChannelError>>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut config = yamux::Config::default();
    config
        .set_max_num_streams(STREAMS)
        .set_max_connection_receive_window(Some(STREAMS * yamux::DEFAULT_CREDIT as usize + WINDOWS))
        .set_split_send_size(32 * 1024);
    let mut driver = Driver {
        connection: Connection::new(setup.socket, config, Mode::Client),
        requests,
        waiting: VecDeque::new(),
        opened: Vec::new(),
    };
    let (every, patience) = (setup.heartbeat, setup.patience);
    let heartbeats = heartbeats(control, setup.received, setup.busy, every, patience);
    let end = tokio::select! {
        // The driver knows better why the bytes stopped.
        biased;
        end = std::future::poll_fn(|cx| driver.poll(cx)) => end,
        end = heartbeats => end,
    };
    // From here on every call finds the channel closed.
    driver.requests.close();
    match end {
        CloseReason::Known(lost) => {
            tell.send_replace(Some(lost));
            let close = std::future::poll_fn(|cx| driver.connection.poll_close(cx));
            // A stream that accepts no more is closed by dropping it.
            let _ = timeout(CLOSE, close).await;
        }
        CloseReason::Noticed(what) => {
            drop(driver);
            tell.send_replace(Some((setup.explain)(what).await));
        }
    }
}

struct Driver<S> {
    connection: Connection<S>,
    requests: mpsc::UnboundedReceiver<DriverRequest>,
    /// Requests for streams that cannot be opened yet.
    waiting: VecDeque<(Vec<u8>, oneshot::Sender<OpenedStream>)>,
    /// Streams to hand out once their first bytes are sent.
    opened: Vec<(OpenedStream, oneshot::Sender<OpenedStream>)>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        let mut ended = self.take_requests(cx);
        loop {
            // At the end, waiting requests are not sent, and their callers are
            // told so.
            if ended.is_none()
                && let Err(what) = self.open_waiting(cx)
            {
                ended = Some(CloseReason::Noticed(what));
            }
            let inbound = match &ended {
                None => self.connection.poll_next_inbound(cx),
                Some(_) => Poll::Pending,
            };
            for (opened, reply) in self.opened.drain(..) {
                // A caller that is gone has dropped the call, and with it the
                // stream.
                let _ = reply.send(opened);
            }
            if let Poll::Ready(inbound) = inbound {
                return Poll::Ready(match inbound {
                    Some(Ok(_)) => broken("it opened a stream"),
                    Some(Err(error)) => CloseReason::Noticed(error.to_string()),
                    None => CloseReason::Noticed("its stream ended".into()),
                });
            }
            if let Some(end) = ended {
                return Poll::Ready(end);
            }
            if self.waiting.is_empty() {
                return Poll::Pending;
            }
            // Dropped streams may have made room.
            match self.open_waiting(cx) {
                Ok(()) if self.opened.is_empty() => return Poll::Pending,
                Ok(()) => {}
                Err(what) => ended = Some(CloseReason::Noticed(what)),
            }
        }
    }

    fn take_requests(&mut self, cx: &mut Context<'_>) -> Option<CloseReason> {
        while let Poll::Ready(request) = self.requests.poll_recv(cx) {
            let lost = match request {
                Some(DriverRequest::Open { first, reply }) => {
                    self.waiting.push_back((first, reply));
                    continue;
                }
                Some(DriverRequest::Probe(reply)) => {
                    let _ = reply.send(());
                    continue;
                }
                Some(DriverRequest::End(lost)) => lost,
                None => ChannelError::new("the sandbox was dropped"),
            };
            return Some(CloseReason::Known(lost));
        }
        None
    }

    fn open_waiting(&mut self, cx: &mut Context<'_>) -> Result<(), String> {
        while let Some((first, reply)) = self.waiting.pop_front() {
            if reply.is_closed() {
                continue;
            }
            match self.connection.poll_new_outbound(cx) {
                Poll::Ready(Ok(mut stream)) => {
                    let unsent = write_some(&mut stream, first, cx);
                    self.opened.push((OpenedStream { stream, unsent }, reply));
                }
                Poll::Ready(Err(error)) => return Err(error.to_string()),
                Poll::Pending => {
                    self.waiting.push_front((first, reply));
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Writes as much of a new stream's first message as fits.
fn write_some(stream: &mut Stream, mut bytes: Vec<u8>, cx: &mut Context<'_>) -> Vec<u8> {
    let mut sent = 0;
    while let Some(rest @ [_, ..]) = bytes.get(sent..) {
        match Pin::new(&mut *stream).poll_write(cx, rest) {
            Poll::Ready(Ok(written)) => sent += written,
            // The caller gets the same error, or waits, when it writes the
            // rest.
            Poll::Ready(Err(_)) | Poll::Pending => break,
        }
    }
    bytes.split_off(sent.min(bytes.len()))
}

/// Sends and receives heartbeats. Returns when the other side has been silent
/// for too long.
async fn heartbeats(
    control: oneshot::Receiver<OpenedStream>,
    received: Arc<AtomicU64>,
    busy: Box<dyn Fn() + Send + Sync>,
    every: Duration,
    patience: Duration,
) -> CloseReason {
    let Ok(OpenedStream { stream, .. }) = control.await else {
        return CloseReason::Noticed("it opened no stream".into());
    };
    let (mut reader, writer) = stream.split();
    let replies = async {
        loop {
            match receive(&mut reader, 64).await {
                Ok(Reply::Beat(true)) => busy(),
                Ok(Reply::Beat(false)) => {}
                Ok(other) => return broken(&format!("{} instead of a heartbeat", other.name())),
                Err(FrameError::Broken(what)) => return broken(&what),
                Err(FrameError::Ended) => {
                    return CloseReason::Noticed("it ended the stream for heartbeats".into());
                }
            }
        }
    };
    tokio::select! {
        end = replies => end,
        what = send_heartbeats(writer, received, every, patience) => CloseReason::Noticed(what),
    }
}

/// Sends heartbeats until the other side has been silent for too long. Time is
/// counted in heartbeats, so that a suspended host does not mistake its own
/// absence for the agent's.
async fn send_heartbeats(
    mut writer: WriteHalf<Stream>,
    received: Arc<AtomicU64>,
    every: Duration,
    patience: Duration,
) -> String {
    let Ok(message) = encode(&More::Beat) else {
        return "a heartbeat cannot be encoded".into();
    };
    let mut ticks = interval(every.clamp(SHORTEST_TICK, LONGEST_TICK));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut seen, mut silent) = (0, Duration::ZERO);
    loop {
        ticks.tick().await;
        let now = received.load(Ordering::Relaxed);
        silent = if now == seen {
            silent.saturating_add(every)
        } else {
            Duration::ZERO
        };
        seen = now;
        if silent > patience {
            return format!("it has been silent for {} s", silent.as_secs());
        }
        let mut write = pin!(writer.write_all(&message));
        // A heartbeat that does not fit is skipped. The next ticks show whether
        // the agent is alive.
        let _ = futures::poll!(&mut write);
    }
}

fn broken(what: &str) -> CloseReason {
    CloseReason::Known(ChannelError::broken(what))
}
