//! Stopping a container that nobody uses.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use backend_core::ops::StopMode;
use backend_core::{Backend as _, Sandbox as _};
use sandbox_wire::engine;

use super::{DockerSandbox, Inner};

/// An operation that is under way: until it ends, nothing is idle.
#[derive(Debug)]
pub(super) struct Busy<'a>(&'a Inner);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut activity = self.0.activity();
        *activity = (activity.0.saturating_sub(1), SystemTime::now());
    }
}

impl Inner {
    fn activity(&self) -> MutexGuard<'_, (usize, SystemTime)> {
        let locked = self.activity.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

impl DockerSandbox {
    /// Says that an operation begins.
    pub(super) fn busy(&self) -> Busy<'_> {
        let mut activity = self.0.activity();
        activity.0 = activity.0.saturating_add(1);
        Busy(&self.0)
    }

    /// When an operation last began or ended: now, while one is under way.
    pub(super) fn touched(&self) -> SystemTime {
        match *self.0.activity() {
            (0, ended) => ended,
            _ => SystemTime::now(),
        }
    }

    /// Sees to it that somebody watches for idleness, if that was asked for.
    pub(super) fn watch(&self) {
        let Some(idle) = self.0.idle_timeout else {
            return;
        };
        if self.0.watched.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Ok(handle) = engine::handle() {
            handle.spawn(watch(Arc::downgrade(&self.0), idle));
        }
    }
}

/// Waits until the sandbox was idle for long enough, then stops it. Keeps no
/// sandbox alive. The next operation starts another watch.
async fn watch(sandbox: Weak<Inner>, idle: Duration) {
    loop {
        let Some(inner) = sandbox.upgrade() else {
            return;
        };
        let sandbox = DockerSandbox(inner);
        let quiet = sandbox.last_activity().elapsed().unwrap_or_default();
        if quiet >= idle {
            // First, so that an operation from now on is watched again.
            sandbox.0.watched.store(false, Ordering::Release);
            tracing::debug!(container = sandbox.container(), "idle: it is stopped");
            if let Err(error) = sandbox.stop(StopMode::Keep).await {
                let name = sandbox.info().name;
                tracing::warn!(
                    "{name}: an idle container was not stopped: {}",
                    error.chain()
                );
            }
            return;
        }
        drop(sandbox);
        tokio::time::sleep(idle - quiet).await;
    }
}
