//! [`DockerEngine`]: sessions in containers, found again by any process.
//!
//! The name of a container is that of its session, and names are unique: to give a
//! container that name is the lock between processes. Everything else is in labels and in
//! small files, so a process that is killed leaves nothing that another one cannot use or
//! remove.

mod builder;
mod claim;
mod containers;
mod ending;
mod files;
mod names;
mod state;
mod upkeep;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Error, ErrorKind, Result, Sandbox as _};
use backend_docker::containers::{self as docker, Container};
use backend_docker::{ContainerState, Daemon, DockerSandbox};
use futures_util::StreamExt as _;
use futures_util::stream;
use sandbox_runtime::Runtime;

use crate::engine::{Attached, Claim, Engine};
use crate::id::SessionId;
use crate::pool::Pool;
use crate::record::{Record, RecordState, Usage};
use crate::request::{OpenRequest, fingerprint};

pub use builder::DockerEngineBuilder;
use containers::{Containers, Spares, blocking};
use files::Files;
use state::States;

/// Records that are read at once.
const READ_AT_ONCE: usize = 8;

/// Sessions in containers of a Docker daemon. Clones share everything.
///
/// Any number of processes can use the sessions of one [space](DockerEngineBuilder::space)
/// at once. If two open one id at the same moment, one container remains, and both use it.
///
/// A session that is stopped keeps its container if the engine has a
/// [root](DockerEngineBuilder::workspace_root), and the next call wakes it. Without a root
/// its container is removed, and with it its files.
///
/// Commands cannot read or change what the engine keeps in a container, unless the
/// [template](DockerEngineBuilder::template) makes them run as root.
#[derive(Debug, Clone)]
pub struct DockerEngine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    daemon: Daemon,
    runtime: Option<Runtime>,
    containers: Arc<Containers>,
    files: Option<Files>,
    states: States,
    /// Containers that are ready, by the fingerprint of their runtime.
    pools: BTreeMap<String, Pool<Spares>>,
    known: Mutex<HashMap<SessionId, Known>>,
}

/// The facts that this process knows about a session.
#[derive(Debug, Default)]
struct Known {
    /// The sandbox that was handed out: its agent stays connected.
    sandbox: Option<DockerSandbox>,
    /// The latest use that was written.
    touched: Option<SystemTime>,
}

