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

    /// Sets how commands run. Sessions that must not reach each other's files need
    /// [confinement](backend_local::Confinement::Landlock): without it, a command may do
    /// everything that the user of this process may.
    pub fn commands(mut self, commands: Commands) -> Self {
        self.commands = commands;
        self
    }

    /// Sets how many bytes one session may store. At the quota, writes and commands fail
    /// with `TooLarge` and a [`QuotaError`](crate::QuotaError); reading and deleting work.
    /// An edit, a copy or a command that begins below it may end above it.
    pub fn session_quota(mut self, bytes: u64) -> Self {
        self.session_quota = Some(bytes);
        self
    }

    /// Sets how many bytes all sessions together may store. At the quota, new sessions
    /// fail with `TooLarge` and a [`QuotaError`](crate::QuotaError); those with stored
    /// files open.
    pub fn total_quota(mut self, bytes: u64) -> Self {
        self.total_quota = Some(bytes);
        self
    }

    /// Sets how long files are stored after the last use. By default they stay until they
    /// are purged.
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.time_to_live = Some(time);
        self
    }
}
