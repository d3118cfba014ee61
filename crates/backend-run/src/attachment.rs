//! A connection that is attached to a shell.

use std::sync::Arc;

use async_trait::async_trait;
use backend_core::limits::ATTACHED_BYTES;
use backend_core::ops::ShellState;
use backend_core::{Connection, Outgoing, Result};
use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::input::ShellInput;
use crate::log::WatchedLog;

/// Attaches a connection to a shell with this log and input.
pub(crate) fn attach(log: &Arc<WatchedLog>, input: Arc<ShellInput>) -> Connection {
    let log = Arc::clone(log);
    let number = log.attach();
    let outgoing = Sender {
        log: Arc::clone(&log),
        number,
        input,
    };
    Connection {
        incoming: incoming(Attachment { log, number }),
        outgoing: Box::new(outgoing),
    }
}

/// Detaches when it is dropped.
struct Attachment {
    log: Arc<WatchedLog>,
    number: u64,
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.log.detach(self.number);
    }
}

/// Output that was taken from the log and not yet delivered.
#[derive(Default)]
struct Taken {
    stdout: Bytes,
    stderr: Bytes,
    /// Whether nothing follows.
    is_last: bool,
}

impl Taken {
    fn piece(&mut self) -> Option<Bytes> {
        let streams = [&mut self.stdout, &mut self.stderr];
        let stream = streams.into_iter().find(|stream| !stream.is_empty())?;
        Some(stream.split_to(stream.len().min(ATTACHED_BYTES)))
    }
}

fn incoming(attachment: Attachment) -> BoxStream<'static, Result<Bytes>> {
    let state = Some((attachment, Taken::default()));
    Box::pin(futures_util::stream::unfold(state, async |state| {
        let (attachment, mut taken) = state?;
        loop {
            if let Some(piece) = taken.piece() {
                return Some((Ok(piece), Some((attachment, taken))));
            }
            if taken.is_last {
                return None;
            }
            match attachment.log.next(Some(attachment.number)).await {
                Ok(output) => {
                    taken = Taken {
                        stdout: output.stdout,
                        stderr: output.stderr,
                        is_last: output.state != ShellState::Running,
                    };
                }
                Err(error) => return Some((Err(error), None)),
            }
        }
    }))
}

struct Sender {
    log: Arc<WatchedLog>,
    number: u64,
    input: Arc<ShellInput>,
}

#[async_trait]
impl Outgoing for Sender {
    async fn send(&mut self, bytes: Bytes) -> Result<()> {
        self.log.check(Some(self.number))?;
        self.input.write(Some(bytes)).await
    }

    async fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