impl DockerEngine {
    /// Returns a builder for sessions on a daemon.
    ///
    /// ```no_run
    /// # async fn example() -> backend_core::Result<()> {
    /// use backend_docker::{Daemon, DockerSandbox, Runtime};
    /// use sessions::DockerEngine;
    ///
    /// let python = Runtime::from_image("python", "python:3.12-slim");
    /// let engine = DockerEngine::builder(Daemon::from_env()?)
    ///     .space("chat")
    ///     .runtime(python.clone())
    ///     .template(DockerSandbox::builder().memory(512 * 1024 * 1024))
    ///     .workspace_root("/srv/chat")
    ///     .pool(python, 4)
    ///     .build()?;
    /// engine.warm().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(daemon: Daemon) -> DockerEngineBuilder {
        DockerEngineBuilder::new(daemon)
    }

    /// Fills the pools, and returns when they are full. Otherwise the first claim begins
    /// to fill them in the background.
    ///
    /// # Errors
    ///
    /// Any of creating a container.
    pub async fn warm(&self) -> Result<()> {
        for pool in self.0.pools.values() {
            pool.fill().await?;
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, Known>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, id: &SessionId, sandbox: DockerSandbox) {
        self.known().entry(id.clone()).or_default().sandbox = Some(sandbox);
    }

    fn forget(&self, id: &SessionId) {
        // Dropped after the lock is released.
        let known = self.known().remove(id);
        drop(known);
    }

    /// Returns the sandbox on a container: the one that was handed out before, if it is
    /// the same container.
    async fn sandbox(&self, id: &SessionId, container: &Container) -> Result<DockerSandbox> {
        let known = self.known().get(id).and_then(|known| known.sandbox.clone());
        if let Some(known) = known
            && known.container() == container.id
        {
            return Ok(known);
        }
        let template = self.0.containers.template.clone();
        let attach = template
            .daemon(self.0.daemon.clone())
            .attach(&*container.id);
        let sandbox = attach.open().await?;
        self.remember(id, sandbox.clone());
        Ok(sandbox)
    }

    /// Completes a claim that was interrupted.
    async fn heal(&self, id: &SessionId, container: &Container) -> Result<()> {
        let key = container.labels.get(names::SPARE).cloned();
        let (Some(files), Some(key)) = (self.0.files.clone(), key) else {
            return Ok(());
        };
        let id = id.clone();
        blocking(move || files.adopt(&key, &id)).await
    }

    /// Removes the link to the directory of a claimed container.
    async fn remove_link(&self, key: Option<&str>) {
        let (Some(files), Some(key)) = (self.0.files.clone(), key) else {
            return;
        };
        let key = key.to_owned();
        if let Err(error) = blocking(move || files.remove_spare(&key)).await {
            tracing::warn!("a link was left behind: {}", error.chain());
        }
    }

    async fn trash(&self, id: &SessionId, has_container: bool) -> Result<Option<PathBuf>> {
        let Some(files) = self.0.files.clone() else {
            return Ok(None);
        };
        let id = id.clone();
        blocking(move || files.trash(&id, has_container)).await
    }

    /// Stops a container, or removes it if its session has no files that last. Returns
    /// whether it ran.
    async fn stop_container(&self, id: &SessionId, container: &Container) -> Result<bool> {
        if !self.keeps_files() {
            self.purge_container(id, container).await?;
            return Ok(true);
        }
        let runs = is_running(container);
        if runs {
            self.end_container(id, container, StopMode::Keep).await?;
        }
        self.forget(id);
        Ok(runs)
    }

    async fn end_container(
        &self,
        id: &SessionId,
        container: &Container,
        mode: StopMode,
    ) -> Result<()> {
        match self.sandbox(id, container).await {
            Ok(sandbox) => sandbox.stop(mode).await,
            // It was removed meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes a container and its session's files. The files go out of their place while
    /// the container still holds the name, so no other process can begin to use them.
    async fn purge_container(&self, id: &SessionId, container: &Container) -> Result<()> {
        if let Err(error) = self.heal(id, container).await {
            tracing::debug!("a claim was not completed: {}", error.chain());
        }
        let trashed = self.trash(id, true).await?;
        self.end_container(id, container, StopMode::Purge).await?;
        self.forget(id);
        let key = container.labels.get(names::SPARE);
        self.remove_link(key.map(String::as_str)).await;
        self.remove_record(&container.id).await?;
        self.delete(trashed).await
    }

    /// Deletes the record of a container that is gone.
    async fn remove_record(&self, container: &str) -> Result<()> {
        let record = self
            .0
            .files
            .as_ref()
            .map(|files| files.state().join(container));
        self.delete(record).await
    }

    /// Deletes the files of a session without a container.
    async fn purge_files(&self, id: &SessionId) -> Result<bool> {
        let Some(trashed) = self.trash(id, false).await? else {
            return Ok(false);
        };
        if self.find(id).await?.is_some()
            && let Some(files) = self.0.files.clone()
        {
            // Another process opened the session meanwhile: it is in use again.
            let id = id.clone();
            blocking(move || files.restore(&trashed, &id)).await?;
            return Ok(false);
        }
        self.delete(Some(trashed)).await?;
        Ok(true)
    }

    async fn delete(&self, trashed: Option<PathBuf>) -> Result<()> {
        let (Some(files), Some(trashed)) = (self.0.files.clone(), trashed) else {
            return Ok(());
        };
        blocking(move || files.delete(&trashed)).await
    }
}

fn is_running(container: &Container) -> bool {
    matches!(
        container.state,
        ContainerState::Running | ContainerState::Paused
    )
}

/// Returns the record of a session without a container.
fn stored_record(files: &Files, id: SessionId, changed: SystemTime) -> Result<Record> {
    let mut request = OpenRequest::new(id);
    request.tenant = files.tenant(&request.id)?;
    Ok(Record::new(&request, changed).with_state(RecordState::Stored))
}

impl DockerEngineBuilder {
    /// Checks the options. Nothing is created yet, except the root of the workspaces.
    ///
    /// # Errors
    ///
    /// `Config` for an invalid option and for a root that holds the sessions of another
    /// engine; `Unavailable` if the root cannot be created.
    pub fn build(self) -> Result<DockerEngine> {
        let (names, files) = self.check()?;
        let containers = Arc::new(Containers {
            daemon: self.daemon.clone(),
            template: self.template,
            images: self.images,
            names,
        });
        let pool = |(runtime, size): (Runtime, usize)| {
            let key = fingerprint(&runtime);
            let spares = Spares {
                containers: Arc::clone(&containers),
                runtime,
                files: files.clone(),
            };
            (key, Pool::new(spares, size))
        };
        let pools = self.pools.into_iter().map(pool).collect();
        Ok(DockerEngine(Arc::new(Inner {
            states: States::new(self.daemon.clone(), files.as_ref().map(Files::state)),
            daemon: self.daemon,
            runtime: self.runtime,
            containers,
            files,
            pools,
            known: Mutex::default(),
        })))
    }
}

#[async_trait]
impl Engine for DockerEngine {
    fn keeps_files(&self) -> bool {
        self.0.files.is_some()
    }

    async fn claim(&self, request: &OpenRequest) -> Result<Claim> {
        self.check_root().await?;
        self.claim_session(request).await
    }

    async fn attach(&self, id: &SessionId) -> Result<Option<Attached>> {
        self.check_root().await?;
        let Some(container) = self.find(id).await? else {
            self.forget(id);
            return Ok(None);
        };
        self.heal(id, &container).await?;
        let session = self.0.states.read_all(&container, id).await?;
        let sandbox = Error::none_if_missing(self.sandbox(id, &container).await)?;
        Ok(sandbox.map(|sandbox: DockerSandbox| {
            Attached::new(Arc::new(sandbox), session.record).with_env(session.env)
        }))
    }

    async fn list(&self) -> Result<Vec<Record>> {
        self.check_root().await?;
        let names = &self.0.containers.names;
        let all = docker::list(&self.0.daemon, names::SPACE, names.space()).await?;
        let mut sessions = Vec::new();
        for container in all {
            if let Some(id) = names.session_of(&container.name) {
                sessions.push((id, container));
            }
        }
        let read = |(id, container): (SessionId, Container)| async move {
            let record = self.0.states.read(&container, &id).await;
            record.map_err(|error| (id, error))
        };
        let read = stream::iter(sessions)
            .map(read)
            .buffer_unordered(READ_AT_ONCE);
        let records: Vec<_> = read.collect().await;
        let mut found = BTreeMap::new();
        let mut unreadable = BTreeSet::new();
        for record in records {
            match record {
                Ok(record) => {
                    found.insert(record.id.clone(), record);
                }
                // One broken session must not hide the others.
                Err((id, error)) => {
                    tracing::warn!(session = %id, error = %error.chain(), "a session cannot be read");
                    unreadable.insert(id);
                }
            }
        }
        if let Some(files) = self.0.files.clone() {
            let stored = move || {
                let stored = files.stored()?.into_iter();
                let records = stored.map(|(id, changed)| stored_record(&files, id, changed));
                records.collect::<Result<Vec<_>>>()
            };
            for record in blocking(stored).await? {
                if !unreadable.contains(&record.id) {
                    found.entry(record.id.clone()).or_insert(record);
                }
            }
        }
        Ok(found.into_values().collect())
    }

    async fn record(&self, id: &SessionId) -> Result<Option<Record>> {
        self.check_root().await?;
        if let Some(container) = self.find(id).await? {
            return self.0.states.read(&container, id).await.map(Some);
        }
        let Some(files) = self.0.files.clone() else {
            return Ok(None);
        };
        let id = id.clone();
        blocking(move || {
            let changed = files.changed(&id);
            let stored = changed.map(|changed| stored_record(&files, id, changed));
            stored.transpose()
        })
        .await
    }

    async fn touch(&self, id: &SessionId, at: SystemTime) -> Result<bool> {
        self.check_root().await?;
        let touched = self.known().get(id).and_then(|known| known.touched);
        if touched.is_some_and(|touched| touched >= at) {
            return Ok(true);
        }
        let is_there = self.write_use(id, at).await?;
        if let Some(known) = self.known().get_mut(id) {
            known.touched = known.touched.max(Some(at));
        }
        Ok(is_there)
    }

    async fn set_env(&self, id: &SessionId, env: &BTreeMap<String, String>) -> Result<()> {
        self.check_root().await?;
        let Some(container) = self.find(id).await? else {
            return Ok(());
        };
        let mut session = self.0.states.read_all(&container, id).await?;
        session.env.clone_from(env);
        match self.0.states.write(&container.id, &session).await {
            // The session ended meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            written => written,
        }
    }

    async fn set_tenant(&self, id: &SessionId, tenant: &str) -> Result<bool> {
        self.check_root().await?;
        self.change_tenant(id, tenant).await
    }

    async fn stop(&self, id: &SessionId) -> Result<bool> {
        self.check_root().await?;
        let Some(container) = self.find(id).await? else {
            self.forget(id);
            return Ok(false);
        };
        self.stop_container(id, &container).await
    }

    async fn stop_if_unused_since(&self, id: &SessionId, since: SystemTime) -> Result<bool> {
        self.check_root().await?;
        self.end_unused(id, since).await
    }

    async fn purge(&self, id: &SessionId) -> Result<bool> {
        self.check_root().await?;
        if let Some(container) = self.find(id).await? {
            self.purge_container(id, &container).await?;
            return Ok(true);
        }
        self.forget(id);
        self.purge_files(id).await
    }

    async fn usage(&self, id: &SessionId) -> Result<Option<Usage>> {
        self.check_root().await?;
        let container = self.find(id).await?;
        let mut usage = Usage::default();
        if let Some(files) = self.0.files.clone() {
            let session = id.clone();
            let stored = move || Ok(files.is_stored(&session).then(|| files.bytes_of(&session)));
            usage.stored_bytes = blocking(stored).await?;
        }
        let Some(container) = container else {
            return Ok(usage.stored_bytes.map(|_| usage));
        };
        if container.state == ContainerState::Running {
            let stats = match self.sandbox(id, &container).await {
                Ok(sandbox) => sandbox.stats().await,
                Err(error) => Err(error),
            };
            // If it ends at this moment, its memory is not known, which is no failure.
            if let Ok(stats) = stats {
                usage.memory_bytes = Some(stats.memory);
                usage.cpu = stats.cpu_percent.map(|percent| percent / 100.0);
            }
        }
        Ok(Some(usage))
    }

    async fn maintain(&self, now: SystemTime) -> Result<()> {
        self.check_root().await?;
        for pool in self.0.pools.values() {
            pool.refill();
        }
        // What cannot be removed must not keep the rest.
        let swept = self.sweep(now).await;
        self.expire(now).await?;
        swept
    }

    async fn close(&self) -> Result<()> {
        for pool in self.0.pools.values() {
            pool.close().await;
        }
        Ok(())
    }
}
