//! [`Record`]: what an engine knows about a session.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend_core::Result;
use serde::{Deserialize, Serialize};

use crate::error::{other_runtime, other_tenant};
use crate::id::SessionId;
use crate::request::OpenRequest;
use crate::time::{moment, span};

/// The parts of a session that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RecordState {
    /// Its sandbox runs.
    Running,
    /// Its sandbox exists and is stopped.
    Stopped,
    /// Only its files exist.
    Stored,
}

/// The knowledge of an engine about a session, of this process or of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// The session.
    pub id: SessionId,
    /// The customer or project that it counts for.
    #[serde(default)]
    pub tenant: Option<Arc<str>>,
    /// The [fingerprint](crate::fingerprint) of its runtime.
    #[serde(default)]
    pub runtime: Option<String>,
    /// The parts that exist.
    pub state: RecordState,
    /// When it was created, as milliseconds since 1970 where it is written.
    #[serde(with = "moment")]
    pub created: SystemTime,
    /// When it was last used.
    #[serde(with = "moment")]
    pub last_activity: SystemTime,
    /// Its own idle timeout, as milliseconds where it is written.
    #[serde(default, with = "span")]
    pub idle_timeout: Option<Duration>,
    /// Its own maximum age.
    #[serde(default, with = "span")]
    pub max_lifetime: Option<Duration>,
}

impl Record {
    /// Describes a session that is created by `request` now.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use sessions::{OpenRequest, Record, RecordState, SessionId};
    ///
    /// let request = OpenRequest::new(SessionId::new("alice")?);
    /// let record = Record::new(&request, SystemTime::now());
    /// assert_eq!(record.state, RecordState::Running);
    /// # Ok::<(), backend_core::Error>(())
    /// ```
    pub fn new(request: &OpenRequest, now: SystemTime) -> Self {
        Self {
            id: request.id.clone(),
            tenant: request.tenant.clone(),
            runtime: request.fingerprint(),
            state: RecordState::Running,
            created: now,
            last_activity: now,
            idle_timeout: request.idle_timeout,
            max_lifetime: request.max_lifetime,
        }
    }

    /// Checks that the session is the one that `request` means.
    pub(crate) fn check_serves(&self, request: &OpenRequest) -> Result<()> {
        let differs = |asked: Option<&str>, found: Option<&str>| asked.is_some() && asked != found;
        if differs(request.tenant.as_deref(), self.tenant.as_deref()) {
            return Err(other_tenant(&self.id));
        }
        let asked = request.asked_runtime();
        if differs(asked.as_deref(), self.runtime.as_deref()) {
            return Err(other_runtime(&self.id));
        }
        Ok(())
    }

    /// Sets what exists of the session.
    #[must_use]
    pub fn with_state(mut self, state: RecordState) -> Self {
        self.state = state;
        self
    }
}

/// The resources that a session uses, where its engine tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Processor use: 1.0 is one core.
    pub cpu: Option<f64>,
    /// Bytes of stored files.
    pub stored_bytes: Option<u64>,
}
