//! [`DaytonaEngine`]: sessions in hosted sandboxes, found again by any process.
//!
//! The name of a sandbox is that of its session, and names are unique in an organization: to
//! create one is the lock between processes. The record is in its labels, which it has from the
//! first moment on. So a process that is killed leaves nothing that another one cannot use.

mod builder;
mod claim;
mod ending;
mod env;
mod find;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Result, Sandbox as _};
use backend_daytona::instances::{self, Instance};
use backend_daytona::{Account, DaytonaBuilder, DaytonaSandbox, InstanceState};
use sandbox_runtime::Runtime;

use crate::engine::{Attached, Claim, Engine};
use crate::id::SessionId;
use crate::names::{Names, SPACE};
use crate::notes;
use crate::record::{Record, Usage};
use crate::request::OpenRequest;

pub use builder::DaytonaEngineBuilder;
use env::Env;

/// Sessions in sandboxes of a Daytona organization. Clones share everything.
///
/// Any number of processes, on any hosts, can use the sessions of one
/// [space](DaytonaEngineBuilder::space) at once. If two open one id at the same moment, one
/// sandbox remains, and both use it.
///
/// A session that is stopped keeps its sandbox and its files, and the next call starts it again.
///
/// There is no pool: a sandbox cannot be given another name, and the name is what makes it that
/// of a session. The service itself keeps sandboxes of some snapshots ready.
///
/// All hosts must have about the same time: sessions are ended by the time of their last use.
#[derive(Debug, Clone)]
pub struct DaytonaEngine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    account: Account,
    template: DaytonaBuilder,
    names: Names,
    runtime: Option<Runtime>,
    /// The time without use after which the service itself stops a session.
    auto_stop: Duration,
    keep_for: Option<Duration>,
    /// The longest time from reading labels to the answer that they are changed.
    settle: Duration,
    known: Mutex<HashMap<SessionId, Known>>,
}

/// A session that this process uses.
#[derive(Debug)]
struct Known {
    /// The id of its sandbox.
    instance: String,
    /// The sandbox that was handed out: its agent stays connected.
    sandbox: DaytonaSandbox,
    /// The latest use that this process wrote, and when.
    written: Option<(SystemTime, Instant)>,
}

impl DaytonaEngine {
    /// Returns a builder for sessions in an organization.
    ///
    /// ```no_run
    /// # fn example() -> backend_core::Result<()> {
    /// use backend_daytona::{Account, DaytonaSandbox};
    /// use sessions::DaytonaEngine;
    ///
    /// let engine = DaytonaEngine::builder(Account::from_env()?)
    ///     .space("chat")
    ///     .template(DaytonaSandbox::builder().snapshot("agents"))
    ///     .build()?;
    /// # let _ = engine;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(account: Account) -> DaytonaEngineBuilder {
        DaytonaEngineBuilder::new(account)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, Known>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, id: &SessionId, instance: String, sandbox: DaytonaSandbox) {
        let known = Known {
            instance,
            sandbox,
            written: None,
        };
        let former = self.known().insert(id.clone(), known);
        // After the lock is released: it may have a connection to close.
        drop(former);
    }

    fn forget(&self, id: &SessionId) {
        let known = self.known().remove(id);
        drop(known);
    }

    /// Returns the sandbox of a session that was handed out before, if it is the same one.
    fn known_sandbox(&self, id: &SessionId, instance: &str) -> Option<DaytonaSandbox> {
        let known = self.known();
        let known = known.get(id).filter(|known| known.instance == instance)?;
        Some(known.sandbox.clone())
    }

    async fn sandbox(&self, id: &SessionId, found: &Instance) -> Result<DaytonaSandbox> {
        if let Some(known) = self.known_sandbox(id, &found.id) {
            return Ok(known);
        }
        let template = self.0.template.clone().account(self.0.account.clone());
        let sandbox = template.attach(&*found.id).open().await?;
        self.remember(id, found.id.clone(), sandbox.clone());
        Ok(sandbox)
    }

    async fn attach_found(&self, id: &SessionId, found: &Instance) -> Result<Attached> {
        let sandbox = self.sandbox(id, found).await?;
        let env = self.env_of(found).await?;
        let record = find::record(found, id);
        Ok(Attached::new(Arc::new(sandbox), record).with_env(env))
    }

    /// Stops or deletes the sandbox of a session.
    async fn end(&self, id: &SessionId, found: &Instance, mode: StopMode) -> Result<()> {
        let account = &self.0.account;
        let ended = match (self.known_sandbox(id, &found.id), mode) {
            (Some(sandbox), mode) => sandbox.stop(mode).await,
            (None, StopMode::Purge) => instances::delete(account, &found.id).await.map(drop),
            (None, _) => instances::stop(account, &found.id).await,
        };
        self.forget(id);
        ended
    }
}

