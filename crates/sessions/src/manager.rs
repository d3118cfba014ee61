//! [`SessionManager`]: opens, finds and ends sessions.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backend_core::Result;
use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;
use tracing::Instrument as _;

use crate::events::{Counters, EventKind, SessionEvent};
use crate::id::SessionId;
use crate::lifecycle::Ending;
use crate::reaper::{Shutdown, reap_forever};
use crate::record::Record;
use crate::request::{OpenRequest, Report};
use crate::session::Session;
use crate::shared::Shared;
use crate::slot::Phase;
use crate::snapshot::{SessionStatus, Snapshot, Status};
use crate::write_back::write_back_forever;

/// Sessions asked for their use of resources at once.
const USAGES_AT_ONCE: usize = 16;

/// Opens, finds and ends the sessions of a program. Clones share them.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> backend_core::Result<()> {
/// use std::sync::Arc;
/// use backend_core::{BackendExt as _, Error, Sandbox};
/// use backend_local::LocalBackend;
/// use sessions::{OpenRequest, SessionManager};
/// # let root = tempfile::tempdir().unwrap();
/// # let root = root.path().to_owned();
///
/// let factory = move |request: OpenRequest| {
///     let directory = root.join(request.id.as_str());
///     async move {
///         std::fs::create_dir_all(&directory).unwrap();
///         let local = LocalBackend::builder(directory).enable_execute(true).open()?;
///         Ok::<Arc<dyn Sandbox>, Error>(Arc::new(local))
///     }
/// };
/// let manager = SessionManager::builder().factory(factory).build()?;
///
/// let alice = manager.get_or_create("alice").await?;
/// alice.write_file("notes.md", "milk\n").await?;
/// let bob = manager.get_or_create("bob").await?;
/// assert!(!bob.exists("notes.md").await?);
///
/// let again = manager.get_or_create("alice").await?;
/// assert_eq!(again.read_to_string("notes.md").await?, "milk\n");
/// assert_eq!(manager.len(), 2);
///
/// manager.release("alice").await?;
/// assert!(alice.read_to_string("notes.md").await.is_err());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct SessionManager {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    reaper: Mutex<Option<AbortHandle>>,
    write_back: AbortHandle,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.write_back.abort();
        let reaper = self
            .reaper
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(reaper) = reaper.take() {
            reaper.abort();
        }
    }
}

impl SessionManager {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let interval = shared.settings.write_back;
        let task = write_back_forever(Arc::downgrade(&shared), interval);
        let write_back = shared.handle.spawn(task.boxed()).abort_handle();
        Self {
            inner: Arc::new(Inner {
                shared,
                reaper: Mutex::new(None),
                write_back,
            }),
        }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// Returns the session of a returning user, or creates one with the defaults.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); `InvalidInput` if `id` is not an id.
    pub async fn get_or_create(&self, id: &str) -> Result<Session> {
        self.open(OpenRequest::new(SessionId::new(id)?)).await
    }

    /// Opens a session: returns the one that exists, in this process or another one, wakes
    /// it if it sleeps, or creates it.
    ///
    /// However many callers open one id at once, there is one start, and all get its
    /// result. A caller that stops waiting does not end the start: the session is open when
    /// it is done.
    ///
    /// # Errors
    ///
    /// `Conflict` if the session exists with another runtime or for another tenant;
    /// `RateLimited` with a [`CapacityError`](crate::CapacityError) as its source if a
    /// ceiling is reached; `Unavailable` if its sandbox died with its files or the manager
    /// is shut down; and the errors of the engine.
    pub async fn open(&self, request: OpenRequest) -> Result<Session> {
        request.check()?;
        let shared = self.shared();
        let settings = &shared.settings;
        let request = request
            .with_defaults(settings.runtime.as_ref(), settings.max_lifetime)
            .reporting_to(self.progress());
        let span = tracing::info_span!("session.open", session = %request.id);
        let opening = Arc::clone(shared).open(request).instrument(span);
        let slot = shared.detached(opening).await?;
        Ok(Session::new(slot, Arc::clone(shared)))
    }

    /// Returns the receiver of progress while sessions are created.
    fn progress(&self) -> Report {
        // Weak: engines keep it in sandboxes, and those are kept by what it refers to.
        let shared = Arc::downgrade(self.shared());
        Arc::new(move |id: &SessionId, message: &str| {
            if let Some(shared) = shared.upgrade() {
                let message = EventKind::Progress(message.to_owned());
                shared.events.send(id, message);
            }
        })
    }

    /// Returns a session that is open in this process. It is neither woken nor used by
    /// this.
    pub fn get(&self, id: &str) -> Option<Session> {
        let slot = self.shared().table.get(id)?;
        let is_open = !matches!(slot.phase(), Phase::New | Phase::Stuck | Phase::Ended);
        is_open.then(|| Session::new(slot, Arc::clone(self.shared())))
    }

    /// Whether a session is open in this process, running or hibernated.
    pub fn contains(&self, id: &str) -> bool {
        self.get(id).is_some()
    }

    /// Returns the number of sessions that are open in this process.
    pub fn len(&self) -> usize {
        self.shared().table.open().len()
    }

