//! The output of an agent's process: standard output is the channel, standard
//! error goes to the log.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use backend_core::Result;
use bytes::{Buf as _, Bytes};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::io::{AsyncRead, ReadBuf};

use crate::machine::OutputChunk;

/// Bytes of an agent's messages that are logged. Later ones are dropped.
const LOGGED: usize = 64 * 1024;
/// Bytes of an agent's last message that are kept for errors.
const KEPT: usize = 150;

/// The channel's bytes, extracted from the process's output.
pub(super) struct AgentOutput {
    pieces: BoxStream<'static, Result<OutputChunk>>,
    rest: Bytes,
    messages: Messages,
}

impl AgentOutput {
    pub(super) fn new(pieces: BoxStream<'static, Result<OutputChunk>>, messages: Messages) -> Self {
        Self {
            pieces,
            rest: Bytes::new(),
            messages,
        }
    }
}

impl AsyncRead for AgentOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(self.pieces.poll_next_unpin(cx)) {
                Some(Ok(OutputChunk::Stdout(bytes))) => self.rest = bytes,
                Some(Ok(OutputChunk::Stderr(bytes))) => self.messages.add(&bytes),
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.rest.len().min(buffer.remaining());
        buffer.put_slice(self.rest.get(..length).unwrap_or_default());
        self.rest.advance(length);
        Poll::Ready(Ok(()))
    }
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
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail.last);
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}
