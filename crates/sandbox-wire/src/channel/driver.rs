//! The task that moves a channel's bytes, opens its streams and listens for its
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

/// Streams that the multiplexer keeps. Far above what [`Channel`] opens.
const STREAMS: usize = 1024;
/// Memory for bytes that have arrived and were not read, beyond 256 KiB for each
/// stream.
const WINDOWS: usize = 64 * 1024 * 1024;
/// How long the end of a channel may take.
const CLOSE: Duration = Duration::from_secs(2);

/// What a call asks of the task.
pub(super) enum Order {
    /// A stream with this message on it.
    Open {
        first: Vec<u8>,
        reply: oneshot::Sender<Opened>,
    },
    /// An answer, which shows that the channel is there.
    Probe(oneshot::Sender<()>),
    /// The end, and what to tell those who still wait.
    End(Lost),
}

/// A stream, and what of the first message did not fit yet.
pub(super) struct Opened {
    pub(super) stream: Stream,
    pub(super) unsent: Vec<u8>,
}

/// A stream to an agent that has greeted.
pub(crate) struct Link<S> {
    pub(crate) socket: S,
    /// Counts the bytes that arrive.
    pub(crate) received: Arc<AtomicU64>,
    /// Called now and then while the agent says that commands run.
    pub(crate) busy: Box<dyn Fn() + Send + Sync>,
    pub(crate) facts: Facts,
    pub(crate) heartbeat: Duration,
    pub(crate) patience: Duration,
    pub(crate) calls: usize,
    /// Says why the stream ended, given what was noticed.
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

/// Why a channel ends.
enum End {
    /// Somebody said so; nobody else is to be asked.
    Told(Lost),
    /// This was noticed.
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
        // Who moves the bytes knows better why they stopped.
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
            // A stream that takes no more is closed by dropping it.
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
    /// Streams to hand out when their first bytes are on the way.
    opened: Vec<(Opened, oneshot::Sender<Opened>)>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Pump<S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        let mut ended = self.take_orders(cx);
        loop {
            // What waits at the end is not sent, and its callers are told so.
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
                // Whoever no longer waits has dropped the call, and with it the stream.
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
            // Streams that were dropped may have made room.
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

/// Writes as much of a new stream's first message as there is room for.
fn write_some(stream: &mut Stream, mut bytes: Vec<u8>, cx: &mut Context<'_>) -> Vec<u8> {
    let mut sent = 0;
    while let Some(rest @ [_, ..]) = bytes.get(sent..) {
        match Pin::new(&mut *stream).poll_write(cx, rest) {
            Poll::Ready(Ok(written)) => sent += written,
            // The caller meets the same error, or waits, when it writes the rest.
            Poll::Ready(Err(_)) | Poll::Pending => break,
        }
    }
    bytes.split_off(sent.min(bytes.len()))
}

/// Sends heartbeats and hears them; ends when the other side has been silent for
/// too long.
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
/// counted in heartbeats, so that a host that slept does not take its own absence
/// for the agent's.
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
        // One that finds no room is left out: the next ticks tell how it ends.
        let _ = futures::poll!(&mut write);
    }
}

fn broken(what: &str) -> End {
    End::Told(Lost::broken(what))
}
