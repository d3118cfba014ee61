//! The host's end of a channel: calls go in, and one task on the engine moves
//! their bytes.
//!
//! A call's future needs no runtime: it waits for its stream's bytes, and the
//! task wakes it. Dropping it drops the stream, which resets it, and the other
//! side drops the operation.

mod driver;

use std::sync::Arc;

use backend_core::{Error, ErrorKind, Result};
use futures::io::{ReadHalf, WriteHalf};
use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use crate::handshake::AgentInfo;
use crate::message::{FrameError, REQUEST_BYTES, Reply, Request, encode, ended, receive, send};
pub(crate) use driver::{ChannelSetup, start};
use driver::{DriverRequest, OpenedStream};

/// The number of concurrent calls on one channel. The multiplexer lets 256
/// streams wait for their first reply.
const CALLS: usize = 250;

/// The number of open connections on one channel. They do not count as calls.
const CONNECTIONS: usize = 1_000;

/// The reason why a channel ended. Every call in flight gets it.
#[derive(Debug, Clone)]
pub(crate) struct ChannelError {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

impl ChannelError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Unavailable,
            message: message.into(),
        }
    }

    pub(crate) fn broken(what: &str) -> Self {
        Self::new(format!(
            "the agent broke the protocol: {what}; something in the sandbox may have tampered with it"
        ))
    }

    pub(crate) fn error(&self) -> Error {
        Error::new(self.kind, self.message.clone())
    }
}

impl From<Error> for ChannelError {
    fn from(error: Error) -> Self {
        // Each call adds its own operation and path.
        let mut message = error.message().to_owned();
        let mut source = std::error::Error::source(&error);
        while let Some(below) = source {
            message.push_str(&format!(": {below}"));
            source = below.source();
        }
        Self {
            kind: error.kind(),
            message,
        }
    }
}

/// A channel to an agent. Dropping it ends the channel.
#[derive(Debug)]
pub(crate) struct Channel {
    requests: mpsc::UnboundedSender<DriverRequest>,
    lost: watch::Receiver<Option<ChannelError>>,
    permits: Arc<Semaphore>,
    connections: Arc<Semaphore>,
    pub(crate) info: AgentInfo,
}

impl Channel {
    /// Whether no more calls can be made.
    pub(crate) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Sends a request. Returns `None` if the channel was already gone, in
    /// which case nothing was sent.
    pub(crate) async fn call(self: &Arc<Self>, request: &Request) -> Result<Option<Call>> {
        let first = encode(request)?;
        if first.len() > REQUEST_BYTES {
            return Err(Error::too_large(format!(
                "the call has {} bytes, more than {REQUEST_BYTES}; do it in parts",
                first.len()
            )));
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| Error::internal("the channel lost count of its calls"))?;
        let open = |reply| DriverRequest::Open { first, reply };
        let Some(OpenedStream { stream, unsent }) = self.ask_driver(open).await else {
            return Ok(None);
        };
        let mut call = Call {
            stream,
            channel: Arc::clone(self),
            _permit: Arc::new(permit),
        };
        if !unsent.is_empty() {
            let rest = futures::AsyncWriteExt::write_all(&mut call.stream, &unsent);
            if self.unless_lost(rest).await?.is_err() {
                return Err(call.ended().await);
            }
        }
        Ok(Some(call))
    }

