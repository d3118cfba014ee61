//! [`SessionManagerBuilder`]: the settings of a manager.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backend_core::{Error, ErrorKind, Result};
use sandbox_runtime::Runtime;
use tokio::runtime::Handle;

use crate::capacity::Capacity;
use crate::engine::Engine;
use crate::factory::{Factory, FactoryEngine};
use crate::id::SessionId;
use crate::manager::SessionManager;
use crate::shared::{Settings, Shared};
use crate::time::Clock;

/// The time without use after which a session ends, unless it has its own.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

/// The time between two writes of a session's last use to the engine.
pub const WRITE_BACK_INTERVAL: Duration = Duration::from_secs(5);

enum Source {
    Engine(Arc<dyn Engine>),
    Factory(Arc<dyn Factory>),
}

/// The settings of a [`SessionManager`].
#[must_use = "a builder does nothing until `build`"]
pub struct SessionManagerBuilder {
    source: Option<Source>,
    keeps_files: bool,
    max_sessions: Option<usize>,
    max_sessions_per_tenant: Option<usize>,
    clock: Clock,
    settings: Settings,
}

impl SessionManager {
    /// Returns a builder for a manager.
    pub fn builder() -> SessionManagerBuilder {
        SessionManagerBuilder {
            source: None,
            keeps_files: false,
            max_sessions: None,
            max_sessions_per_tenant: None,
            clock: Clock::default(),
            settings: Settings {
                runtime: None,
                idle_timeout: IDLE_TIMEOUT,
                max_lifetime: None,
                hibernate_after: Duration::ZERO,
                write_back: WRITE_BACK_INTERVAL,
                on_release: None,
            },
        }
    }
}

impl SessionManagerBuilder {
    /// Sets what keeps the sandboxes. Replaces a factory.
    pub fn engine(mut self, engine: Arc<dyn Engine>) -> Self {
        self.source = Some(Source::Engine(engine));
        self
    }

    /// Sets what creates the sandboxes, which this process alone knows. Replaces an engine.
    pub fn factory(mut self, factory: impl Factory) -> Self {
        self.source = Some(Source::Factory(Arc::new(factory)));
        self
    }

    /// Declares that a sandbox that the factory creates finds the files of the session's
    /// former one. Then sessions can be hibernated, and recreated if their sandbox dies.
    /// An engine says this itself.
    pub fn keeps_files(mut self, keeps_files: bool) -> Self {
        self.keeps_files = keeps_files;
        self
    }

    /// Sets the runtime of sessions whose request names none.
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.settings.runtime = Some(runtime);
        self
    }

    /// Sets the time without use after which a session ends, unless it has its own. One
    /// hour by default.
    ///
    /// Where several processes share an engine, it should be at least twice the
    /// [interval of writing back](Self::write_back_interval).
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.settings.idle_timeout = timeout;
        self
    }

    /// Sets the age at which a session ends, unless it has its own. None by default.
    pub fn max_lifetime(mut self, lifetime: Duration) -> Self {
        self.settings.max_lifetime = Some(lifetime);
        self
    }

    /// Sets how many sessions may run at once, including those that are being started.
    ///
    /// If one more is opened, the least recently used idle one is hibernated, where files
    /// are kept. Without one, opening is a [`CapacityError`](crate::CapacityError).
    pub fn max_sessions(mut self, limit: usize) -> Self {
        self.max_sessions = Some(limit);
        self
    }

    /// Sets how many sessions of one tenant may run at once.
    pub fn max_sessions_per_tenant(mut self, limit: usize) -> Self {
        self.max_sessions_per_tenant = Some(limit);
        self
    }

    /// Sets how long a session must be idle before it may be hibernated. Zero by default.
    pub fn hibernate_after(mut self, idle: Duration) -> Self {
        self.settings.hibernate_after = idle;
        self
    }

    /// Sets how often the times of use are written to the engine, so that other processes
    /// see them. Five seconds by default.
    pub fn write_back_interval(mut self, interval: Duration) -> Self {
        self.settings.write_back = interval;
        self
    }

    /// Sets a function that is told of each session of this process that has ended. It may
    /// open the session again: no lock is held.
    pub fn on_release(mut self, told: impl Fn(&SessionId) + Send + Sync + 'static) -> Self {
        self.settings.on_release = Some(Box::new(told));
        self
    }

    /// Sets the source of the time, for tests.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Creates the manager. Its sessions are started, woken and ended by tasks on the
    /// current Tokio runtime, which must have its timer enabled; the sessions can be used
    /// from any other.
    ///
    /// # Errors
    ///
    /// `Config` without an engine or factory, for a ceiling or an interval of zero, and
    /// outside a Tokio runtime; the errors of the default runtime's checks.
    pub fn build(self) -> Result<SessionManager> {
        let refuse = |message: &'static str| Err(Error::new(ErrorKind::Config, message));
        if self.max_sessions == Some(0) || self.max_sessions_per_tenant == Some(0) {
            return refuse("a ceiling of zero would let no session run; leave it out for none");
        }
        if self.settings.write_back.is_zero() {
            return refuse("the interval of writing back is zero; choose a few seconds");
        }
        if let Some(runtime) = &self.settings.runtime {
            runtime.validate()?;
        }
        let Ok(handle) = Handle::try_current() else {
            return refuse("sessions need a Tokio runtime; build the manager inside one");
        };
        let engine: Arc<dyn Engine> = match self.source {
            Some(Source::Engine(engine)) => engine,
            Some(Source::Factory(factory)) => {
                let clock = self.clock.clone();
                Arc::new(FactoryEngine::new(factory, self.keeps_files, clock))
            }
            None => return refuse("there is neither an engine nor a factory; set one of them"),
        };
        let capacity = Capacity::new(self.max_sessions, self.max_sessions_per_tenant);
        let shared = Shared::new(engine, capacity, self.clock, self.settings, handle);
        Ok(SessionManager::new(shared))
    }
}

impl fmt::Debug for SessionManagerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionManagerBuilder")
            .field("max_sessions", &self.max_sessions)
            .field("max_sessions_per_tenant", &self.max_sessions_per_tenant)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
