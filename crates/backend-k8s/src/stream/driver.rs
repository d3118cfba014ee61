//! [`Driver`]: the task that moves the bytes of one stream.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backend_core::{Error, Quoted, Result};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use sandbox_wire::OutputChunk;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, DuplexStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{self, Instant, Interval, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use super::INPUT_BYTES;
use super::frame::{self, Frame};
use super::status::{self, Ended};
use crate::start_slots::StartSlot;

/// The interval of pings, which keep a connection open on which nothing is said.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(15);
/// The time without any message, also without the answer to a ping, after which a
/// connection counts as lost.
pub(super) const SILENCE_TIMEOUT: Duration = Duration::from_secs(50);
/// The time after which a program that prints nothing counts as started.
const START_TIMEOUT: Duration = Duration::from_millis(500);
/// The time to wait for the reason after nothing could be sent.
const REASON_TIMEOUT: Duration = Duration::from_secs(2);
/// The time to send the rest of the input of a caller that went away.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// The time to part in good order.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

type Sink<S> = SplitSink<WebSocketStream<S>, Message>;
type Source<S> = SplitStream<WebSocketStream<S>>;

/// A stream, and the ends that its [`Process`](sandbox_wire::Process) holds the other
/// sides of.
pub(super) struct Driver<S> {
    pub(super) socket: WebSocketStream<S>,
    pub(super) input: Option<DuplexStream>,
    pub(super) output: mpsc::Sender<Result<OutputChunk>>,
    pub(super) exit: oneshot::Sender<Result<i32>>,
    pub(super) slot: Option<StartSlot>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    /// Moves bytes until the program or the connection ends, or the caller has dropped
    /// the output and the exit code.
    pub(super) async fn run(self) {
        let Self {
            socket,
            input,
            output,
            mut exit,
            slot,
        } = self;
        let (mut sink, mut source) = socket.split();
        let counts = Counts::default();
        let (fed, mut was_fed) = oneshot::channel();
        let ended = {
            let mut writing = pin!(write(&mut sink, input, &counts, fed));
            let mut reading = pin!(read(&mut source, &output, &counts, slot));
            let abandoned = async { tokio::join!(output.closed(), exit.closed()) };
            tokio::select! {
                biased;
                ended = &mut reading => Some(ended),
                error = &mut writing => {
                    // The cluster may have said why it takes nothing more.
                    let last = time::timeout(REASON_TIMEOUT, &mut reading).await;
                    Some(last.unwrap_or_else(|_| Err(error.to_string())))
                }
                _ = abandoned => {
                    // Input that was accepted is sent, such as the request to end.
                    tokio::select! {
                        _ = &mut writing => {}
                        _ = &mut was_fed => {}
                        () = time::sleep(FLUSH_TIMEOUT) => {}
                    }
                    None
                }
            }
        };
        if let Some(ended) = ended {
            report(ended, output, exit).await;
        }
        // Unread messages would reset the connection, and input with it that the cluster
        // has not read.
        let close = async {
            let _ = sink.close().await;
            while let Some(Ok(_)) = source.next().await {}
        };
        // The connection is dropped in any case.
        let _ = time::timeout(CLOSE_TIMEOUT, close).await;
    }
}

/// The beginning of the message if the cluster says that something went wrong.
pub(crate) const UNKNOWN_END: &str = "the program could not be run, or its end is unknown";

/// Tells the caller how the program ended, or why that is unknown.
async fn report(
    ended: Result<Ended, String>,
    output: mpsc::Sender<Result<OutputChunk>>,
    exit: oneshot::Sender<Result<i32>>,
) {
    let text = match ended {
        Ok(Ended::Exited(code)) => {
            let _ = exit.send(Ok(code));
            return;
        }
        Ok(Ended::NotRun(code, message)) => {
            let _ = exit.send(Ok(code));
            let message = OutputChunk::Stderr(message.into());
            let _ = output.send(Ok(message)).await;
            return;
        }
        Ok(Ended::Failed(said)) => format!(
            "{UNKNOWN_END}: the cluster says {}; try again",
            Quoted::new(&said)
        ),
        Err(reason) => format!(
            "the connection to the pod was lost: {}; try again",
            Quoted::new(&reason)
        ),
    };
    let _ = exit.send(Err(Error::unavailable(text.clone())));
    let _ = output.send(Err(Error::unavailable(text))).await;
}