    /// Whether no session is open in this process.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lists all sessions that the engine knows, also those of other processes and those
    /// of which only files exist.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the engine cannot be reached.
    pub async fn list(&self) -> Result<Vec<Record>> {
        let shared = self.shared();
        let mut records = shared.engine.list().await?;
        for record in &mut records {
            let own = shared.table.get(record.id.as_str());
            if let Some(own) = own.and_then(|slot| slot.record()) {
                // What is used here may not be written back yet.
                record.last_activity = record.last_activity.max(own.last_activity);
            }
        }
        Ok(records)
    }

    /// Counts as a use of a session, without a call. Returns `false` if it is not open in
    /// this process.
    pub fn touch(&self, id: &str) -> bool {
        let slot = self.shared().table.get(id);
        let open = slot.filter(|slot| matches!(slot.phase(), Phase::Running | Phase::Asleep));
        open.inspect(|slot| slot.touch()).is_some()
    }

    /// Ends a session and everything that runs in it. Its files are kept, where the engine
    /// keeps files. Returns `false` if there was nothing to end.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if `id` is not an id; the errors of the engine. Then no call
    /// begins any more, and this can be repeated.
    pub async fn release(&self, id: &str) -> Result<bool> {
        self.end(id, Ending::Release).await
    }

    /// Ends a session and deletes its files. Returns `false` if there was neither.
    ///
    /// # Errors
    ///
    /// As [`release`](Self::release).
    pub async fn purge(&self, id: &str) -> Result<bool> {
        self.end(id, Ending::Purge).await
    }

    async fn end(&self, id: &str, ending: Ending) -> Result<bool> {
        let id = SessionId::new(id)?;
        let span = tracing::info_span!("session.end", session = %id, ?ending);
        let ending = Arc::clone(self.shared()).end_by_id(id, ending);
        self.shared().detached(ending.instrument(span)).await
    }

    /// Ends the sessions that have not been used for `max_idle`, or else for their idle
    /// timeout, and those past their lifetime. Returns how many were ended.
    ///
    /// Calls under way, long commands and background shells count as use, in every process.
    /// Sessions that a process left behind are ended too.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the engine cannot be reached. A session that cannot be ended is
    /// reported as an event and tried again by the next pass.
    pub async fn cleanup_idle(&self, max_idle: Option<Duration>) -> Result<usize> {
        let cleanup = Arc::clone(self.shared()).cleanup(max_idle);
        self.shared().detached(cleanup).await
    }

    /// Starts to end idle sessions in the background, every `interval`. A reaper that runs
    /// already is replaced. [`REAPER_INTERVAL`](crate::REAPER_INTERVAL) suits most.
    pub fn start_reaper(&self, interval: Duration) {
        let shared = self.shared();
        let task = shared
            .handle
            .spawn(reap_forever(Arc::downgrade(shared), interval).boxed());
        self.replace_reaper(Some(task.abort_handle()));
    }

    /// Stops the reaper. Returns `false` if none ran.
    pub fn stop_reaper(&self) -> bool {
        self.replace_reaper(None)
    }

    fn replace_reaper(&self, reaper: Option<AbortHandle>) -> bool {
        let mut current = self
            .inner
            .reaper
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let former = std::mem::replace(&mut *current, reaper);
        drop(current);
        former.inspect(AbortHandle::abort).is_some()
    }

    /// Ends all sessions of this process at once, after waiting for those that are being
    /// opened, and stops the reaper. From now on none can be opened.
    ///
    /// A session that another process used later is left to that process. What is not done
    /// within `deadline` goes on in the background.
    pub async fn shutdown(&self, deadline: Duration) -> Shutdown {
        self.stop_reaper();
        let shared = Arc::clone(self.shared());
        let shutdown = async move { Ok(shared.shutdown(deadline).await) };
        self.shared().detached(shutdown).await.unwrap_or_default()
    }

    /// Returns a receiver of what happens from now on. One that is slow misses events and
    /// is told how many.
    pub fn events(&self) -> broadcast::Receiver<SessionEvent> {
        self.shared().events.subscribe()
    }

    /// Returns how often things have happened.
    pub fn counters(&self) -> Counters {
        self.shared().events.counters()
    }

    /// Describes the sessions of this process, with what they use where the engine tells.
    pub async fn snapshot(&self) -> Snapshot {
        let shared = self.shared();
        let now = shared.clock.now();
        let slots = shared.table.slots();
        let statuses = slots.iter().filter_map(|slot| SessionStatus::of(slot, now));
        let mut sessions: Vec<_> = stream::iter(statuses.collect::<Vec<_>>())
            .map(|status| self.with_usage(status))
            .buffer_unordered(USAGES_AT_ONCE)
            .collect()
            .await;
        sessions.sort_by(|a, b| a.record.id.cmp(&b.record.id));
        Snapshot {
            at: now,
            resident: shared.capacity.resident(),
            max_sessions: shared.capacity.limit(),
            sessions,
            counters: shared.events.counters(),
        }
    }

    async fn with_usage(&self, mut status: SessionStatus) -> SessionStatus {
        if status.status == Status::Running {
            let usage = self.shared().engine.usage(&status.record.id).await;
            // A session that ends meanwhile uses nothing.
            status.usage = usage.ok().flatten();
        }
        status
    }
}
