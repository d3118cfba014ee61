//! [`Engine`]: what keeps sandboxes, also beyond this process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::{Error, Result, Sandbox};

use crate::id::SessionId;
use crate::record::{Record, Usage};
use crate::request::OpenRequest;

/// The answer to a claim.
#[derive(Debug)]
#[non_exhaustive]
pub enum Claim {
    /// The session is the caller's: this is its sandbox, which is not started yet.
    Created(Arc<dyn Sandbox>),
    /// The session is the caller's, and its sandbox was started already. It has just been seen
    /// to run, so it is not started again.
    Started(Arc<dyn Sandbox>),
    /// The session has a sandbox already, or another process is creating it.
    Taken,
}

/// The sandbox of a session that existed before.
#[non_exhaustive]
pub struct Attached {
    /// The sandbox, running or stopped.
    pub sandbox: Arc<dyn Sandbox>,
    /// The record of the session.
    pub record: Record,
    /// The variables of its commands.
    pub env: BTreeMap<String, String>,
}

impl Attached {
    /// Creates an answer for a session without variables.
    pub fn new(sandbox: Arc<dyn Sandbox>, record: Record) -> Self {
        Self {
            sandbox,
            record,
            env: BTreeMap::new(),
        }
    }

    /// Sets the variables of the session's commands.
    #[must_use]
    pub fn with_env(mut self, env: BTreeMap<String, String>) -> Self {
        self.env = env;
        self
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the variables: they may hold secrets.
        f.debug_struct("Attached")
            .field("sandbox", &self.sandbox)
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

/// A keeper of sandboxes that knows which exist: a directory with locks, a Docker daemon.
///
/// An engine is the only record of its sessions; there is no database beside it. Several
/// processes may use one engine at once, each through a value of this type, and any of
/// them may be killed at any moment.
///
/// # Signatures
///
/// The async methods, as they are written under `#[async_trait]`:
///
/// ```text
/// async fn claim(&self, request: &OpenRequest) -> Result<Claim>;
/// async fn attach(&self, id: &SessionId) -> Result<Option<Attached>>;
/// async fn list(&self) -> Result<Vec<Record>>;
/// async fn list_recent(&self) -> Result<Vec<Record>>;
/// async fn record(&self, id: &SessionId) -> Result<Option<Record>>;
/// async fn touch(&self, id: &SessionId, at: SystemTime) -> Result<bool>;
/// async fn set_env(&self, id: &SessionId, env: &BTreeMap<String, String>) -> Result<()>;
/// async fn set_tenant(&self, id: &SessionId, tenant: &str) -> Result<bool>;
/// async fn stop(&self, id: &SessionId) -> Result<bool>;
/// async fn request_release(&self, id: &SessionId) -> Result<bool>;
/// async fn release_requests(&self) -> Result<Vec<SessionId>>;
/// async fn stop_if_unused_since(&self, id: &SessionId, since: SystemTime) -> Result<bool>;
/// async fn purge(&self, id: &SessionId) -> Result<bool>;
/// async fn usage(&self, id: &SessionId) -> Result<Option<Usage>>;
/// async fn maintain(&self, now: SystemTime) -> Result<()>;
/// async fn close(&self) -> Result<()>;
/// ```
#[async_trait]
pub trait Engine: fmt::Debug + Send + Sync + 'static {
    /// Whether the files of a session survive its sandbox. Only such sessions are
    /// hibernated, and recreated when their sandbox died.
    fn keeps_files(&self) -> bool;

    /// Whether several processes may use one session at once. Then a session is hibernated
    /// only after a time in which the others would have written that they use it.
    fn is_shared(&self) -> bool {
        true
    }

    /// Creates the sandbox of a session, not started, on its stored files if there are any,
    /// or gives it one that was started for any session. Atomic between processes: of several
    /// that claim one id, one gets [`Claim::Created`] or [`Claim::Started`].
    ///
    /// # Errors
    ///
    /// `InvalidInput` and `Config` for a runtime that cannot be used; `TooLarge` if the
    /// quota on stored files is used up; `Unavailable`.
    async fn claim(&self, request: &OpenRequest) -> Result<Claim>;

    /// Returns the sandbox of an existing session, running or stopped; `None` if it has no
    /// sandbox.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn attach(&self, id: &SessionId) -> Result<Option<Attached>>;

    /// Lists every session that exists, of all processes, in order of ids.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn list(&self) -> Result<Vec<Record>>;

    /// Does the same, perhaps as it was a moment ago, where that takes less work. The manager
    /// looks for idle sessions in it, and [stops](Self::stop_if_unused_since) none that was
    /// used since. By default it is [`list`](Self::list).
    ///
    /// # Errors
    ///
    /// As [`list`](Self::list).
    async fn list_recent(&self) -> Result<Vec<Record>> {
        self.list().await
    }

    /// Returns what is known about one session.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn record(&self, id: &SessionId) -> Result<Option<Record>>;

    /// Writes the time of the last use back, never earlier than what is there. Returns
    /// `false` if the session does not exist, or another process has just ended it.
    ///
    /// When it returns, a [stop](Self::stop_if_unused_since) by another process that did not
    /// see this use is done; one that begins later sees it.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn touch(&self, id: &SessionId, at: SystemTime) -> Result<bool>;

    /// Replaces the variables of a session's commands, for processes that attach later.
    /// Those of the claim are kept by the claim. By default nothing is kept.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn set_env(&self, id: &SessionId, env: &BTreeMap<String, String>) -> Result<()> {
        let _ = (id, env);
        Ok(())
    }

