//! Commands without a supervisor: started and ended by this process.
//!
//! It ends every process it can find: the process group, the groups and
//! sessions that its processes lead, their children, and every process with the
//! marker variable.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use backend_core::limits::KILL_GRACE;
use backend_core::ops::CommandStatus;
use backend_core::{Error, Result};
use rustix::process::Pid;
use tokio::sync::watch;

use super::process::{Exited, StartRequest, spawn_error};
use crate::engine;
use crate::supervisor::kill::{self, Marker, Scope, Target};
use crate::supervisor::process::{MARKER, group_exists, ticks};

#[derive(Debug)]
pub(crate) struct Direct {
    pub(crate) pid: u32,
    exit: watch::Receiver<Option<Exited>>,
    target: Target,
}

impl Direct {
    /// Starts a command. Must run on the engine.
    pub(crate) fn start(
        shell: &Path,
        environment: &[(OsString, OsString)],
        marker: &str,
        start: StartRequest,
    ) -> Result<Self> {
        let trouble = |error| spawn_error(false, error);
        // A number that the child's standard streams do not replace.
        let directory = rustix::io::fcntl_dupfd_cloexec(&*start.directory, 3);
        let directory = directory.map_err(|error| trouble(error.into()))?;
        let ends = start.ends;
        let stderr = match ends.stderr {
            Some(stderr) => stderr,
            None => ends.stdout.try_clone().map_err(trouble)?,
        };
        let since = ticks();
        let mut child = tokio::process::Command::new(shell)
            // `--`: a line that begins with a dash is not an option.
            .args(["-c", "--"])
            .arg(start.line)
            .env_clear()
            .envs(environment.iter().cloned())
            .envs(start.environment)
            .env(MARKER, marker)
            // The child changes directory before its copy of the descriptor
            // closes.
            .current_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()))
            .stdin(ends.stdin.map_or_else(Stdio::null, Stdio::from))
            .stdout(Stdio::from(ends.stdout))
            .stderr(Stdio::from(stderr))
            .process_group(0)
            .spawn()
            .map_err(trouble)?;
        let pid = child.id().unwrap_or_default();
        let (tell, exit) = watch::channel(None);
        // Always waited for: dropping a running child makes tokio install a
        // process-wide signal handler.
        tokio::spawn(async move {
            let status = child.wait().await;
            let exited = status.map(|status| Exited {
                status: match status.code() {
                    Some(code) => CommandStatus::Exited(code),
                    None => CommandStatus::Signalled(status.signal().unwrap_or_default()),
                },
                group: Pid::from_raw(pid.cast_signed()).is_some_and(group_exists),
            });
            tell.send_replace(exited.ok());
        });
        Ok(Self {
            pid,
            exit,
            target: Target {
                groups: vec![pid.cast_signed()],
                marker: Marker::Is(marker.as_bytes().to_vec()),
                since,
                supervisor: None,
            },
        })
    }

    pub(crate) async fn exited(&mut self) -> Result<Exited> {
        let exit = self.exit.wait_for(Option::is_some).await;
        let exit = exit.ok().and_then(|exit| *exit);
        exit.ok_or_else(|| Error::internal("the command's exit status could not be read"))
    }

    pub(crate) async fn end(&self, scope: Scope, grace: Option<Duration>) -> Result<u32> {
        let mut target = self.target.clone();
        if self.exit.borrow().is_some_and(|exited| !exited.group) {
            // The process group ID may have been reused.
            target.groups.clear();
        }
        engine::blocking(move || Ok(kill::end(&target, scope, grace))).await
    }
}

/// Ends every process whose marker starts with `marker`.
pub(crate) fn sweep(marker: String) {
    kill::end(&Target::marked(marker), Scope::Tree, Some(KILL_GRACE));
}
