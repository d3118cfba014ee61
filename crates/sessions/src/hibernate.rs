//! Room under the ceilings: an idle session sleeps, so that another one can start.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend_core::Result;

use crate::capacity::Permit;
use crate::error::{CapacityError, CapacityScope};
use crate::events::EventKind;
use crate::record::{Record, RecordState};
use crate::request::OpenRequest;
use crate::shared::Shared;
use crate::slot::{Phase, Slot};
use crate::time::elapsed;

/// The time in which a session that may sleep says whether it has shells: a caller waits.
const SHELLS_WAIT: Duration = Duration::from_secs(2);

/// The bounds of a retry hint.
const RETRY_HINT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

impl Shared {
    /// Takes a place under the ceilings, for which another session may have to sleep.
    pub(crate) async fn make_room(&self, request: &OpenRequest) -> Result<Permit> {
        loop {
            let full = match self.capacity.claim(request.tenant.as_ref()) {
                Ok(permit) => return Ok(permit),
                Err(full) => full,
            };
            if !self.hibernate_one(&full.scope).await {
                let retry_after = self.retry_hint(&full.scope);
                return Err(CapacityError::new(full.scope, full.limit, retry_after).into());
            }
        }
    }

    /// Puts the least recently used session under a ceiling to sleep, if one is idle.
    async fn hibernate_one(&self, scope: &CapacityScope) -> bool {
        if !self.engine.keeps_files() {
            return false;
        }
        let now = self.clock.now();
        let mut idle: Vec<_> = self.counted(scope);
        idle.retain(|slot| slot.phase() == Phase::Running && slot.calls() == 0);
        idle.sort_by_cached_key(|slot| slot.last_used());
        for slot in idle {
            if elapsed(slot.last_used(), now) < self.hibernate_after() {
                return false;
            }
            // Waiting here could be a circle: the holder may be waiting for our place.
            let Ok(_gate) = slot.gate.try_lock() else {
                continue;
            };
            match self.hibernate(&slot).await {
                Ok(true) => return true,
                Ok(false) => {}
                Err(error) => self.failed(&slot.id, &error),
            }
        }
        false
    }

    /// Returns how long a session must be idle before it may sleep. Where another process
    /// may use it too, that is long enough to have read of its use.
    fn hibernate_after(&self) -> Duration {
        let own = self.settings.hibernate_after;
        if self.engine.is_shared() {
            own.max(self.settings.write_back.saturating_mul(2))
        } else {
            own
        }
    }

    /// Puts one session to sleep, unless it is in use here or elsewhere.
    async fn hibernate(&self, slot: &Slot) -> Result<bool> {
        let seen = slot.last_touched();
        // One that does not answer may have shells.
        if slot.phase() != Phase::Running || slot.has_shells(SHELLS_WAIT).await != Some(false) {
            return Ok(false);
        }
        let Some(record) = self.engine.record(&slot.id).await? else {
            return Ok(false);
        };
        let idle = elapsed(record.last_activity, self.clock.now());
        if idle < self.hibernate_after() || !slot.close_if_unused_since(seen) {
            return Ok(false);
        }
        let since = record.last_activity.max(slot.last_used());
        let stopped = self.stop_unless_used(slot, since).await;
        let is_stopped = matches!(stopped, Ok(true));
        slot.set_phase(if is_stopped {
            Phase::Asleep
        } else {
            Phase::Running
        });
        if is_stopped {
            self.events.send(&slot.id, EventKind::Hibernated);
        }
        stopped
    }

    /// Stops a sandbox unless another process used it after `since`. Returns `true` if it
    /// does not run now.
    pub(crate) async fn stop_unless_used(&self, slot: &Slot, since: SystemTime) -> Result<bool> {
        if self.engine.stop_if_unused_since(&slot.id, since).await? {
            return Ok(true);
        }
        let record = self.engine.record(&slot.id).await?;
        let is_used =
            |record: Record| record.state == RecordState::Running && record.last_activity > since;
        Ok(!record.is_some_and(is_used))
    }

    /// Returns the open sessions that a ceiling counts.
    fn counted(&self, scope: &CapacityScope) -> Vec<Arc<Slot>> {
        let mut slots = self.table.open();
        if let CapacityScope::Tenant(tenant) = scope {
            slots.retain(|slot| slot.tenant().as_ref() == Some(tenant));
        }
        slots
    }

    /// Returns the time until a session under a ceiling may sleep or end as idle.
    fn retry_hint(&self, scope: &CapacityScope) -> Duration {
        let now = self.clock.now();
        let left = |slot: Arc<Slot>| {
            let mut timeout = slot.idle_timeout(None, self.settings.idle_timeout);
            if self.engine.keeps_files() {
                timeout = timeout.min(self.hibernate_after());
            }
            timeout.saturating_sub(elapsed(slot.last_used(), now))
        };
        let least = self.counted(scope).into_iter().map(left).min();
        least.unwrap_or_default().clamp(RETRY_HINT.0, RETRY_HINT.1)
    }
}