    /// Gives a session that does not run to another tenant. Returns `false` if there is no
    /// such session.
    ///
    /// # Errors
    ///
    /// `Conflict` if it runs; `Unsupported` by default; `Unavailable`.
    async fn set_tenant(&self, id: &SessionId, tenant: &str) -> Result<bool> {
        let _ = tenant;
        let message = "the tenants of these sessions cannot be changed; open another session";
        Err(Error::unsupported(message).about(id))
    }

    /// Ends the sandbox of a session and keeps its files, where the engine
    /// [keeps files](Self::keeps_files). Returns `false` if nothing ran.
    ///
    /// # Errors
    ///
    /// `Unavailable`. It can be repeated.
    async fn stop(&self, id: &SessionId) -> Result<bool>;

    /// Asks the other processes that use a session to end it, where [`stop`](Self::stop)
    /// ends only what this process has. Returns `false` if there is none to ask, as by
    /// default.
    ///
    /// # Errors
    ///
    /// `Unavailable`. It can be repeated.
    async fn request_release(&self, id: &SessionId) -> Result<bool> {
        let _ = id;
        Ok(false)
    }

    /// Returns the sessions of this process that [others ask](Self::request_release) to
    /// end, each request once. The manager calls it whenever it writes the times of use, and
    /// releases them. There are none by default.
    ///
    /// # Errors
    ///
    /// Any. The manager asks again.
    async fn release_requests(&self) -> Result<Vec<SessionId>> {
        Ok(Vec::new())
    }

    /// Does the same unless the session was used after `since`, by any process.
    ///
    /// By default it reads the record and then stops the session. An engine that can do
    /// both as one step should.
    ///
    /// # Errors
    ///
    /// As [`stop`](Self::stop).
    async fn stop_if_unused_since(&self, id: &SessionId, since: SystemTime) -> Result<bool> {
        match self.record(id).await? {
            Some(record) if record.last_activity <= since => self.stop(id).await,
            _ => Ok(false),
        }
    }

    /// Ends the sandbox of a session and deletes its files. Returns `false` if there was
    /// neither.
    ///
    /// # Errors
    ///
    /// `Unavailable`. It can be repeated.
    async fn purge(&self, id: &SessionId) -> Result<bool>;

    /// Returns what a session uses, as far as it is known, and `None` if there is no such
    /// session.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn usage(&self, id: &SessionId) -> Result<Option<Usage>>;

    /// Does what is due from time to time, such as deleting stored files that are past
    /// their time. The manager calls it with every pass of its reaper.
    ///
    /// # Errors
    ///
    /// Any. The pass goes on, and the next one tries again.
    async fn maintain(&self, now: SystemTime) -> Result<()> {
        let _ = now;
        Ok(())
    }

    /// Ends what the engine holds ready beside sessions, such as a pool. The manager calls
    /// it last, when it shuts down.
    ///
    /// # Errors
    ///
    /// Any.
    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
