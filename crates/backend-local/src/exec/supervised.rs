//! A command under a supervisor.

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use backend_core::ops::CommandStatus;
use backend_core::{Error, ErrorKind, Quoted, Result};
use tokio::sync::mpsc::UnboundedReceiver;

use super::client::{SupervisorClient, lost};
use super::process::{Exited, StartRequest, spawn_error};
use super::views::InUse;
use crate::supervisor::kill::Scope;
use crate::supervisor::protocol::{self, Exit, InView, Reply, Trouble};

#[derive(Debug)]
pub(crate) struct Supervised {
    client: Arc<SupervisorClient>,
    id: u64,
    replies: UnboundedReceiver<Reply>,
    pid: Option<u32>,
    exit: Option<Exited>,
    ended: Option<u32>,
    /// The view that it runs in, which is kept for it.
    view: Option<InUse>,
}

impl Supervised {
    pub(crate) async fn start(
        client: Arc<SupervisorClient>,
        start: StartRequest,
        view: Option<InUse>,
    ) -> Result<Self> {
        let ends = start.ends;
        let place = view.as_ref().map(|view| in_view(view, &start.directory));
        let id = client.number();
        if let Some(view) = &view {
            view.starts(id)?;
        }
        let spawn = protocol::Spawn {
            id,
            line: start.line,
            environment: start.environment,
            stdin: ends.stdin.is_some(),
            merged: ends.stderr.is_none(),
            announce: start.announce,
            terminal: start.terminal,
            place: place.transpose()?,
        };
        let mut descriptors = vec![start.directory.as_fd()];
        descriptors.extend(ends.stdin.as_ref().map(AsFd::as_fd));
        descriptors.push(ends.stdout.as_fd());
        descriptors.extend(ends.stderr.as_ref().map(AsFd::as_fd));
        let replies = client.spawn(spawn, &descriptors).await?;
        Ok(Self {
            client,
            id,
            replies,
            pid: None,
            exit: None,
            ended: None,
            view,
        })
    }

    /// Handles replies until `wanted` is there.
    async fn until<T>(&mut self, wanted: impl Fn(&mut Self) -> Option<T>) -> Result<T> {
        loop {
            if let Some(found) = wanted(self) {
                return Ok(found);
            }
            match self.replies.recv().await.ok_or_else(lost)? {
                Reply::Spawned { pid, .. } => self.pid = Some(pid.cast_unsigned()),
                Reply::Failed { trouble, .. } => return Err(self.failed(trouble)),
                Reply::Exited { exit, group, .. } => {
                    let status = match exit {
                        Exit::Code(code) => CommandStatus::Exited(code),
                        Exit::Signal(signal) => CommandStatus::Signalled(signal),
                    };
                    self.exit = Some(Exited { status, group });
                }
                Reply::Ended { count, .. } => self.ended = Some(count),
                Reply::Ready | Reply::Refused(_) | Reply::Unviewed(_) | Reply::Masked { .. } => {}
            }
        }
    }

    /// Returns the error for a command that did not start.
    fn failed(&self, trouble: Trouble) -> Error {
        let cause = std::io::Error::from_raw_os_error;
        match trouble {
            Trouble::Directory(errno) => spawn_error(true, cause(errno)),
            Trouble::Shell(errno) => spawn_error(false, cause(errno)),
            Trouble::View(text) => {
                if let Some(view) = &self.view {
                    view.give_up();
                }
                Error::new(
                    ErrorKind::PermissionDenied,
                    format!(
                        "what is denied could not be kept from the command, so it did not run: {}",
                        Quoted::new(&text)
                    ),
                )
            }
        }
    }

    pub(crate) async fn started(&mut self) -> Result<u32> {
        self.until(|job| job.pid).await
    }

    pub(crate) async fn exited(&mut self) -> Result<Exited> {
        self.until(|job| job.exit).await
    }

    pub(crate) async fn end(&mut self, scope: Scope, grace: Option<Duration>) -> Result<u32> {
        let grace = grace.map(|grace| u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
        let id = self.id;
        self.ended = None;
        let end = protocol::End {
            id,
            command: id,
            scope,
            grace,
        };
        self.client.end(end).await?;
        self.until(|job| job.ended.take()).await
    }
}

/// Returns the place of a command that starts in `directory`.
fn in_view(view: &InUse, directory: &OwnedFd) -> Result<InView> {
    let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new());
    let path = path.map_err(|error| spawn_error(true, error.into()))?;
    Ok(InView {
        view: view.id(),
        directory: path.into_bytes(),
    })
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.client.forget(self.id);
    }
}
