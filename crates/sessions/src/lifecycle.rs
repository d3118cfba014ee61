//! How a session begins, wakes and ends. Everything here holds the session's gate.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend_core::{Error, Result, Sandbox};

use crate::engine::{Attached, Claim};
use crate::error::{contended, copied, died, expired, purged, released, shut_down, stuck};
use crate::events::EventKind;
use crate::id::SessionId;
use crate::record::Record;
use crate::request::OpenRequest;
use crate::shared::Shared;
use crate::slot::{Begin, Call, Phase, Run, Slot};
use crate::time::elapsed;

/// How often a session is asked for while another process creates or ends it.
const CLAIMS: u32 = 40;

/// The pause before the next such try.
const CLAIM_PAUSE: Duration = Duration::from_millis(50);

/// How often a sandbox is started that other processes end meanwhile.
const STARTS: u32 = 3;

/// The files with which a session may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Files {
    /// Those it has, or none.
    Any,
    /// Only those it has.
    Own,
}

/// How a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Its files are kept, where the engine keeps files.
    Release,
    /// Its files are deleted.
    Purge,
}

impl Shared {
    /// Opens a session: reuses, wakes or starts it. Runs detached.
    pub(crate) async fn open(self: Arc<Self>, request: OpenRequest) -> Result<Arc<Slot>> {
        loop {
            let slot = self.slot(&request.id);
            let waited_for = slot.phase();
            let gate = slot.gate.lock().await;
            if self.is_closing() {
                self.forget_new(&slot);
                return Err(shut_down());
            }
            match slot.phase() {
                Phase::New => {
                    self.start_new(&slot, &request).await?;
                    return Ok(Arc::clone(&slot));
                }
                Phase::Ended => {
                    // One start, one failure for all who waited for it.
                    if let Some(failure) = slot.failure.get().filter(|_| waited_for == Phase::New) {
                        return Err(copied(failure));
                    }
                }
                Phase::Stuck | Phase::Closing => return Err(stuck(&slot.id)),
                Phase::Dead => return Err(died(&slot.id)),
                Phase::Running | Phase::Asleep => {
                    if let Some(record) = slot.record() {
                        record.check_serves(&request)?;
                    }
                    if !self.end_expired(&slot).await? {
                        slot.set_env(&request.env);
                        self.reuse(&slot, &request).await?;
                        return Ok(Arc::clone(&slot));
                    }
                    drop(gate);
                    self.tell_released(&slot.id);
                }
            }
        }
    }

    /// Removes a slot that was only made to wait at.
    pub(crate) fn forget_new(&self, slot: &Arc<Slot>) {
        if slot.phase() == Phase::New {
            slot.set_phase(Phase::Ended);
            self.table.remove(slot);
        }
    }

    /// Starts a session that is not open here. If that fails, nothing is left of it.
    async fn start_new(&self, slot: &Arc<Slot>, request: &OpenRequest) -> Result<()> {
        let begun = self.clock.now();
        self.events.send(&slot.id, EventKind::Opening);
        let started = self.start(slot, request, Files::Any).await;
        if let Err(error) = started {
            self.failed(&slot.id, &error);
            let _ = slot.failure.set(copied(&error));
            self.forget_new(slot);
            return Err(error);
        }
        let took = elapsed(begun, self.clock.now());
        self.events
            .send_with(&slot.id, EventKind::Opened, Some(took));
        Ok(())
    }

    async fn start(&self, slot: &Slot, request: &OpenRequest, files: Files) -> Result<()> {
        let mut request = self.with_tenant(request).await?;
        let permit = self.make_room(&request).await?;
        let (found, confirmed) = self.sandbox_of(&request, files).await?;
        request.env = found.env;
        let refresh_after = self.refresh_after(&found.record);
        let run = Run {
            record: found.record,
            permit,
            confirmed,
            refresh_after,
        };
        slot.run(found.sandbox, request, run);
        Ok(())
    }

    /// Fills in the tenant of a session that exists, if a ceiling counts it.
    async fn with_tenant(&self, request: &OpenRequest) -> Result<OpenRequest> {
        let mut request = request.clone();
        if request.tenant.is_none() && self.capacity.limits_tenants() {
            let record = self.engine.record(&request.id).await?;
            request.tenant = record.and_then(|record| record.tenant);
        }
        Ok(request)
    }

    /// Returns the time without a confirmed use after which another process could end a
    /// session as idle before it reads of the next use.
    fn refresh_after(&self, record: &Record) -> Duration {
        if !self.engine.is_shared() {
            return Duration::MAX;
        }
        let timeout = record.idle_timeout.unwrap_or(self.settings.idle_timeout);
        let unread = self.settings.write_back.saturating_mul(3);
        timeout.saturating_sub(unread).max(timeout / 4)
    }

    /// Writes that a session is used again, if another process could be about to end it.
    /// What that process did is done when this returns.
    async fn refresh(&self, slot: &Slot) -> Result<()> {
        if slot.is_stale() {
            let now = self.clock.now();
            let is_there = self.engine.touch(&slot.id, now).await?;
            slot.touch();
            slot.note_written(now, is_there);
        }
        Ok(())
    }

