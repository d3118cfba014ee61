//! One started command, run by a supervisor or by this process.

use std::time::Duration;

use backend_core::Result;

use super::direct::Direct;
use super::process::Exited;
use super::supervised::Supervised;
use crate::supervisor::kill::Scope;

/// A started command. It must be ended before it is dropped.
#[derive(Debug)]
pub(crate) enum Job {
    Supervised(Supervised),
    Direct(Direct),
}

impl Job {
    /// Waits until the command runs and returns its process ID. This requires
    /// [`StartRequest::announce`](super::process::StartRequest::announce).
    pub(crate) async fn started(&mut self) -> Result<u32> {
        match self {
            Self::Supervised(job) => job.started().await,
            Self::Direct(job) => Ok(job.pid),
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
    pub(crate) async fn end(&mut self, scope: Scope, grace: Option<Duration>) -> Result<u32> {
        match self {
            Self::Supervised(job) => job.end(scope, grace).await,
            Self::Direct(job) => job.end(scope, grace).await,
        }
    }
}
