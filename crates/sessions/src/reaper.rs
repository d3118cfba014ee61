//! Ends sessions that are idle or old, and everything at shutdown.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use backend_core::{Error, Result};
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::events::EventKind;
use crate::id::SessionId;
use crate::lifecycle::Ending;
use crate::record::{Record, RecordState};
use crate::shared::Shared;
use crate::slot::{Phase, Slot};
use crate::time::elapsed;

/// The time between two passes of the reaper.
pub const REAPER_INTERVAL: Duration = Duration::from_secs(300);

/// Sessions that are ended at once.
const AT_ONCE: usize = 16;

/// The time in which an idle session says whether it has shells.
const SHELLS_WAIT: Duration = Duration::from_secs(30);

/// A later use by another process is one that is later by more than this: clocks and
/// rounding differ.
const TOLERANCE: Duration = Duration::from_secs(1);

impl Shared {
    /// Ends what is due, in this process and left behind by others. Returns how many.
    pub(crate) async fn cleanup(self: Arc<Self>, max_idle: Option<Duration>) -> Result<usize> {
        let default_idle = self.settings.idle_timeout;
        let mut due = self.table.slots();
        due.retain(|slot| slot.is_due(max_idle, default_idle));
        let reap = |slot: Arc<Slot>| {
            let shared = Arc::clone(&self);
            async move { shared.reap(slot, max_idle).await }
        };
        let reaped: Vec<_> = stream::iter(due)
            .map(reap)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let own = reaped.into_iter().filter(|is_reaped| *is_reaped).count();
        let left = self.reap_left(max_idle).await?;
        Ok(own + left)
    }

    /// Ends one session if it is still due, and says whether it did. One that cannot be
    /// ended does not stop the pass.
    async fn reap(&self, slot: Arc<Slot>, max_idle: Option<Duration>) -> bool {
        let gate = slot.gate.lock().await;
        let reaped = self.reap_locked(&slot, max_idle).await;
        drop(gate);
        match reaped {
            Ok(true) => {
                self.tell_released(&slot.id);
                true
            }
            Ok(false) => false,
            Err(error) => {
                tracing::warn!(session = %slot.id, error = %error.chain(), "cannot end an idle session");
                false
            }
        }
    }

    async fn reap_locked(&self, slot: &Arc<Slot>, max_idle: Option<Duration>) -> Result<bool> {
        let default_idle = self.settings.idle_timeout;
        let seen = slot.last_touched();
        if !slot.is_due(max_idle, default_idle) {
            return Ok(false);
        }
        let is_forced = matches!(slot.phase(), Phase::Stuck | Phase::Closing) || slot.is_expired();
        if is_forced {
            return self.reap_forced(slot).await;
        }
        // One that was not used for so long and does not answer is ended.
        if slot.has_shells(SHELLS_WAIT).await == Some(true) {
            slot.touch();
            return Ok(false);
        }
        let Some(record) = self.engine.record(&slot.id).await? else {
            // Another process has ended it.
            if !slot.close_if_unused_since(seen) {
                return Ok(false);
            }
            self.ended(slot, EventKind::Reaped);
            return Ok(true);
        };
        let idle = elapsed(record.last_activity, self.clock.now());
        if idle <= slot.idle_timeout(max_idle, default_idle) {
            slot.used_elsewhere(record.last_activity);
            return Ok(false);
        }
        self.reap_unused(slot, record.last_activity.max(seen), seen)
            .await
    }

    /// Ends a session that is past its lifetime or could not be ended before.
    async fn reap_forced(&self, slot: &Arc<Slot>) -> Result<bool> {
        if !slot.close_if_unused() {
            return Ok(false);
        }
        self.end(slot, Ending::Release, EventKind::Reaped).await?;
        Ok(true)
    }

    /// Ends a session that no process has used since `since`, and this one not since `seen`.
    async fn reap_unused(
        &self,
        slot: &Arc<Slot>,
        since: SystemTime,
        seen: SystemTime,
    ) -> Result<bool> {
        let before = slot.phase();
        if !slot.close_if_unused_since(seen) {
            return Ok(false);
        }
        match self.stop_unless_used(slot, since).await {
            Ok(true) => {
                self.ended(slot, EventKind::Reaped);
                Ok(true)
            }
            Ok(false) => {
                slot.set_phase(before);
                Ok(false)
            }
            Err(error) => {
                // Not stuck: another process may use it, so the next pass looks again.
                slot.set_phase(before);
                self.failed(&slot.id, &error);
                Err(error)
            }
        }
    }

