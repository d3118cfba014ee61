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
    backend_core::setters! {
        /// Sets what keeps the sandboxes. Replaces a factory.
        fn engine(self, engine: Arc<dyn Engine>) { self.source = Some(Source::Engine(engine)) }

        /// Sets what creates the sandboxes, which this process alone knows. Replaces an engine.
        fn factory(self, factory: impl Factory) {
            self.source = Some(Source::Factory(Arc::new(factory)));
        }

        /// Declares that a sandbox that the factory creates finds the files of the session's
        /// former one. Then sessions can be hibernated, and recreated if their sandbox dies.
        /// An engine says this itself.
        fn keeps_files(self, keeps_files: bool) { self.keeps_files = keeps_files }

        /// Sets the runtime of sessions whose request names none.
        fn runtime(self, runtime: Runtime) { self.settings.runtime = Some(runtime) }

        /// Sets the time without use after which a session ends, unless it has its own. One
        /// hour by default.
        ///
        /// Where several processes share an engine, it should be at least twice the
        /// [interval of writing back](Self::write_back_interval).
        fn idle_timeout(self, timeout: Duration) { self.settings.idle_timeout = timeout }

        /// Sets the age at which a session ends, unless it has its own. None by default.
        fn max_lifetime(self, lifetime: Duration) { self.settings.max_lifetime = Some(lifetime) }

        /// Sets how many sessions may run at once, including those that are being started.
        ///
        /// If one more is opened, the least recently used idle one is hibernated, where files
        /// are kept. Without one, opening is a [`CapacityError`](crate::CapacityError).
        fn max_sessions(self, limit: usize) { self.max_sessions = Some(limit) }

        /// Sets how many sessions of one tenant may run at once.
        fn max_sessions_per_tenant(self, limit: usize) {
            self.max_sessions_per_tenant = Some(limit);
        }

        /// Sets how long a session must be idle before it may be hibernated. Zero by default.
        fn hibernate_after(self, idle: Duration) { self.settings.hibernate_after = idle }

        /// Sets how often the times of use are written to the engine, so that other processes
        /// see them. Five seconds by default.
        fn write_back_interval(self, interval: Duration) { self.settings.write_back = interval }

        /// Sets a function that is told of each session of this process that has ended. It may
        /// open the session again: no lock is held.
        fn on_release(self, told: impl Fn(&SessionId) + Send + Sync + 'static) {
            self.settings.on_release = Some(Box::new(told));
        }

        /// Sets the source of the time, for tests.
        fn clock(self, clock: Clock) { self.clock = clock }
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
