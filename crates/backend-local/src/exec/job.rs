//! One started command, run by a supervisor or by this process.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use backend_core::{Error, Result};

use super::direct::Direct;
use super::pump::ChildEnds;

/// A command to start.
#[derive(Debug)]
pub(crate) struct StartRequest {
    pub(crate) line: String,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) directory: Arc<OwnedFd>,
    pub(crate) ends: ChildEnds,
    /// Whether the process ID will be asked for.
    pub(crate) announce: bool,
}

/// The exit status of a command's first process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exited {
    /// Whether `number` is a signal and not an exit code.
    pub(crate) signal: bool,
    pub(crate) number: i32,
    /// Whether its process group still has members.
    pub(crate) group: bool,
}

/// The processes of a command to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Those left in its process group.
    Group,
    /// Everything it started.
    Tree,
}

/// A started command. It must be ended before it is dropped.
#[derive(Debug)]
pub(crate) enum Job {
    /// By a supervisor.
    Supervised(Supervised),
    /// By this process.
    Direct(Direct),
}

impl Job {
    /// Waits until the command runs and returns its process ID. This requires
    /// [`StartRequest::announce`].
    pub(crate) async fn started(&mut self) -> Result<u32> {
        match self {
            Self::Supervised(job) => job.started().await,
            Self::Direct(job) => Ok(job.pid()),
        }
    }

    /// Waits for the first process to exit. May be called again.
    pub(crate) async fn exited(&mut self) -> Result<Exited> {
        match self {
            Self::Supervised(job) => job.exited().await,
            Self::Direct(job) => job.exited().await,
        }
    }

    /// Ends processes with TERM and, after `grace`, KILL. Without a grace
    /// period, only counts them. Returns the number of processes.
    pub(crate) async fn end(&mut self, extent: Extent, grace: Option<Duration>) -> Result<u32> {
        match self {
            Self::Supervised(job) => job.end(extent, grace).await,
            Self::Direct(job) => job.end(extent, grace).await,
        }
    }
}

pub(crate) use supervised::Supervised;

mod supervised {
    use std::os::fd::AsFd;

    use tokio::sync::mpsc::UnboundedReceiver;

    use super::*;
    use crate::exec::client::{SupervisorClient, lost};
    use crate::supervisor::kill::Scope;
    use crate::supervisor::protocol::{self, Exit, Reply};

    /// A command under a supervisor.
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
        pub(crate) async fn start(
            client: Arc<SupervisorClient>,
            start: StartRequest,
        ) -> Result<Self> {
            let ends = start.ends;
            let spawn = protocol::Spawn {
                id: 0,
                line: start.line,
                environment: start.environment,
                stdin: ends.stdin.is_some(),
                merged: ends.stderr.is_none(),
                announce: start.announce,
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

        /// Handles the next reply.
        async fn next(&mut self) -> Result<()> {
            match self.replies.recv().await.ok_or_else(lost)? {
                Reply::Spawned { pid, .. } => self.pid = Some(pid.cast_unsigned()),
                Reply::Failed {
                    directory, errno, ..
                } => {
                    return Err(spawn_error(
                        directory,
                        std::io::Error::from_raw_os_error(errno),
                    ));
                }
                Reply::Exited { exit, group, .. } => {
                    let (signal, number) = match exit {
                        Exit::Code(code) => (false, code),
                        Exit::Signal(signal) => (true, signal),
                    };
                    self.exit = Some(Exited {
                        signal,
                        number,
                        group,
                    });
                }
                Reply::Ended { count, .. } => self.ended = Some(count),
                Reply::Ready | Reply::Refused(_) => {}
            }
            Ok(())
        }

        pub(crate) async fn started(&mut self) -> Result<u32> {
            loop {
                if let Some(pid) = self.pid {
                    return Ok(pid);
                }
                self.next().await?;
            }
        }

        pub(crate) async fn exited(&mut self) -> Result<Exited> {
            loop {
                if let Some(exit) = self.exit {
                    return Ok(exit);
                }
                self.next().await?;
            }
        }

        pub(crate) async fn end(&mut self, extent: Extent, grace: Option<Duration>) -> Result<u32> {
            let scope = match extent {
                Extent::Group => Scope::Group,
                Extent::Tree => Scope::Tree,
            };
            let grace = grace.map(|grace| u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
            let id = self.id;
            self.ended = None;
            self.client.end(protocol::End { id, scope, grace }).await?;
            loop {
                if let Some(count) = self.ended.take() {
                    return Ok(count);
                }
                self.next().await?;
            }
        }
    }

    impl Drop for Supervised {
        fn drop(&mut self) {
            self.client.forget(self.id);
        }
    }
}

/// The error for a command that could not be started.
pub(crate) fn spawn_error(directory: bool, error: std::io::Error) -> Error {
    use std::io::ErrorKind as Io;
    let answer = match (error.kind(), directory) {
        (Io::ArgumentListTooLong, _) => Error::invalid_input(
            "the command and its variables are longer than the system takes; put them into a file",
        ),
        (Io::PermissionDenied, true) => Error::new(
            backend_core::ErrorKind::PermissionDenied,
            "commands may not run in that directory; choose another",
        ),
        (_, true) => Error::unavailable("the command's directory cannot be entered"),
        (Io::NotFound | Io::PermissionDenied, false) => Error::unavailable(
            "the shell is not there or cannot be run; choose another with `Commands::shell`",
        ),
        _ => Error::unavailable("the command could not be started; see the cause and try again"),
    };
    answer.with_source(error)
}
