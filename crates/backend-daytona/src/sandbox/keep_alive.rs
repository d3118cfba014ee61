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
            handle.spawn(watch(Arc::downgrade(&self.0), INTERVAL));
        }
        &self.0.hosted
    }
}

/// Tells the service once in a while, as long as the sandbox is used. It does not keep the
/// sandbox alive itself. The operation after its end starts another one.
async fn watch(sandbox: Weak<Inner>, interval: Duration) {
    let mut told = SystemTime::now();
    loop {
        tokio::time::sleep(interval).await;
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use backend_core::BackendExt as _;
    use backend_core::ops::{Command, StopMode};
    use daytona_testkit::Standin;
    use sandbox_shell::Mode;

    use super::*;
    use crate::account::Account;

    /// The longest wait for anything. Only what never comes about takes this long.
    const PATIENCE: Duration = Duration::from_secs(120);
    const TOUCH: &str = "POST /api/sandbox/{id}/last-activity";

    #[tokio::test]
    async fn a_command_that_runs_is_told_until_it_ends() {
        let standin = Standin::start().await.unwrap();
        let account = Account::builder()
            .api_key(standin.api_key())
            .url(standin.api_url())
            .build()
            .unwrap();
        let sandbox = DaytonaSandbox::builder()
            .account(account)
            .mode(Mode::Portable)
            .reap_leftovers(false)
            .build()
            .unwrap();
        let moment = Duration::from_millis(10);
        let command = Command::new("until [ -e end ]; do sleep 0.05; done");
        let command = sandbox.execute(command);
        let mut watcher = None;
        // Begun after the command, without which it would end at once.
        let watched = async {
            let watch = watch(Arc::downgrade(&sandbox.0), moment);
            watcher = Some(engine::handle().unwrap().spawn(watch));
            while standin.requests().of(TOUCH) < 2 {
                tokio::time::sleep(moment).await;
            }
            sandbox.write_file("end", "").await.unwrap();
        };
        let both = async { tokio::join!(command, watched) };
        let (ended, ()) = tokio::time::timeout(PATIENCE, both).await.unwrap();
        assert!(ended.unwrap().status.success());
        watcher.unwrap().await.unwrap();
        let is_watched = sandbox.0.watched.load(Ordering::Acquire);
        assert!(!is_watched, "the next operation starts a new watcher");
        sandbox.stop(StopMode::Purge).await.unwrap();
        standin.close().await;
    }
}