    /// Gives back a session that is open here.
    async fn reuse(&self, slot: &Arc<Slot>, request: &OpenRequest) -> Result<()> {
        if slot.phase() == Phase::Asleep {
            return self.resume(slot).await;
        }
        self.refresh(slot).await?;
        if !request.env.is_empty() {
            self.engine.set_env(&slot.id, &request.env).await?;
        }
        if let Some(sandbox) = slot.sandbox()
            && !sandbox.is_alive().await?
        {
            if slot.is_paused() {
                sandbox.start().await?;
            } else {
                self.bury(slot);
                return self.revive(slot).await;
            }
        }
        slot.touch();
        self.events.send(&slot.id, EventKind::Reused);
        Ok(())
    }

    /// Recreates a sandbox that died, if its files survive.
    async fn revive(&self, slot: &Arc<Slot>) -> Result<()> {
        if slot.phase() == Phase::Asleep {
            self.resume(slot).await
        } else {
            Err(died(&slot.id))
        }
    }

    /// Notes that the sandbox of a session has died.
    fn bury(&self, slot: &Slot) {
        let keeps_files = self.engine.keeps_files();
        slot.set_phase(if keeps_files {
            Phase::Asleep
        } else {
            Phase::Dead
        });
        let text = "its sandbox died".to_owned();
        self.events.send(&slot.id, EventKind::Failed(text));
    }

    /// Looks after a call failed as unavailable whether the sandbox died. Fails if the
    /// session was purged. Runs detached.
    pub(crate) async fn examine(self: Arc<Self>, slot: Arc<Slot>) -> Result<()> {
        let _gate = slot.gate.lock().await;
        if slot.phase() != Phase::Running || slot.is_paused() {
            return Ok(());
        }
        // A state that cannot be determined is not a death.
        if let Some(sandbox) = slot.sandbox()
            && matches!(sandbox.is_alive().await, Ok(false))
        {
            self.bury(&slot);
            if slot.phase() == Phase::Asleep
                && matches!(self.engine.record(&slot.id).await, Ok(None))
            {
                return Err(purged(&slot.id));
            }
        }
        Ok(())
    }

    /// Begins a call on a session that may sleep. Runs detached.
    pub(crate) async fn wake(self: Arc<Self>, slot: Arc<Slot>) -> Result<Call> {
        let _gate = slot.gate.lock().await;
        match slot.phase() {
            Phase::Asleep => self.resume(&slot).await?,
            Phase::Running if slot.is_stale() => {
                self.refresh(&slot).await?;
                self.wake_ended(&slot).await?;
            }
            _ => {}
        }
        match slot.begin_written() {
            Begin::Ready(call) => Ok(call),
            Begin::Refused(error) => Err(error),
            Begin::Wait => Err(released(&slot.id)),
        }
    }

    /// Starts a session again that another process ended as idle, before a call fails.
    async fn wake_ended(&self, slot: &Arc<Slot>) -> Result<()> {
        let may_wake = self.engine.keeps_files() && !slot.is_paused();
        if let Some(sandbox) = slot.sandbox().filter(|_| may_wake)
            && matches!(sandbox.is_alive().await, Ok(false))
        {
            slot.set_phase(Phase::Asleep);
            return self.resume(slot).await;
        }
        Ok(())
    }

    /// Starts a session that sleeps, on its files.
    async fn resume(&self, slot: &Arc<Slot>) -> Result<()> {
        if self.is_closing() {
            return Err(shut_down());
        }
        let begun = self.clock.now();
        let Some(request) = slot.request() else {
            return Err(released(&slot.id));
        };
        if let Err(error) = self.start(slot, &request, Files::Own).await {
            if matches!(self.engine.record(&slot.id).await, Ok(None)) {
                slot.set_phase(Phase::Ended);
                self.table.remove(slot);
                return Err(purged(&slot.id));
            }
            self.failed(&slot.id, &error);
            return Err(error);
        }
        let took = elapsed(begun, self.clock.now());
        self.events
            .send_with(&slot.id, EventKind::Woken, Some(took));
        Ok(())
    }

    /// Returns the running sandbox of a session, created now or found, and the last use that
    /// other processes can read of.
    async fn sandbox_of(
        &self,
        request: &OpenRequest,
        files: Files,
    ) -> Result<(Attached, SystemTime)> {
        let id = &request.id;
        let mut starts = 0;
        for attempt in 0..CLAIMS {
            if attempt > 0 {
                tokio::time::sleep(CLAIM_PAUSE).await;
            }
            // A new sandbox would be a blank one.
            if files == Files::Own && self.engine.record(id).await?.is_none() {
                return Err(purged(id));
            }
            let begun = self.clock.now();
            let created = |sandbox| {
                let record = Record::new(request, self.clock.now());
                Attached::new(sandbox, record).with_env(request.env.clone())
            };
            let (mut found, is_new) = match self.engine.claim(request).await? {
                Claim::Started(sandbox) => return Ok((created(sandbox), begun)),
                Claim::Created(sandbox) => (created(sandbox), true),
                Claim::Taken => match self.attach(request).await? {
                    Some(attached) => (attached, false),
                    None => continue,
                },
            };
            starts += 1;
            let confirmed = match self.start_used(id, &*found.sandbox, begun).await {
                Ok(confirmed) => confirmed,
                Err(_) if starts < STARTS && self.was_ended(id).await => continue,
                Err(error) => {
                    if is_new {
                        self.end_failed(id).await;
                    }
                    return Err(error);
                }
            };
            if !request.env.is_empty() && request.env != found.env {
                self.engine.set_env(id, &request.env).await?;
                found.env.clone_from(&request.env);
            }
            return Ok((found, confirmed));
        }
        Err(contended(id))
    }