    /// Ends idle sessions that no manager of this process has open: their process has
    /// ended, or will see that they are gone.
    async fn reap_left(&self, max_idle: Option<Duration>) -> Result<usize> {
        let now = self.clock.now();
        let own: HashSet<SessionId> = self.table.slots().iter().map(|s| s.id.clone()).collect();
        let is_idle = |record: &Record| {
            let own_timeout = max_idle.or(record.idle_timeout);
            let timeout = own_timeout.unwrap_or(self.settings.idle_timeout);
            let is_old = record
                .max_lifetime
                .is_some_and(|lifetime| elapsed(record.created, now) > lifetime);
            let idle = elapsed(record.last_activity, now);
            // An old one may have a call under way in its process, which keeps it current.
            idle > timeout || (is_old && idle > self.settings.write_back.saturating_mul(2))
        };
        let mut ended = 0;
        for record in self.engine.list_recent().await? {
            let exists = record.state != RecordState::Stored;
            if exists && !own.contains(&record.id) && is_idle(&record) {
                ended += usize::from(self.end_left(&record).await);
            }
        }
        Ok(ended)
    }

    /// Ends a session that is not open here, unless it was used after its record was read.
    async fn end_left(&self, record: &Record) -> bool {
        let slot = self.slot(&record.id);
        // If it is locked, it is being opened.
        let Ok(_gate) = slot.gate.try_lock() else {
            return false;
        };
        if slot.phase() != Phase::New {
            return false;
        }
        let since = record.last_activity;
        let stopped = self.engine.stop_if_unused_since(&record.id, since).await;
        match &stopped {
            Ok(true) => self.events.send(&record.id, EventKind::Reaped),
            Ok(false) => {}
            Err(error) => self.failed(&record.id, error),
        }
        self.forget_new(&slot);
        matches!(stopped, Ok(true))
    }

    /// Ends a session at shutdown, unless another process used it later.
    async fn end_at_shutdown(self: Arc<Self>, slot: Arc<Slot>) -> Result<bool> {
        let gate = slot.gate.lock().await;
        if matches!(slot.phase(), Phase::New | Phase::Ended) {
            return Ok(false);
        }
        if self.engine.is_shared() {
            self.leave(&slot).await?;
        } else {
            self.end(&slot, Ending::Release, EventKind::Released)
                .await?;
        }
        drop(gate);
        self.tell_released(&slot.id);
        Ok(true)
    }

    /// Ends a session that other processes may use, unless one did later than this one.
    async fn leave(&self, slot: &Arc<Slot>) -> Result<()> {
        let since = slot.last_used() + TOLERANCE;
        slot.set_phase(Phase::Closing);
        // Whether it was stopped or is left to its user: it is over here.
        if let Err(error) = self.stop_unless_used(slot, since).await {
            slot.set_phase(Phase::Stuck);
            self.failed(&slot.id, &error);
            return Err(error);
        }
        self.ended(slot, EventKind::Released);
        Ok(())
    }

    /// Ends every session concurrently, within `deadline`.
    pub(crate) async fn shutdown(self: Arc<Self>, deadline: Duration) -> Shutdown {
        let begun = Instant::now();
        let left = || deadline.saturating_sub(begun.elapsed());
        self.close();
        let _ = timeout(left(), self.write_back()).await;
        let mut report = Shutdown::default();
        let mut tasks = JoinSet::new();
        let mut open = HashSet::new();
        for slot in self.table.slots() {
            open.insert(slot.id.clone());
            let shared = Arc::clone(&self);
            let id = slot.id.clone();
            let ending = async move { (id, shared.end_at_shutdown(slot).await) };
            tasks.spawn_on(ending, &self.handle);
        }
        let collect = async {
            while let Some(joined) = tasks.join_next().await {
                let Ok((id, ended)) = joined else {
                    continue;
                };
                open.remove(&id);
                match ended {
                    Ok(true) => report.ended += 1,
                    Ok(false) => {}
                    Err(error) => report.failed.push((id, error)),
                }
            }
        };
        let _ = timeout(left(), collect).await;
        // What is late goes on by itself.
        tasks.detach_all();
        report.unfinished = open.into_iter().collect();
        report.unfinished.sort();
        match timeout(left(), self.engine.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %error.chain(), "cannot close the engine of the sessions");
            }
            Err(_) => tracing::warn!("the engine of the sessions was not closed in time"),
        }
        report
    }
}

/// The result of a shutdown.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Shutdown {
    /// Number of sessions that were ended.
    pub ended: usize,
    /// Sessions that could not be ended.
    pub failed: Vec<(SessionId, Error)>,
    /// Sessions that were not ended within the deadline, or whose end panicked.
    pub unfinished: Vec<SessionId>,
}

/// Reaps at intervals, until the manager is gone or shut down.
pub(crate) async fn reap_forever(shared: Weak<Shared>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        let Some(shared) = shared.upgrade().filter(|shared| !shared.is_closing()) else {
            return;
        };
        if let Err(error) = Arc::clone(&shared).cleanup(None).await {
            tracing::warn!(error = %error.chain(), "a pass of the reaper failed");
        }
        if let Err(error) = shared.engine.maintain(shared.clock.now()).await {
            tracing::warn!(error = %error.chain(), "the upkeep of the engine failed");
        }
    }
}
