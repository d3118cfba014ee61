//! Docker for tests and benchmarks: a daemon, its images, and the program `docker`.

pub(crate) mod daemon;
pub(crate) mod images;

use std::process::Command;

use anyhow::Result;

use crate::docker::daemon::Daemon;
use crate::workspace::Workspace;

/// The `docker` program, connected to one daemon.
pub(crate) struct Docker<'w> {
    pub(crate) workspace: &'w Workspace,
    pub(crate) host: String,
    pub(crate) is_private: bool,
}

impl<'w> Docker<'w> {
    pub(crate) fn new(workspace: &'w Workspace, daemon: &Daemon<'_>) -> Self {
        Self {
            workspace,
            host: daemon.host().to_owned(),
            is_private: matches!(daemon, Daemon::Private(_)),
        }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Result<Command> {
        let mut command = self.workspace.command("docker")?;
        command.args(["--host", &self.host]).args(args);
        Ok(command)
    }
}
