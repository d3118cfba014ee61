//! The byte stream under the multiplexer: buffered in both directions, and
//! counted, so that silence can be detected.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::io::poll_read_buf;

/// Bytes requested from the stream at once.
const READ: usize = 64 * 1024;
/// Bytes that may wait to be written.
const WRITE: usize = 64 * 1024;
/// Bytes read from the other side while this side cannot write.
const ABSORB: usize = 256 * 1024;

/// A reader and a writer as one stream.
///
/// Each side of the multiplexer stops reading while it still has to answer a
/// ping. If both did that with both pipes full, they would deadlock. So this
/// one goes on reading, up to a limit, while it waits to write.
pub(crate) struct Socket<R, W> {
    reader: R,
    writer: W,
    input: BytesMut,
    output: BytesMut,
    /// The result that ended reading, kept until the bytes before it are
    /// consumed.
    ended: Option<io::Result<()>>,
    received: Arc<AtomicU64>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Socket<R, W> {
    pub(crate) fn new(reader: R, writer: W) -> Self {
        Self {
            reader,
            writer,
            input: BytesMut::new(),
            output: BytesMut::new(),
            ended: None,
            received: Arc::default(),
        }
    }

    /// Returns the counter of received bytes, which keeps counting after the
    /// socket has been moved.
    pub(crate) fn received(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.received)
    }

    fn fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.input.reserve(READ);
        let read = ready!(poll_read_buf(
            Pin::new(&mut self.reader),
            cx,
            &mut self.input
        ));
        if let Ok(bytes) = &read {
            self.received.fetch_add(*bytes as u64, Ordering::Relaxed);
        }
        Poll::Ready(read)
    }

    /// Reads from the other side while this one cannot write.
    fn absorb(&mut self, cx: &mut Context<'_>) {
        while self.ended.is_none() && self.input.len() < ABSORB {
            match self.fill(cx) {
                Poll::Ready(Ok(0)) => self.ended = Some(Ok(())),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => self.ended = Some(Err(error)),
                Poll::Pending => return,
            }
        }
    }

    fn drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.output.is_empty() {
            match Pin::new(&mut self.writer).poll_write(cx, &self.output) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => self.output.advance(written),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(self.reason(error, cx))),
                Poll::Pending => {
                    self.absorb(cx);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Returns the other side's reason to end if it has arrived, and else the
    /// error of the write, which only says that nothing is read any more.
    fn reason(&mut self, error: io::Error, cx: &mut Context<'_>) -> io::Error {
        self.absorb(cx);
        match &mut self.ended {
            Some(ended) => std::mem::replace(ended, Ok(())).err().unwrap_or(error),
            None => error,
        }
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> futures::AsyncRead for Socket<R, W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if self.input.is_empty() {
            if let Some(ended) = &mut self.ended {
                return Poll::Ready(std::mem::replace(ended, Ok(())).map(|()| 0));
            }
            if ready!(self.fill(cx))? == 0 {
                self.ended = Some(Ok(()));
                return Poll::Ready(Ok(0));
            }
        }
        let length = buffer.len().min(self.input.len());
        self.input.copy_to_slice(&mut buffer[..length]);
        Poll::Ready(Ok(length))
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> futures::AsyncWrite for Socket<R, W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.output.len() >= WRITE {
            ready!(self.drain(cx))?;
        }
        self.output.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.drain(cx))?;
        let flushed = ready!(Pin::new(&mut self.writer).poll_flush(cx));
        Poll::Ready(flushed.map_err(|error| self.reason(error, cx)))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.drain(cx))?;
        Pin::new(&mut self.writer).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