    /// Returns the sandbox of a session that exists. `None` if another process has just ended
    /// it.
    async fn attach(&self, request: &OpenRequest) -> Result<Option<Attached>> {
        let Some(attached) = self.engine.attach(&request.id).await? else {
            return Ok(None);
        };
        attached.record.check_serves(request)?;
        // First, so that no other process ends it as idle meanwhile, or has just done so.
        let is_there = self.engine.touch(&request.id, self.clock.now()).await?;
        Ok(is_there.then_some(attached))
    }

    /// Starts a sandbox. That may take longer than its idle timeout: it is in use meanwhile.
    /// Returns the last use that was written.
    async fn start_used(
        &self,
        id: &SessionId,
        sandbox: &dyn Sandbox,
        mut confirmed: SystemTime,
    ) -> Result<SystemTime> {
        if !self.engine.is_shared() {
            return sandbox.start().await.map(|()| confirmed);
        }
        let started = tokio::select! {
            started = sandbox.start() => started,
            never = self.write_use_forever(id, &mut confirmed) => match never {},
        };
        started.map(|()| confirmed)
    }

    async fn write_use_forever(&self, id: &SessionId, confirmed: &mut SystemTime) -> Infallible {
        loop {
            tokio::time::sleep(self.settings.write_back).await;
            let now = self.clock.now();
            match self.engine.touch(id, now).await {
                Ok(true) => *confirmed = now,
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(session = %id, "a use was not written: {}", error.chain());
                }
            }
        }
    }

    /// Whether another process has ended a session that did not start.
    async fn was_ended(&self, id: &SessionId) -> bool {
        let is_there = self.engine.touch(id, self.clock.now());
        self.engine.is_shared() && matches!(is_there.await, Ok(false))
    }

    /// Ends a sandbox that was created and did not start.
    async fn end_failed(&self, id: &SessionId) {
        if let Err(error) = self.engine.stop(id).await {
            tracing::warn!(session = %id, error = %error.chain(), "cannot end a sandbox that failed to start");
        }
    }

    /// Ends a session that is past its lifetime and has no call under way.
    async fn end_expired(&self, slot: &Arc<Slot>) -> Result<bool> {
        if !slot.is_expired() {
            return Ok(false);
        }
        if !slot.close_if_unused() {
            return Err(expired(&slot.id));
        }
        self.end(slot, Ending::Release, EventKind::Reaped).await?;
        Ok(true)
    }

    /// Ends a session. If that fails, no call begins any more, and it can be tried again.
    pub(crate) async fn end(
        &self,
        slot: &Arc<Slot>,
        ending: Ending,
        event: EventKind,
    ) -> Result<()> {
        slot.set_phase(Phase::Closing);
        let ended = self.end_in_engine(&slot.id, ending).await;
        if let Err(error) = ended {
            slot.set_phase(Phase::Stuck);
            self.failed(&slot.id, &error);
            return Err(error);
        }
        self.ended(slot, event);
        Ok(())
    }

    /// Forgets a session whose sandbox has ended.
    pub(crate) fn ended(&self, slot: &Arc<Slot>, event: EventKind) {
        slot.set_phase(Phase::Ended);
        self.table.remove(slot);
        self.events.send(&slot.id, event);
    }

    pub(crate) async fn end_in_engine(&self, id: &SessionId, ending: Ending) -> Result<bool> {
        match ending {
            Ending::Release => self.engine.stop(id).await,
            Ending::Purge => self.engine.purge(id).await,
        }
    }

    /// Releases or purges a session, of this process or another one. Runs detached.
    pub(crate) async fn end_by_id(self: Arc<Self>, id: SessionId, ending: Ending) -> Result<bool> {
        loop {
            // Also for a session that is not open here: it is not opened meanwhile.
            let slot = self.slot(&id);
            let gate = slot.gate.lock().await;
            match slot.phase() {
                Phase::Ended => continue,
                Phase::New => {
                    let ended = self.end_in_engine(&id, ending).await;
                    self.forget_new(&slot);
                    return ended;
                }
                _ => {}
            }
            self.end(&slot, ending, EventKind::Released).await?;
            drop(gate);
            self.tell_released(&id);
            return Ok(true);
        }
    }

    pub(crate) fn failed(&self, id: &SessionId, error: &Error) {
        let text = error.chain().to_string();
        tracing::warn!(session = %id, error = %text, "a session failed");
        self.events.send(id, EventKind::Failed(text));
    }
}
