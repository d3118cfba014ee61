//! [`LocalEngine`]: sessions in directories of this machine.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Error, Result, Sandbox as _};
use backend_local::{Commands, LocalBackend};

use super::blocking::blocking;
use super::builder::LocalEngineBuilder;
use super::meter::Meter;
use super::place::{InUse, Place};
use super::root::Root;
use super::sandbox::LocalSandbox;
use super::stored::StoredSessions;
use crate::engine::{Attached, Claim, Engine};
use crate::id::SessionId;
use crate::record::{Record, RecordState, Usage};
use crate::request::OpenRequest;

/// Sessions in directories of this machine: `ROOT/ID/workspace` holds the files of a
/// session, and commands run there.
///
/// Files last until they are purged or past their
/// [time](LocalEngineBuilder::time_to_live). Several processes may share one root. If two
/// have one session open, they share its files, and each ends its own commands.
///
/// ```
/// use backend_core::{BackendExt as _, Result};
/// use sessions::{Claim, Engine as _, LocalEngine, OpenRequest, SessionId};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// let engine = LocalEngine::open(directory.path())?;
/// let request = OpenRequest::new(SessionId::new("alice")?);
/// let Claim::Created(sandbox) = engine.claim(&request).await? else {
///     panic!("another process has it");
/// };
/// sandbox.write_file("plan.md", "- [ ] learn\n").await?;
/// engine.stop(&request.id).await?;
///
/// let files = engine.stored().files(&request.id).await?;
/// assert_eq!(files.read_to_string("plan.md").await?, "- [ ] learn\n");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct LocalEngine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: Root,
    commands: Commands,
    session_quota: Option<u64>,
    time_to_live: Option<Duration>,
    total: Option<Meter>,
    /// The sandboxes of this process. They end with the last that holds them.
    open: Mutex<HashMap<SessionId, Weak<LocalSandbox>>>,
}

impl LocalEngineBuilder {
    /// Opens the directory, and creates it if it is missing.
    ///
    /// # Errors
    ///
    /// `NotADirectory` and `PermissionDenied` for the directory, and `Config` if it holds
    /// the sessions of another engine; `Unsupported` and `Config` for commands that cannot
    /// run as they are set.
    pub fn open(self) -> Result<LocalEngine> {
        let root = Root::create(&self.root)?;
        root.check_engine()?;
        // Fails now if no session could run a command.
        let trial = LocalBackend::builder(&self.root).enable_execute(true);
        drop(trial.commands(self.commands.clone()).open()?);
        let total = self.total_quota.map(|limit| {
            let root = root.clone();
            Meter::new(limit, move || root.total_bytes())
        });
        let inner = Inner {
            root,
            commands: self.commands,
            session_quota: self.session_quota,
            time_to_live: self.time_to_live,
            total,
            open: Mutex::default(),
        };
        Ok(LocalEngine {
            inner: Arc::new(inner),
        })
    }
}

impl LocalEngine {
    /// Keeps sessions in the directory `root`, with the default options.
    ///
    /// # Errors
    ///
    /// As [`LocalEngineBuilder::open`].
    pub fn open(root: impl Into<PathBuf>) -> Result<Self> {
        Self::builder(root).open()
    }

    /// Returns a builder for an engine that keeps sessions in the directory `root`.
    pub fn builder(root: impl Into<PathBuf>) -> LocalEngineBuilder {
        LocalEngineBuilder::new(root.into())
    }

    /// Returns a reader of the files of all sessions, which starts nothing.
    pub fn stored(&self) -> StoredSessions {
        StoredSessions::new(self.inner.root.clone())
    }

    /// Does something with the root, which must not be that of another engine.
    async fn with_root<T: Send + 'static>(
        &self,
        work: impl FnOnce(Root) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let root = self.inner.root.clone();
        blocking(move || {
            root.check_engine()?;
            work(root)
        })
        .await
    }
}

impl Inner {
    fn open(&self) -> MutexGuard<'_, HashMap<SessionId, Weak<LocalSandbox>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sandbox that this process has, in use or stopped.
    fn known(&self, id: &SessionId) -> Option<Arc<LocalSandbox>> {
        self.open().get(id)?.upgrade()
    }

    /// Returns the sandboxes that this process has.
    fn open_sandboxes(&self) -> Vec<(SessionId, Arc<LocalSandbox>)> {
        let open = self.open();
        let held = open
            .iter()
            .filter_map(|(id, sandbox)| Some((id.clone(), sandbox.upgrade()?)));
        held.collect()
    }

    fn open_sandbox(&self, place: Place, in_use: InUse) -> Result<Arc<LocalSandbox>> {
        let id = place.id.clone();
        let opened = LocalSandbox::open(place, in_use, self.commands.clone(), self.session_quota);
        let sandbox = Arc::new(opened?);
        let mut open = self.open();
        if open.len() == open.capacity() {
            // Before it grows, and so at a cost that is spread over the insertions.
            open.retain(|_, sandbox| sandbox.strong_count() > 0);
        }
        open.insert(id, Arc::downgrade(&sandbox));
        Ok(sandbox)
    }

    fn claim(&self, request: &OpenRequest) -> Result<Option<Arc<LocalSandbox>>> {
        self.root.check_engine()?;
        let place = self.root.place(&request.id);
        match place.claim(request, SystemTime::now(), || self.root.mark_engine())? {
            Some(in_use) => self.open_sandbox(place, in_use).map(Some),
            None => Ok(None),
        }
    }