impl DaytonaEngineBuilder {
    /// Checks the options. Nothing is created yet.
    ///
    /// # Errors
    ///
    /// `Config` for an invalid option.
    pub fn build(self) -> Result<DaytonaEngine> {
        let names = self.check()?;
        Ok(DaytonaEngine(Arc::new(Inner {
            account: self.account,
            template: self.template,
            names,
            runtime: self.runtime,
            auto_stop: self.auto_stop,
            keep_for: self.keep_for,
            settle: self.settle,
            known: Mutex::default(),
        })))
    }
}

#[async_trait]
impl Engine for DaytonaEngine {
    fn keeps_files(&self) -> bool {
        true
    }

    async fn claim(&self, request: &OpenRequest) -> Result<Claim> {
        self.claim_session(request).await
    }

    async fn attach(&self, id: &SessionId) -> Result<Option<Attached>> {
        let Some(found) = self.find(id).await? else {
            self.forget(id);
            return Ok(None);
        };
        let attached = self.attach_found(id, &found).await;
        self.unless_replaced(id, &found, attached).await
    }

    /// It may be seconds behind: the service updates its lists later than its sandboxes.
    async fn list(&self) -> Result<Vec<Record>> {
        let names = &self.0.names;
        let space = BTreeMap::from([(SPACE.to_owned(), names.space().to_owned())]);
        let mut found = BTreeMap::new();
        for instance in instances::list(&self.0.account, &space).await? {
            let id = notes::session(&instance.labels).filter(|_| !find::is_gone(&instance));
            // Any sandbox can be given the labels of a session, but only one has its name.
            if let Some(id) = id.filter(|id| instance.name == names.session(id)) {
                found.insert(id.clone(), find::record(&instance, &id));
            }
        }
        Ok(found.into_values().collect())
    }

    async fn record(&self, id: &SessionId) -> Result<Option<Record>> {
        let found = self.find(id).await?;
        Ok(found.map(|found| find::record(&found, id)))
    }

    async fn touch(&self, id: &SessionId, at: SystemTime) -> Result<bool> {
        let written = self.known().get(id).and_then(|known| known.written);
        if written.is_some_and(|(written, _)| written >= at) {
            return Ok(true);
        }
        self.write_use(id, at).await
    }

    async fn set_env(&self, id: &SessionId, env: &Env) -> Result<()> {
        match self.find(id).await? {
            Some(found) => self.keep_env(&found.id, env).await,
            None => Ok(()),
        }
    }

    /// A sandbox that has failed for good is deleted: its session can begin anew then.
    async fn stop(&self, id: &SessionId) -> Result<bool> {
        let Some(found) = self.find(id).await? else {
            self.forget(id);
            return Ok(false);
        };
        let mode = match found.state {
            InstanceState::Failed { recoverable: false } => StopMode::Purge,
            InstanceState::Starting | InstanceState::Started | InstanceState::Unknown(_) => {
                StopMode::Keep
            }
            _ => {
                self.forget(id);
                return Ok(false);
            }
        };
        self.end(id, &found, mode).await?;
        Ok(true)
    }

    async fn stop_if_unused_since(&self, id: &SessionId, since: SystemTime) -> Result<bool> {
        self.end_unused(id, since).await
    }

    async fn purge(&self, id: &SessionId) -> Result<bool> {
        let Some(found) = self.find(id).await? else {
            self.forget(id);
            return Ok(false);
        };
        self.end(id, &found, StopMode::Purge).await?;
        Ok(true)
    }

    async fn usage(&self, id: &SessionId) -> Result<Option<Usage>> {
        let Some(found) = self.find(id).await? else {
            return Ok(None);
        };
        let mut usage = Usage::default();
        if found.state == InstanceState::Started {
            let stats = match self.sandbox(id, &found).await {
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
}
