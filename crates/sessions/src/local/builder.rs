//! [`LocalEngineBuilder`]: the options of a [`LocalEngine`](crate::LocalEngine).

use std::path::PathBuf;
use std::time::Duration;

use backend_local::Commands;

/// Options of a [`LocalEngine`](crate::LocalEngine), from its
/// [`builder`](crate::LocalEngine::builder).
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `open`"]
pub struct LocalEngineBuilder {
    pub(super) root: PathBuf,
    pub(super) commands: Commands,
    pub(super) session_quota: Option<u64>,
    pub(super) total_quota: Option<u64>,
    pub(super) time_to_live: Option<Duration>,
}

impl LocalEngineBuilder {
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            root,
            commands: Commands::new(),
            session_quota: None,
            total_quota: None,
            time_to_live: None,
        }
    }

    backend_core::setters! {
        /// Sets how commands run. Sessions that must not reach each other's files need
        /// [confinement](backend_local::Confinement::Landlock): without it, a command may do
        /// everything that the user of this process may.
        fn commands(self, commands: Commands) { self.commands = commands }

        /// Sets how many bytes one session may store. At the quota, writes and commands fail
        /// with `TooLarge` and a [`QuotaError`](crate::QuotaError); reading and deleting work.
        /// An edit, a copy or a command that begins below it may end above it.
        fn session_quota(self, bytes: u64) { self.session_quota = Some(bytes) }

        /// Sets how many bytes all sessions together may store. At the quota, new sessions
        /// fail with `TooLarge` and a [`QuotaError`](crate::QuotaError); those with stored
        /// files open.
        fn total_quota(self, bytes: u64) { self.total_quota = Some(bytes) }

        /// Sets how long files are stored after the last use. By default they stay until they
        /// are purged.
        fn time_to_live(self, time: Duration) { self.time_to_live = Some(time) }
    }
}
