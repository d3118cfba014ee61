//! An engine in memory that several managers share, as several processes share a daemon.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::Result;
use backend_state::StateBackend;
use backend_testkit::fake::{FakeSandbox, PausedClock};
use sessions::{
    Attached, Claim, Clock, Engine, OpenRequest, Record, RecordState, SessionId, SessionManager,
    SessionManagerBuilder, Usage,
};

use super::Fake;

/// Sessions that survive the managers which opened them. Clones are the same engine.
#[derive(Clone, Default)]
pub(crate) struct SharedEngine {
    world: Arc<World>,
}

#[derive(Default)]
struct World {
    clock: PausedClock,
    known: Mutex<BTreeMap<SessionId, Known>>,
    made: AtomicUsize,
    touches: AtomicUsize,
    ends_at_touch: AtomicBool,
    hangs_at_touch: Mutex<Option<SessionId>>,
    starts_ahead: AtomicBool,
    start_time: Mutex<Duration>,
}

struct Known {
    record: Record,
    files: StateBackend,
    sandbox: Option<Fake>,
}

impl SharedEngine {
    pub(crate) fn clock(&self) -> &PausedClock {
        &self.world.clock
    }

    /// Returns a builder for the manager of one more process.
    pub(crate) fn process(&self) -> SessionManagerBuilder {
        let clock = self.world.clock.clone();
        SessionManager::builder()
            .engine(Arc::new(self.clone()))
            .clock(Clock::new(move || clock.now()))
    }

    /// Returns how many sandboxes were ever made.
    pub(crate) fn made(&self) -> usize {
        self.world.made.load(Ordering::SeqCst)
    }

    /// Returns how often a time of use was written.
    pub(crate) fn touches(&self) -> usize {
        self.world.touches.load(Ordering::SeqCst)
    }

    /// Ends the next session whose use is written, as another process might.
    pub(crate) fn end_at_touch(&self) {
        self.world.ends_at_touch.store(true, Ordering::SeqCst);
    }

    /// Lets the writes of a session's use take forever from now on.
    pub(crate) fn hang_at_touch(&self, id: &str) {
        let id = SessionId::new(id).unwrap();
        *self.world.hangs_at_touch.lock().unwrap() = Some(id);
    }

    /// Claims sandboxes from now on that were started ahead of time, as with a pool.
    pub(crate) fn start_ahead(&self) {
        self.world.starts_ahead.store(true, Ordering::SeqCst);
    }

    /// Sets how long the start of a sandbox takes that is created from now on.
    pub(crate) fn set_start_time(&self, start_time: Duration) {
        *self.world.start_time.lock().unwrap() = start_time;
    }

    /// Returns the sandbox of a session, if it has one.
    pub(crate) fn sandbox(&self, id: &str) -> Option<Fake> {
        self.world.known.lock().unwrap().get(id)?.sandbox.clone()
    }
}

impl fmt::Debug for SharedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedEngine")
    }
}

#[async_trait]
impl Engine for SharedEngine {
    fn keeps_files(&self) -> bool {
        true
    }

    async fn claim(&self, request: &OpenRequest) -> Result<Claim> {
        // As long as a daemon takes, so that another process may come in between.
        tokio::task::yield_now().await;
        let mut known = self.world.known.lock().unwrap();
        let files = match known.get(&request.id) {
            Some(found) if found.sandbox.is_some() => return Ok(Claim::Taken),
            Some(found) => found.files.clone(),
            None => StateBackend::new(),
        };
        self.world.made.fetch_add(1, Ordering::SeqCst);
        let clock = self.world.clock.clone();
        let sandbox = FakeSandbox::new(request.id.as_str(), files.clone(), clock);
        sandbox.set_start_time(*self.world.start_time.lock().unwrap());
        let new = Known {
            record: Record::new(request, self.world.clock.now()),
            files,
            sandbox: Some(sandbox.clone()),
        };
        known.insert(request.id.clone(), new);
        let sandbox = Arc::new(sandbox);
        Ok(match self.world.starts_ahead.load(Ordering::SeqCst) {
            true => Claim::Started(sandbox),
            false => Claim::Created(sandbox),
        })
    }

    async fn attach(&self, id: &SessionId) -> Result<Option<Attached>> {
        let known = self.world.known.lock().unwrap();
        let Some(found) = known.get(id) else {
            return Ok(None);
        };
        let sandbox = found.sandbox.as_ref().map(FakeSandbox::attached);
        Ok(sandbox.map(|sandbox| Attached::new(Arc::new(sandbox), found.record.clone())))
    }

    async fn list(&self) -> Result<Vec<Record>> {
        let known = self.world.known.lock().unwrap();
        Ok(known.values().map(|known| known.record.clone()).collect())
    }

    async fn record(&self, id: &SessionId) -> Result<Option<Record>> {
        let known = self.world.known.lock().unwrap();
        Ok(known.get(id).map(|known| known.record.clone()))
    }

    async fn touch(&self, id: &SessionId, at: SystemTime) -> Result<bool> {
        self.world.touches.fetch_add(1, Ordering::SeqCst);
        let hangs = self.world.hangs_at_touch.lock().unwrap().as_ref() == Some(id);
        if hangs {
            return std::future::pending().await;
        }
        if self.world.ends_at_touch.swap(false, Ordering::SeqCst) {
            self.stop(id).await?;
            return Ok(false);
        }
        let mut known = self.world.known.lock().unwrap();
        let Some(found) = known.get_mut(id).filter(|found| found.sandbox.is_some()) else {
            return Ok(false);
        };
        found.record.last_activity = found.record.last_activity.max(at);
        Ok(true)
    }

    async fn stop(&self, id: &SessionId) -> Result<bool> {
        let mut known = self.world.known.lock().unwrap();
        let Some(found) = known.get_mut(id) else {
            return Ok(false);
        };
        found.record.state = RecordState::Stored;
        let sandbox = found.sandbox.take();
        // It is gone for every process that has it.
        Ok(sandbox.inspect(FakeSandbox::kill).is_some())
    }

    async fn purge(&self, id: &SessionId) -> Result<bool> {
        self.stop(id).await?;
        Ok(self.world.known.lock().unwrap().remove(id).is_some())
    }

    async fn usage(&self, id: &SessionId) -> Result<Option<Usage>> {
        let known = self.world.known.lock().unwrap();
        Ok(known.get(id).map(|_| Usage::default()))
    }
}
