//! [`Connection`]: a stream of bytes in both directions, into a sandbox.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use futures_core::Stream;
use futures_core::stream::BoxStream;

use crate::error::{Error, Result};

/// A connection to a program in a sandbox.
///
/// The two directions are independent: each can be moved to a task of its own, and
/// each ends by itself. The connection is closed when both are dropped;
/// [`Outgoing::finish`] closes one direction and leaves the other open.
///
/// Memory is bounded: a reader that stops reading slows the other side down, and
/// [`Outgoing::send`] waits while the other side does not read.
pub struct Connection {
    /// Bytes from the other side. The stream ends when that side has sent everything,
    /// or after an error.
    pub incoming: BoxStream<'static, Result<Bytes>>,
    /// Sends bytes to the other side.
    pub outgoing: Box<dyn Outgoing>,
}

impl Connection {
    /// Creates a connection from its two directions.
    pub fn new(incoming: BoxStream<'static, Result<Bytes>>, outgoing: impl Outgoing) -> Self {
        Self {
            incoming,
            outgoing: Box::new(outgoing),
        }
    }

    /// Keeps `guard` until both directions are dropped.
    #[must_use]
    pub fn holding(self, guard: impl Send + Sync + 'static) -> Self {
        self.with(Arc::new(guard), |error| error)
    }

    /// Changes every error of both directions.
    #[must_use]
    pub fn map_err(self, change: impl Fn(Error) -> Error + Send + Sync + 'static) -> Self {
        self.with(Arc::new(()), change)
    }

    fn with<G, F>(self, guard: Arc<G>, change: F) -> Self
    where
        G: Send + Sync + 'static,
        F: Fn(Error) -> Error + Send + Sync + 'static,
    {
        let change = Arc::new(change);
        let incoming = Wrapped {
            inner: self.incoming,
            change: Arc::clone(&change),
            _guard: Arc::clone(&guard),
        };
        let outgoing = Wrapped {
            inner: self.outgoing,
            change,
            _guard: guard,
        };
        Self::new(Box::pin(incoming), outgoing)
    }
}

/// One direction of a connection, with its errors changed.
struct Wrapped<D, F, G> {
    inner: D,
    change: Arc<F>,
    /// Dropped with the last direction.
    _guard: Arc<G>,
}

impl<F: Fn(Error) -> Error, G> Stream for Wrapped<BoxStream<'static, Result<Bytes>>, F, G> {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.inner.as_mut().poll_next(cx);
        next.map(|next| next.map(|bytes| bytes.map_err(&*self.change)))
    }
}

#[async_trait]
impl<F, G> Outgoing for Wrapped<Box<dyn Outgoing>, F, G>
where
    F: Fn(Error) -> Error + Send + Sync + 'static,
    G: Send + Sync + 'static,
{
    async fn send(&mut self, bytes: Bytes) -> Result<()> {
        self.inner.send(bytes).await.map_err(&*self.change)
    }

    async fn finish(&mut self) -> Result<()> {
        self.inner.finish().await.map_err(&*self.change)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// The sending direction of a [`Connection`].
///
/// # Signatures
///
/// The async methods, as they are written under `#[async_trait]`:
///
/// ```text
/// async fn send(&mut self, bytes: Bytes) -> Result<()>;
/// async fn finish(&mut self) -> Result<()>;
/// ```
#[async_trait]
pub trait Outgoing: Send + 'static {
    /// Sends `bytes`, waiting until there is room for them. If the call is dropped, a
    /// part of them may have been sent.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the other side reads no more, or is gone.
    async fn send(&mut self, bytes: Bytes) -> Result<()>;

    /// Announces the end of the bytes. The other direction stays open.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the other side is gone.
    async fn finish(&mut self) -> Result<()>;
}
