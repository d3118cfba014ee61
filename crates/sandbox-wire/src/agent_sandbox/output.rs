//! The output of an agent's process: standard output is the channel, standard
//! error goes to the log.

use std::future;
use std::io;
use std::sync::{Arc, Mutex};

use backend_core::Result;
use backend_core::sync::lock;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::io::AsyncRead;
use tokio_util::io::StreamReader;

use crate::machine::OutputChunk;

/// Bytes of an agent's messages that are logged. Later ones are dropped.
const LOGGED: usize = 64 * 1024;
/// Bytes of an agent's last message that are kept for errors.
const KEPT: usize = 150;

/// Returns the bytes of the channel from a process's output, and hands its
/// messages over.
pub(super) fn channel_bytes(
    pieces: BoxStream<'static, Result<OutputChunk>>,
    messages: Messages,
) -> impl AsyncRead + Send + Unpin + 'static {
    let bytes = pieces.filter_map(move |piece| {
        future::ready(match piece {
            Ok(OutputChunk::Stdout(bytes)) => Some(Ok(bytes)),
            Ok(OutputChunk::Stderr(bytes)) => {
                messages.add(&bytes);
                None
            }
            Err(error) => Some(Err(io::Error::other(error))),
        })
    });
    StreamReader::new(bytes)
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
        let mut tail = lock(&self.0);
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
        let tail = lock(&self.0);
        let text = String::from_utf8_lossy(&tail.last);
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}
