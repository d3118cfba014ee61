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
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use yamux::{Connection, Mode, Stream};

use crate::channel::{Channel, Lost};
use crate::hello::Facts;
use crate::message::{Fault, LONGEST_TICK, More, Reply, Request, SHORTEST_TICK, encode, receive};

/// The number of streams that the multiplexer keeps. Far more than [`Channel`]
/// opens.
const STREAMS: usize = 1024;
/// Memory for received but unread bytes, beyond 256 KiB for each stream.
const WINDOWS: usize = 64 * 1024 * 1024;
/// The timeout for closing a channel.
const CLOSE: Duration = Duration::from_secs(2);

/// A request from a call to the task.
pub(super) enum Order {
    /// Opens a stream with this first message.
    Open {
        first: Vec<u8>,
        reply: oneshot::Sender<Opened>,
    },
    /// Asks for an answer, which shows that the channel still exists.
    Probe(oneshot::Sender<()>),
    /// Ends the channel with this reason for the waiting calls.
    End(Lost),
}

/// A stream, and the unsent rest of its first message.
pub(super) struct Opened {
    pub(super) stream: Stream,
    pub(super) unsent: Vec<u8>,
}

/// A stream to an agent after the greeting.
pub(crate) struct Link<S> {
    pub(crate) socket: S,
    /// The number of received bytes.
    pub(crate) received: Arc<AtomicU64>,
    /// Called now and then while the agent reports running commands.
    pub(crate) busy: Box<dyn Fn() + Send + Sync>,
    pub(crate) facts: Facts,
    pub(crate) heartbeat: Duration,
    pub(crate) patience: Duration,
    pub(crate) calls: usize,
    /// Returns the reason why the stream ended, given what was noticed.
    pub(crate) explain: Box<dyn FnOnce(String) -> BoxFuture<'static, Lost> + Send>,
}

/// Starts the task for a channel.
pub(crate) fn start<S>(engine: &Handle, link: Link<S>) -> Result<Channel>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (orders, receiver) = mpsc::unbounded_channel();
    let (tell, lost) = watch::channel(None);
    let control = open(&orders, encode(&Request::Control)?);
    let channel = Channel::new(orders, lost, link.calls, link.facts.clone());
    engine.spawn(drive(link, receiver, control, tell));
    Ok(channel)
}

fn open(orders: &mpsc::UnboundedSender<Order>, first: Vec<u8>) -> oneshot::Receiver<Opened> {
    let (reply, opened) = oneshot::channel();
    let _ = orders.send(Order::Open { first, reply });
    opened
}

/// The way a channel ends.
enum End {
    /// This side ended it. The reason is known.
    Told(Lost),
    /// The end was noticed, with this description.
    Noticed(String),
}

async fn drive<S>(
    link: Link<S>,
    orders: mpsc::UnboundedReceiver<Order>,
    control: oneshot::Receiver<Opened>,
    tell: watch::Sender<Option<Lost>>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut config = yamux::Config::default();
    config
        .set_max_num_streams(STREAMS)
        .set_max_connection_receive_window(Some(STREAMS * yamux::DEFAULT_CREDIT as usize + WINDOWS))
        .set_split_send_size(32 * 1024);
    let mut pump = Pump {
        connection: Connection::new(link.socket, config, Mode::Client),
        orders,
        waiting: VecDeque::new(),
        opened: Vec::new(),
    };
    let (every, patience) = (link.heartbeat, link.patience);
    let beat = beat(control, link.received, link.busy, every, patience);
    let end = tokio::select! {
        // The pump knows better why the bytes stopped.
        biased;
        end = std::future::poll_fn(|cx| pump.poll(cx)) => end,
        end = beat => end,
    };
    // From here on every call finds the channel closed.
    pump.orders.close();
    match end {
        End::Told(lost) => {
            tell.send_replace(Some(lost));
            let close = std::future::poll_fn(|cx| pump.connection.poll_close(cx));
            // A stream that accepts no more is closed by dropping it.
            let _ = timeout(CLOSE, close).await;
        }
        End::Noticed(what) => {
            drop(pump);
            tell.send_replace(Some((link.explain)(what).await));
        }
    }
}

struct Pump<S> {
    connection: Connection<S>,
    orders: mpsc::UnboundedReceiver<Order>,
    /// Requests for streams that cannot be opened yet.
    waiting: VecDeque<(Vec<u8>, oneshot::Sender<Opened>)>,
    /// Streams to hand out once their first bytes are sent.
    opened: Vec<(Opened, oneshot::Sender<Opened>)>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Pump<S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        let mut ended = self.take_orders(cx);
        loop {
            // At the end, waiting requests are not sent, and their callers are
            // told so.
            if ended.is_none()
                && let Err(what) = self.open_waiting(cx)
            {
                ended = Some(End::Noticed(what));
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
            match inbound {
                Poll::Ready(Some(Ok(_))) => {
                    return Poll::Ready(broken("it opened a stream"));
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(End::Noticed(error.to_string()));
                }
                Poll::Ready(None) => return Poll::Ready(End::Noticed("its stream ended".into())),
                Poll::Pending => {}
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
                Err(what) => ended = Some(End::Noticed(what)),
            }
        }
    }

    fn take_orders(&mut self, cx: &mut Context<'_>) -> Option<End> {
        loop {
            match self.orders.poll_recv(cx) {
                Poll::Ready(Some(Order::Open { first, reply })) => {
                    self.waiting.push_back((first, reply));
                }
                Poll::Ready(Some(Order::Probe(reply))) => drop(reply.send(())),
                Poll::Ready(Some(Order::End(lost))) => return Some(End::Told(lost)),
                Poll::Ready(None) => return Some(End::Told(Lost::new("the sandbox was dropped"))),
                Poll::Pending => return None,
            }
        }
    }

    fn open_waiting(&mut self, cx: &mut Context<'_>) -> Result<(), String> {
        while let Some((first, reply)) = self.waiting.pop_front() {
            if reply.is_closed() {
                continue;
            }
            match self.connection.poll_new_outbound(cx) {
                Poll::Ready(Ok(mut stream)) => {
                    let unsent = write_some(&mut stream, first, cx);
                    self.opened.push((Opened { stream, unsent }, reply));
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
async fn beat(
    control: oneshot::Receiver<Opened>,
    received: Arc<AtomicU64>,
    busy: Box<dyn Fn() + Send + Sync>,
    every: Duration,
    patience: Duration,
) -> End {
    let Ok(Opened { stream, .. }) = control.await else {
        return End::Noticed("it opened no stream".into());
    };
    let (mut reader, writer) = stream.split();
    let hear = async {
        loop {
            match receive(&mut reader, 64).await {
                Ok(Reply::Beat(true)) => busy(),
                Ok(Reply::Beat(false)) => {}
                Ok(other) => return broken(&format!("{} instead of a heartbeat", other.name())),
                Err(Fault::Broken(what)) => return broken(&what),
                Err(Fault::Ended) => {
                    return End::Noticed("it ended the stream for heartbeats".into());
                }
            }
        }
    };
    tokio::select! {
        end = hear => end,
        what = call_out(writer, received, every, patience) => End::Noticed(what),
    }
}

/// Sends heartbeats until the other side has been silent for too long. Time is
/// counted in heartbeats, so that a suspended host does not mistake its own
/// absence for the agent's.
async fn call_out(
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
        silent = match now == seen {
            true => silent.saturating_add(every),
            false => Duration::ZERO,
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

fn broken(what: &str) -> End {
    End::Told(Lost::broken(what))
}