    fn attach(&self, id: &SessionId) -> Result<Option<Attached>> {
        self.root.check_engine()?;
        let place = self.root.place(id);
        let Some(record) = place.record()? else {
            return Ok(None);
        };
        // Variables end with the last sandbox that ran, even if a handle of it is kept.
        let env = match record.state {
            RecordState::Running => place.env()?,
            _ => BTreeMap::new(),
        };
        if let Some(sandbox) = self.known(id).filter(|known| known.is_current()) {
            let record = if sandbox.is_in_use() {
                record
            } else {
                record.with_state(RecordState::Stopped)
            };
            return Ok(Some(Attached::new(sandbox, record).with_env(env)));
        }
        if record.state != RecordState::Running {
            return Ok(None);
        }
        let Some(in_use) = place.enter()? else {
            return Ok(None);
        };
        let sandbox = self.open_sandbox(place, in_use)?;
        Ok(Some(Attached::new(sandbox, record).with_env(env)))
    }
}

#[async_trait]
impl Engine for LocalEngine {
    fn keeps_files(&self) -> bool {
        true
    }

    /// Each process has a sandbox of its own on the files, and stops only that one.
    fn is_shared(&self) -> bool {
        false
    }

    async fn claim(&self, request: &OpenRequest) -> Result<Claim> {
        if request.runtime.is_some() {
            let message = "sessions in local directories have no runtimes; leave it out, or use an engine with images";
            return Err(Error::unsupported(message).about(&request.id));
        }
        let place = self.inner.root.place(&request.id);
        if let Some(total) = &self.inner.total
            && !place.exists()
        {
            total.admit(1).await?;
        }
        let (inner, request) = (Arc::clone(&self.inner), request.clone());
        let claimed = blocking(move || inner.claim(&request)).await?;
        Ok(match claimed {
            Some(sandbox) => Claim::Created(sandbox),
            None => Claim::Taken,
        })
    }

    async fn attach(&self, id: &SessionId) -> Result<Option<Attached>> {
        let (inner, id) = (Arc::clone(&self.inner), id.clone());
        blocking(move || inner.attach(&id)).await
    }

    async fn list(&self) -> Result<Vec<Record>> {
        self.with_root(|root| root.records()).await
    }

    async fn record(&self, id: &SessionId) -> Result<Option<Record>> {
        let id = id.clone();
        self.with_root(move |root| root.place(&id).record()).await
    }

    async fn touch(&self, id: &SessionId, at: SystemTime) -> Result<bool> {
        let id = id.clone();
        self.with_root(move |root| root.place(&id).touch(at)).await
    }

    async fn set_env(&self, id: &SessionId, env: &BTreeMap<String, String>) -> Result<()> {
        let (id, env) = (id.clone(), env.clone());
        self.with_root(move |root| root.place(&id).set_env(&env))
            .await
    }

    async fn set_tenant(&self, id: &SessionId, tenant: &str) -> Result<bool> {
        let (id, tenant) = (id.clone(), tenant.to_owned());
        self.with_root(move |root| root.place(&id).set_tenant(&tenant))
            .await
    }

    async fn request_release(&self, id: &SessionId) -> Result<bool> {
        let id = id.clone();
        self.with_root(move |root| root.place(&id).request_release())
            .await
    }

    async fn release_requests(&self) -> Result<Vec<SessionId>> {
        let mut open = self.inner.open_sandboxes();
        if open.is_empty() {
            return Ok(Vec::new());
        }
        blocking(move || {
            open.retain(|(_, sandbox)| sandbox.take_release_request());
            Ok(open.into_iter().map(|(id, _)| id).collect())
        })
        .await
    }

    async fn stop(&self, id: &SessionId) -> Result<bool> {
        let Some(sandbox) = self.inner.known(id) else {
            self.with_root(|_| Ok(())).await?;
            return Ok(false);
        };
        let was_in_use = sandbox.is_in_use();
        sandbox.stop(StopMode::Keep).await?;
        Ok(was_in_use)
    }

    async fn purge(&self, id: &SessionId) -> Result<bool> {
        if let Some(sandbox) = self.inner.known(id) {
            sandbox.stop(StopMode::Purge).await?;
        }
        let id = id.clone();
        let removed = self.with_root(move |root| root.remove(&id)).await?;
        if let Some(total) = &self.inner.total {
            total.forget();
        }
        Ok(removed)
    }

    async fn usage(&self, id: &SessionId) -> Result<Option<Usage>> {
        let id = id.clone();
        let measure = move |root: Root| Error::none_if_missing(root.stored_bytes(&id));
        let measured = self.with_root(measure).await?;
        Ok(measured.map(|bytes| Usage {
            stored_bytes: Some(bytes),
            ..Usage::default()
        }))
    }

    async fn maintain(&self, now: SystemTime) -> Result<()> {
        let time_to_live = self.inner.time_to_live;
        self.with_root(move |root| {
            let removed = root.remove_leftovers();
            let Some(time_to_live) = time_to_live else {
                return removed;
            };
            for id in root.remove_expired(time_to_live, now)? {
                tracing::info!(session = %id, "stored files are past their time and were deleted");
            }
            removed
        })
        .await
    }
}
