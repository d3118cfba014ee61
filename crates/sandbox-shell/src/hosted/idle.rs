//! Stopping a machine that is not used.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use backend_core::Sandbox as _;
use backend_core::ops::StopMode;
use backend_core::sync::lock;
use sandbox_wire::engine;

use super::{HostedMachine, HostedSandbox, Inner};

/// A guard for an operation in progress. While one exists, the sandbox is not idle.
#[derive(Debug)]
pub(super) struct Busy<'a, M: HostedMachine>(&'a Inner<M>);

impl<M: HostedMachine> Drop for Busy<'_, M> {
    fn drop(&mut self) {
        let mut activity = lock(&self.0.activity);
        *activity = (activity.0.saturating_sub(1), SystemTime::now());
    }
}

impl<M: HostedMachine> HostedSandbox<M> {
    /// Registers the start of an operation.
    pub(super) fn busy(&self) -> Busy<'_, M> {
        let mut activity = lock(&self.0.activity);
        activity.0 = activity.0.saturating_add(1);
        Busy(&self.0)
    }

    /// Returns when an operation last began or ended, or the current time while one is
    /// in progress.
    pub(super) fn last_used(&self) -> SystemTime {
        match *lock(&self.0.activity) {
            (0, ended) => ended,
            _ => SystemTime::now(),
        }
    }

    /// Starts the idle watcher, if there is a timeout and none is running.
    pub(super) fn watch(&self) {
        let Some(idle) = self.0.idle_timeout else {
            return;
        };
        if self.0.watched.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Ok(handle) = engine::handle() {
            backend_run::spawn(handle, watch(Arc::downgrade(&self.0), idle));
        }
    }
}

/// Waits until the sandbox was idle for long enough, then stops it. It does not keep
/// the sandbox alive. The next operation starts another watcher.
async fn watch<M: HostedMachine>(sandbox: Weak<Inner<M>>, idle: Duration) {
    loop {
        let Some(inner) = sandbox.upgrade() else {
            return;
        };
        let sandbox = HostedSandbox(inner);
        let quiet = sandbox.last_activity().elapsed().unwrap_or_default();
        if quiet >= idle {
            // Cleared first, so that an operation from now on starts a new watcher.
            sandbox.0.watched.store(false, Ordering::Release);
            let id = sandbox.id();
            tracing::debug!(sandbox = id, "stopping idle sandbox");
            if let Err(error) = sandbox.stop(StopMode::Keep).await {
                tracing::warn!(sandbox = id, "idle sandbox not stopped: {}", error.chain());
            }
            return;
        }
        drop(sandbox);
        tokio::time::sleep(idle - quiet).await;
    }
}
