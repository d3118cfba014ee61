//! [`DaytonaEngineBuilder`]: the options of a [`DaytonaEngine`](super::DaytonaEngine).

use std::time::Duration;

use backend_core::{Error, ErrorKind, Result};
use backend_daytona::{Account, DaytonaBuilder};
use sandbox_runtime::Runtime;

use crate::names::Names;

/// The space of sessions, unless another one is named.
const DEFAULT_SPACE: &str = "default";
/// The time without use after which the service stops a session: twice the idle timeout of a
/// manager with its defaults.
const DEFAULT_AUTO_STOP: Duration = Duration::from_secs(2 * 3600);
/// The shortest such time that the service knows.
const MINUTE: Duration = Duration::from_secs(60);
/// The longest time of a change of labels, unless another one is set.
const DEFAULT_SETTLE: Duration = Duration::from_secs(2);

/// Options of a [`DaytonaEngine`](super::DaytonaEngine), from
/// [`DaytonaEngine::builder`](super::DaytonaEngine::builder), which has an example.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct DaytonaEngineBuilder {
    pub(super) account: Account,
    pub(super) template: DaytonaBuilder,
    pub(super) runtime: Option<Runtime>,
    pub(super) auto_stop: Duration,
    pub(super) keep_for: Option<Duration>,
    pub(super) settle: Duration,
    space: String,
}

impl DaytonaEngineBuilder {
    pub(super) fn new(account: Account) -> Self {
        Self {
            account,
            template: DaytonaBuilder::default(),
            runtime: None,
            auto_stop: DEFAULT_AUTO_STOP,
            keep_for: None,
            settle: DEFAULT_SETTLE,
            space: DEFAULT_SPACE.to_owned(),
        }
    }

    backend_core::setters! {
        /// Sets the options that every sandbox is created with: a snapshot, resources, network,
        /// agent, environment. Its name, its account and the times after which it is stopped
        /// and deleted are set by the engine.
        ///
        /// Its snapshot or image is that of sessions without a [runtime](Self::runtime); leave
        /// it out if sessions have one.
        fn template(self, template: DaytonaBuilder) { self.template = template }

        /// Sets the runtime of sessions that are opened without one. For an image that is
        /// used as it is: `Runtime::from_image("python", "python:3.12-slim")`.
        fn runtime(self, runtime: Runtime) { self.runtime = Some(runtime) }

        /// Names the space of the sessions: small letters and digits. Processes that name
        /// the same space in the same organization share its sessions; those of other spaces
        /// are never touched. `default` unless set.
        fn space(self, space: impl Into<String>) { self.space = space.into() }

        /// Sets the time without use after which the service itself stops a session, in case
        /// no process is left that does. Two hours unless set. It must be longer than the idle
        /// timeout of the manager: otherwise a session that is open can be found stopped, and
        /// the call that finds it fails.
        fn auto_stop(self, time: Duration) { self.auto_stop = time }

        /// Lets the service delete a session, with its files, that has been stopped for this
        /// long, in whole minutes. They are kept until they are purged by default.
        fn keep_stored_for(self, time: Duration) { self.keep_for = Some(time) }

        /// Sets the longest time that a process takes to read the labels of a sandbox and to
        /// write them back. Two seconds unless set; all processes of a space must have the
        /// same.
        ///
        /// Ending an idle session takes this much longer, and so does the first use after a
        /// while of a session that runs. If a change takes longer nevertheless, a session may be
        /// stopped while another process begins to use it.
        fn settle_time(self, time: Duration) { self.settle = time }
    }

    /// Checks the options.
    pub(super) fn check(&self) -> Result<Names> {
        if let Some(runtime) = &self.runtime {
            runtime.validate()?;
        }
        let shortest = self
            .keep_for
            .map_or(self.auto_stop, |time| time.min(self.auto_stop));
        if shortest < MINUTE {
            return Err(Error::new(
                ErrorKind::Config,
                "the time until a session is stopped or deleted by the service is shorter than a \
                 minute; give a longer one",
            ));
        }
        Names::new(&self.space)
    }
}