    /// Sends a request to the driver and waits for its result. Returns `None` if
    /// the channel was already gone.
    async fn ask_driver<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> DriverRequest,
    ) -> Option<T> {
        let (reply, mut done) = oneshot::channel();
        self.requests.send(request(reply)).ok()?;
        // A request sent while the channel ends may never be received or
        // dropped.
        match self.unless_lost(&mut done).await {
            Ok(done) => done.ok(),
            // A result is handed over before the end is announced.
            Err(_) => done.try_recv().ok(),
        }
    }

    fn end(&self, reason: ChannelError) {
        // If the channel is already gone, its reason stands.
        let _ = self.requests.send(DriverRequest::End(reason));
    }

    /// Ends the channel because the agent broke the protocol, and returns that
    /// error.
    pub(crate) async fn abort(&self, what: &str) -> Error {
        self.end(ChannelError::broken(what));
        self.reason().await
    }

    /// Ends the channel in an orderly way.
    pub(crate) async fn close(&self, why: &str) {
        self.end(ChannelError::new(why));
        // Waiting callers are notified first. When the sender is dropped, the
        // closing handshake is done.
        let mut lost = self.lost.clone();
        while lost.changed().await.is_ok() {}
    }

    /// Waits for `work` on a stream, or for the end of the channel. The
    /// multiplexer does not wake tasks that wait for a stream when it is closed
    /// in good order.
    async fn unless_lost<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            error = self.reason() => Err(error),
        }
    }

    /// Waits for the channel to end, and returns the reason.
    pub(crate) async fn reason(&self) -> Error {
        let mut lost = self.lost.clone();
        match lost.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(lost)) => lost.error(),
            _ => Error::unavailable("the channel to the agent ended; try again"),
        }
    }
}

/// A call in flight. Dropping it cancels it.
#[derive(Debug)]
pub(crate) struct Call<S = yamux::Stream> {
    stream: S,
    channel: Arc<Channel>,
    _permit: Arc<OwnedSemaphorePermit>,
}

/// The receiving direction of a connection.
pub(crate) type Receiving = Call<ReadHalf<yamux::Stream>>;
/// The sending direction of a connection.
pub(crate) type Sending = Call<WriteHalf<yamux::Stream>>;

impl Call {
    /// Keeps the call as a connection, which may stay open for long, and returns its two
    /// directions.
    pub(crate) fn into_connection(self) -> Result<(Receiving, Sending)> {
        let permit = Arc::clone(&self.channel.connections).try_acquire_owned();
        let permit = Arc::new(permit.map_err(|_| {
            Error::too_large(format!(
                "{CONNECTIONS} connections are open already; close some first"
            ))
        })?);
        let (reader, writer) = self.stream.split();
        let receiving = Call {
            stream: reader,
            channel: Arc::clone(&self.channel),
            _permit: Arc::clone(&permit),
        };
        let sending = Call {
            stream: writer,
            channel: self.channel,
            _permit: permit,
        };
        Ok((receiving, sending))
    }
}

impl<S: AsyncRead + Unpin> Call<S> {
    /// Receives the next reply of at most `limit` bytes. A failed operation is
    /// returned as an error.
    pub(crate) async fn reply(&mut self, limit: usize) -> Result<Reply> {
        let received = self.channel.unless_lost(receive(&mut self.stream, limit));
        match received.await? {
            Ok(Reply::Failed(error)) => Err(error),
            Ok(reply) => Ok(reply),
            Err(FrameError::Ended) => Err(self.ended().await),
            Err(FrameError::Broken(what)) => Err(self.channel.abort(&what).await),
        }
    }

    /// Waits until the other side has ended the stream, which it does after its
    /// answer.
    pub(crate) async fn answered(&mut self) {
        // The caller learns of a loss when it reads the answer.
        let _ = self.channel.unless_lost(ended(&mut self.stream)).await;
    }
}

impl<S: AsyncWrite + Unpin> Call<S> {
    /// Sends more of the request. Returns `false` if the other side does not
    /// want it.
    pub(crate) async fn send(&mut self, message: &impl Serialize) -> Result<bool> {
        let sent = send(&mut self.stream, message);
        Ok(self.channel.unless_lost(sent).await?.is_ok())
    }
}

impl<S> Call<S> {
    /// Ends the channel because of a reply of the wrong kind, and returns the
    /// error.
    pub(crate) async fn unexpected(&self, reply: &Reply, wanted: &str) -> Error {
        self.broken(&format!("{} instead of {wanted}", reply.name()))
            .await
    }

    /// Ends the channel because of an impossible reply, and returns the error.
    pub(crate) async fn broken(&self, what: &str) -> Error {
        self.channel.abort(what).await
    }

    /// Returns the reason why the stream ended without a reply.
    async fn ended(&self) -> Error {
        match self.channel.ask_driver(DriverRequest::Probe).await {
            Some(()) => Error::unavailable("the agent dropped the call; see its messages"),
            None => self.channel.reason().await,
        }
    }
}