/// Sends the input, its end, and pings. Returns only if nothing can be sent any more.
async fn write<S: AsyncRead + AsyncWrite + Unpin>(
    sink: &mut Sink<S>,
    input: Option<DuplexStream>,
    counts: &Counts,
    fed: oneshot::Sender<()>,
) -> SocketError {
    let mut pings = time::interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    if let Some(input) = input
        && let Err(error) = feed(sink, input, counts, &mut pings).await
    {
        return error;
    }
    let _ = fed.send(());
    loop {
        pings.tick().await;
        if let Err(error) = sink.send(counts.ping()).await {
            return error;
        }
    }
}

/// Sends the input and its end.
async fn feed<S: AsyncRead + AsyncWrite + Unpin>(
    sink: &mut Sink<S>,
    mut input: DuplexStream,
    counts: &Counts,
    pings: &mut Interval,
) -> Result<(), SocketError> {
    let mut buffer = BytesMut::new();
    loop {
        if buffer.is_empty() {
            buffer.reserve(1 + INPUT_BYTES);
            buffer.put_u8(frame::STDIN);
        }
        tokio::select! {
            read = input.read_buf(&mut buffer) => {
                if !matches!(read, Ok(1..)) {
                    return sink.send(frame::end_of_input()).await;
                }
                counts.sent.fetch_add(1, Ordering::Relaxed);
                sink.send(Message::Binary(buffer.split().freeze())).await?;
            }
            _ = pings.tick() => sink.send(counts.ping()).await?,
        }
    }
}

/// Hands over the output until the program has ended. An error is the reason why that
/// will not be known.
async fn read<S: AsyncRead + AsyncWrite + Unpin>(
    source: &mut Source<S>,
    output: &mpsc::Sender<Result<OutputChunk>>,
    counts: &Counts,
    mut slot: Option<StartSlot>,
) -> Result<Ended, String> {
    loop {
        let patience = if slot.is_some() {
            START_TIMEOUT
        } else {
            SILENCE_TIMEOUT
        };
        let Ok(next) = time::timeout(patience, source.next()).await else {
            if slot.take().is_some() || counts.has_unread_input() {
                continue;
            }
            return Err(format!("it was silent for {} s", SILENCE_TIMEOUT.as_secs()));
        };
        let message = match next {
            Some(Ok(message)) => message,
            Some(Err(error)) => return Err(error.to_string()),
            None => return Err("it was closed".to_owned()),
        };
        let chunk = match frame::parse(message)? {
            Frame::Stdout(bytes) => OutputChunk::Stdout(bytes),
            Frame::Stderr(bytes) => OutputChunk::Stderr(bytes),
            Frame::Status(json) => return Ok(status::parse(&json)),
            Frame::Closed => return Err("the cluster closed it".to_owned()),
            Frame::Pong(carried) => {
                counts.answer(&carried);
                continue;
            }
            Frame::Other => continue,
        };
        slot = None;
        // Without a reader of the output, the exit code may still be wanted.
        let _ = output.send(Ok(chunk)).await;
    }
}

/// Messages with input that were sent, and the number of them that the cluster had read
/// when it answered the last ping.
///
/// The cluster reads nothing while a program does not read its input, and answers no
/// ping that waits behind it. That is no lost connection.
#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    read: AtomicU64,
}

impl Counts {
    fn ping(&self) -> Message {
        let sent = self.sent.load(Ordering::Relaxed);
        Message::Ping(Bytes::copy_from_slice(&sent.to_be_bytes()))
    }

    fn answer(&self, carried: &[u8]) {
        if let Ok(read) = carried.try_into().map(u64::from_be_bytes) {
            self.read.store(read, Ordering::Relaxed);
        }
    }

    fn has_unread_input(&self) -> bool {
        self.read.load(Ordering::Relaxed) < self.sent.load(Ordering::Relaxed)
    }
}
