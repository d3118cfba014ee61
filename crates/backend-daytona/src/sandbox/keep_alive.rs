//! Tells the service that a sandbox is used: operations of the agent pass it unnoticed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use backend_core::Sandbox as _;
use sandbox_shell::HostedSandbox;
use sandbox_wire::engine;

use super::{DaytonaSandbox, Inner};
use crate::machine::DaytonaMachine;

/// The interval in which activity is told. The service's own timers count minutes.
const INTERVAL: Duration = Duration::from_secs(60);

impl DaytonaSandbox {
    /// Returns the sandbox for an operation, and makes sure that the service hears of it.
    pub(super) fn used(&self) -> &HostedSandbox<DaytonaMachine> {
        let is_new = !self.0.watched.swap(true, Ordering::AcqRel);
        if is_new && let Ok(handle) = engine::handle() {
            handle.spawn(watch(Arc::downgrade(&self.0)));
        }
        &self.0.hosted
    }
}

/// Tells the service once in a while, as long as the sandbox is used. It does not keep the
/// sandbox alive itself. The operation after its end starts another one.
async fn watch(sandbox: Weak<Inner>) {
    let mut told = SystemTime::now();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(inner) = sandbox.upgrade() else {
            return;
        };
        let used = inner.hosted.last_activity();
        if used <= told {
            // Cleared first, so that an operation from now on starts a new watcher.
            inner.watched.store(false, Ordering::Release);
            return;
        }
        told = used;
        let machine = inner.hosted.machine().clone();
        drop(inner);
        if let Err(error) = machine.touch_if_running().await {
            tracing::debug!("activity was not told: {}", error.chain());
        }
    }
}
