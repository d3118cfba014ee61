//! [`OpenRequest`]: which session to open, and how it is created if there is none.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backend_core::{Command, ContentHash, Result};
#[cfg(any(feature = "docker", feature = "k8s"))]
use backend_core::{Error, ErrorKind};
use sandbox_runtime::Runtime;

use crate::id::SessionId;

/// Characters of a hash that tell two runtimes of one name apart.
const HASH_CHARACTERS: usize = 16;

/// Receives the progress of an opening.
pub(crate) type Report = Arc<dyn Fn(&SessionId, &str) + Send + Sync>;

/// Which session to open, and how it is created if there is none.
///
/// ```
/// use std::time::Duration;
/// use sessions::{OpenRequest, SessionId};
///
/// let request = OpenRequest::new(SessionId::new("alice")?)
///     .tenant("acme")
///     .idle_timeout(Duration::from_secs(600));
/// assert_eq!(request.tenant.as_deref(), Some("acme"));
/// # Ok::<(), backend_core::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct OpenRequest {
    /// The session.
    pub id: SessionId,
    /// The customer or project that the session counts for.
    pub tenant: Option<Arc<str>>,
    /// The content of the sandbox; the manager's default if there is none.
    pub runtime: Option<Runtime>,
    /// The time without use after which it is ended; the manager's default if there is none.
    pub idle_timeout: Option<Duration>,
    /// The age at which it is ended, once no call is under way.
    pub max_lifetime: Option<Duration>,
    /// Variables of the session's commands, on top of those of its runtime.
    pub env: BTreeMap<String, String>,
    /// Whether the runtime is the manager's default, with which any runtime is fine for a
    /// session that exists.
    has_default_runtime: bool,
    report: Option<Report>,
}

impl OpenRequest {
    /// Creates a request for a session with the manager's defaults.
    pub fn new(id: SessionId) -> Self {
        Self {
            id,
            tenant: None,
            runtime: None,
            idle_timeout: None,
            max_lifetime: None,
            env: BTreeMap::new(),
            has_default_runtime: false,
            report: None,
        }
    }

    backend_core::setters! {
        /// Sets the customer or project that the session counts for.
        fn tenant(self, tenant: impl Into<Arc<str>>) { self.tenant = Some(tenant.into()) }

        /// Sets what the sandbox is made of. If the session exists with another runtime, opening
        /// it is a `Conflict`.
        fn runtime(self, runtime: Runtime) {
            self.runtime = Some(runtime);
            self.has_default_runtime = false;
        }

        /// Sets the time without use after which the session is ended.
        fn idle_timeout(self, timeout: Duration) { self.idle_timeout = Some(timeout) }

        /// Sets the age at which the session is ended: then no new call begins, and calls
        /// under way are waited for.
        fn max_lifetime(self, lifetime: Duration) { self.max_lifetime = Some(lifetime) }

        /// Sets a variable of the session's commands, such as a token of its user.
        ///
        /// It is no part of the runtime, so a container that was made ready before fits. The
        /// variables of a session last as long as its sandbox, for every process; a request
        /// with others replaces them, and one without any leaves them.
        fn env(self, name: impl Into<String>, value: impl Into<String>) {
            self.env.insert(name.into(), value.into());
        }
    }

    /// Checks the runtime and the variables.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(runtime) = &self.runtime {
            runtime.validate()?;
        }
        let mut command = Command::new("true");
        for (name, value) in &self.env {
            command = command.env(name, value);
        }
        command.check()
    }

    /// Returns the runtime, or else the default of an engine.
    #[cfg(any(feature = "docker", feature = "k8s"))]
    pub(crate) fn runtime_or(&self, default: Option<&Runtime>) -> Result<Runtime> {
        let runtime = self.runtime.as_ref().or(default);
        runtime.cloned().ok_or_else(|| {
            let message = "the session has no runtime; name one, or give the engine a default";
            Error::new(ErrorKind::Config, message)
        })
    }

    /// Returns the [fingerprint] of the runtime.
    pub fn fingerprint(&self) -> Option<String> {
        self.runtime.as_ref().map(fingerprint)
    }

    /// Returns the fingerprint of the runtime that the caller named.
    pub(crate) fn asked_runtime(&self) -> Option<String> {
        self.fingerprint().filter(|_| !self.has_default_runtime)
    }

    /// Fills in the manager's defaults.
    pub(crate) fn with_defaults(
        mut self,
        runtime: Option<&Runtime>,
        max_lifetime: Option<Duration>,
    ) -> Self {
        if self.runtime.is_none() {
            self.runtime = runtime.cloned();
            self.has_default_runtime = true;
        }
        self.max_lifetime = self.max_lifetime.or(max_lifetime);
        self
    }

    /// Reports progress of the opening, such as a layer of an image, as an event. Engines
    /// call it.
    pub fn report_progress(&self, message: &str) {
        if let Some(report) = &self.report {
            report(&self.id, message);
        }
    }

    /// Sets the receiver of progress.
    pub(crate) fn reporting_to(mut self, report: Report) -> Self {
        self.report = Some(report);
        self
    }
}

impl fmt::Debug for OpenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the runtime itself, and not the variables: they may hold secrets.
        f.debug_struct("OpenRequest")
            .field("id", &self.id)
            .field("tenant", &self.tenant)
            .field("runtime", &self.fingerprint())
            .field("idle_timeout", &self.idle_timeout)
            .field("max_lifetime", &self.max_lifetime)
            .finish_non_exhaustive()
    }
}

/// Returns a short text that two runtimes share if they give the same sandbox: the name
/// and a hash of everything but the description.
///
/// ```
/// use sandbox_runtime::Runtime;
/// use sessions::fingerprint;
///
/// let plain = Runtime::from_image("py", "python:3.12-slim");
/// let described = plain.clone().with_description("for reports");
/// let other = plain.clone().with_env("TZ", "UTC");
/// assert_eq!(fingerprint(&plain), fingerprint(&described));
/// assert_ne!(fingerprint(&plain), fingerprint(&other));
/// assert!(fingerprint(&plain).starts_with("py@"));
/// ```
pub fn fingerprint(runtime: &Runtime) -> String {
    let same = runtime.clone().with_description("");
    // A runtime holds strings, numbers and maps with string keys, which JSON can express.
    let json = serde_json::to_vec(&same).unwrap_or_default();
    let hash = ContentHash::of(&json).to_string();
    let hash = hash.get(..HASH_CHARACTERS).unwrap_or(&hash);
    format!("{}@{hash}", runtime.name)
}
