//! A command under a supervisor.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use backend_core::Result;
use backend_core::ops::CommandStatus;
use tokio::sync::mpsc::UnboundedReceiver;

use super::client::{SupervisorClient, lost};
use super::process::{Exited, StartRequest, spawn_error};
use crate::supervisor::kill::Scope;
use crate::supervisor::protocol::{self, Exit, Reply};

#[derive(Debug)]
pub(crate) struct Supervised {
    client: Arc<SupervisorClient>,
    id: u64,
    replies: UnboundedReceiver<Reply>,
    pid: Option<u32>,
    exit: Option<Exited>,
    ended: Option<u32>,
}

impl Supervised {
    pub(crate) async fn start(client: Arc<SupervisorClient>, start: StartRequest) -> Result<Self> {
        let ends = start.ends;
        let spawn = protocol::Spawn {
            id: 0,
            line: start.line,
            environment: start.environment,
            stdin: ends.stdin.is_some(),
            merged: ends.stderr.is_none(),
            announce: start.announce,
            terminal: start.terminal,
        };
        let mut descriptors = vec![start.directory.as_fd()];
        descriptors.extend(ends.stdin.as_ref().map(AsFd::as_fd));
        descriptors.push(ends.stdout.as_fd());
        descriptors.extend(ends.stderr.as_ref().map(AsFd::as_fd));
        let (id, replies) = client.spawn(spawn, &descriptors).await?;
        Ok(Self {
            client,
            id,
            replies,
            pid: None,
            exit: None,
            ended: None,
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
                Reply::Failed {
                    directory, errno, ..
                } => {
                    let error = std::io::Error::from_raw_os_error(errno);
                    return Err(spawn_error(directory, error));
                }
                Reply::Exited { exit, group, .. } => {
                    let status = match exit {
                        Exit::Code(code) => CommandStatus::Exited(code),
                        Exit::Signal(signal) => CommandStatus::Signalled(signal),
                    };
                    self.exit = Some(Exited { status, group });
                }
                Reply::Ended { count, .. } => self.ended = Some(count),
                Reply::Ready | Reply::Refused(_) => {}
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
        self.client.end(protocol::End { id, scope, grace }).await?;
        self.until(|job| job.ended.take()).await
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.client.forget(self.id);
    }
}
