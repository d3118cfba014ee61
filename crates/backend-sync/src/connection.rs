//! [`SyncConnection`]: a connection to a port, with blocking calls.

use std::fmt;

use backend_core::{Connection, Error, Operation, Outgoing, Result};
use bytes::Bytes;

use crate::calls::Calls;
use crate::stream::SyncStream;

/// A connection to a port of a sandbox. It is closed when both parts are dropped.
#[derive(Debug)]
#[non_exhaustive]
pub struct SyncConnection {
    /// Bytes from the other side, as they arrive.
    pub incoming: SyncStream<Bytes>,
    /// Sends bytes to the other side.
    pub outgoing: SyncOutgoing,
}

impl SyncConnection {
    pub(crate) fn new(calls: &Calls, connection: Connection) -> Self {
        Self {
            incoming: SyncStream::new(calls.clone(), connection.incoming),
            outgoing: SyncOutgoing {
                calls: calls.clone(),
                outgoing: Some(connection.outgoing),
            },
        }
    }
}

/// The sending direction of a [`SyncConnection`].
pub struct SyncOutgoing {
    calls: Calls,
    /// `None` after a call that was cancelled: part of its bytes may have been sent.
    outgoing: Option<Box<dyn Outgoing>>,
}

impl SyncOutgoing {
    /// Sends `bytes`, waiting until there is room for them.
    ///
    /// See [`Outgoing::send`].
    pub fn send(&mut self, bytes: impl Into<Bytes>) -> Result<()> {
        let bytes = bytes.into();
        let mut outgoing = self.take()?;
        let sent = self.calls.call(Operation::Connect, async move {
            let sent = outgoing.send(bytes).await;
            Ok((sent, outgoing))
        });
        self.put(sent)
    }

    /// Announces the end of the bytes. The other direction stays open.
    ///
    /// See [`Outgoing::finish`].
    pub fn finish(&mut self) -> Result<()> {
        let mut outgoing = self.take()?;
        let finished = self.calls.call(Operation::Connect, async move {
            let finished = outgoing.finish().await;
            Ok((finished, outgoing))
        });
        self.put(finished)
    }

    /// Moves the sender to the call, which may run on another thread.
    fn take(&mut self) -> Result<Box<dyn Outgoing>> {
        let gone = || Error::unavailable("an earlier call was cancelled; connect again");
        self.outgoing
            .take()
            .ok_or_else(|| gone().during(Operation::Connect))
    }

    fn put(&mut self, done: Result<(Result<()>, Box<dyn Outgoing>)>) -> Result<()> {
        let (result, outgoing) = done?;
        self.outgoing = Some(outgoing);
        result
    }
}

impl Drop for SyncOutgoing {
    fn drop(&mut self) {
        if let Some(outgoing) = self.outgoing.take() {
            self.calls.engine.enter(|| drop(outgoing));
        }
    }
}

impl fmt::Debug for SyncOutgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = &self.calls;
        let mut shown = f.debug_struct("SyncOutgoing");
        shown.field("calls", calls).finish_non_exhaustive()
    }
}
