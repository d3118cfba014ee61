//! Writes the times of use back, for other processes to read.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::time::timeout;

use crate::lifecycle::Ending;
use crate::shared::Shared;
use crate::slot::{Phase, Slot};

/// The time after which a write no longer counts among those that are made at once: a session
/// that hangs must not keep the times of others from being written.
const LATE: Duration = Duration::from_secs(1);

impl Shared {
    /// Writes all times of use that are not written yet.
    pub(crate) async fn write_back(&self) {
        let slots = self.table.slots();
        join_all(slots.iter().map(|slot| self.write_use(slot))).await;
    }

    /// Begins to write all times of use that are not written yet.
    fn begin_write_back(self: &Arc<Self>) {
        for slot in self.table.slots() {
            if slot.phase() == Phase::Running {
                let shared = Arc::clone(self);
                let write = async move { shared.write_use(&slot).await };
                drop(self.handle.spawn(write.boxed()));
            }
        }
    }

    /// Writes the last use of a session, unless that is written or being written.
    async fn write_use(&self, slot: &Slot) {
        let Ok(_writing) = slot.writing.try_lock() else {
            return;
        };
        let permit = self.writes.acquire().await;
        let mut write = pin!(self.write_last_use(slot));
        if timeout(LATE, &mut write).await.is_err() {
            drop(permit);
            write.await;
        }
    }

    async fn write_last_use(&self, slot: &Slot) {
        if self.engine.is_shared() {
            // Other processes do not see them.
            let shells = slot.has_shells(self.settings.write_back);
            if shells.await == Some(true) {
                slot.touch();
            }
        }
        let Some(at) = slot.unwritten() else {
            return;
        };
        match self.engine.touch(&slot.id, at).await {
            Ok(is_there) => slot.note_written(at, is_there),
            Err(error) => {
                tracing::warn!(session = %slot.id, error = %error.chain(), "cannot write the time of the last use");
            }
        }
    }

    /// Ends the sessions that other processes ask this one to end.
    async fn end_requested(self: &Arc<Self>) {
        let requested = self.engine.release_requests().await;
        let requested = requested.unwrap_or_else(|error| {
            tracing::warn!(error = %error.chain(), "cannot look for sessions that are to be ended");
            Vec::new()
        });
        for id in requested {
            // A task of its own, because it may take long. A failure is an event.
            let ending = Arc::clone(self).end_by_id(id, Ending::Release);
            drop(self.handle.spawn(ending.map(drop).boxed()));
        }
    }
}

/// Writes times of use back at intervals, and ends what other processes ask to end, until
/// the manager is gone or shut down.
pub(crate) async fn write_back_forever(shared: Weak<Shared>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        let Some(shared) = shared.upgrade().filter(|shared| !shared.is_closing()) else {
            return;
        };
        shared.begin_write_back();
        shared.end_requested().await;
    }
}
