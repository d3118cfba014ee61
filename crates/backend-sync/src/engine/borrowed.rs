//! A runtime that is owned elsewhere and may end at any time.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use backend_core::Result;
use futures_util::future::{Either, select};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{AbortHandle, coop};

use super::ended;

/// A runtime and a task on it that notices its end.
pub(super) struct Borrowed {
    handle: Handle,
    /// Closed when the runtime drops the task that holds the other end.
    runs: watch::Receiver<()>,
    sentinel: AbortHandle,
}

impl Borrowed {
    pub(super) fn new(runtime: &Handle) -> Self {
        let (held, runs) = watch::channel(());
        let sentinel = runtime.spawn(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        Self {
            handle: runtime.clone(),
            runs,
            sentinel: sentinel.abort_handle(),
        }
    }

    pub(super) fn handle(&self) -> Result<&Handle> {
        match self.runs.has_changed() {
            Ok(_) => Ok(&self.handle),
            Err(_) => Err(ended()),
        }
    }

    /// Polls a future while the runtime runs. The end is checked first, because a timer
    /// that is polled after it panics.
    pub(super) async fn while_it_runs<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        let mut runs = self.runs.clone();
        let end = pin!(runs.changed());
        match select(end, pin!(future)).await {
            Either::Left(_) => Err(ended()),
            Either::Right((value, _)) => Ok(value),
        }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        self.sentinel.abort();
    }
}

/// Whether this thread is currently polling a task.
///
/// A thread also has its runtime's context in `spawn_blocking`, in `block_in_place` and
/// after `Handle::enter`, where it may block. Tokio's cooperative budget is only
/// counted down while the thread polls, and that can be observed: it runs out.
pub(super) fn is_polling() -> bool {
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(before) = coop::poll_proceed(&mut context) else {
        return true;
    };
    let is_counted = (0..=u8::MAX).any(|_| match coop::poll_proceed(&mut context) {
        Poll::Ready(step) => {
            step.made_progress();
            false
        }
        Poll::Pending => true,
    });
    // Restores the budget.
    drop(before);
    is_counted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_is_told_from_waiting() {
        assert!(!is_polling());
        let runtime = tokio::runtime::Runtime::new().unwrap();
        {
            let _context = runtime.enter();
            assert!(!is_polling());
        }
        runtime.block_on(async {
            assert!(is_polling());
            assert!(is_polling(), "the steps were given back");
            assert!(coop::has_budget_remaining());
            assert!(!tokio::task::block_in_place(is_polling));
            assert!(tokio::spawn(async { is_polling() }).await.unwrap());
            assert!(!tokio::task::spawn_blocking(is_polling).await.unwrap());
        });
    }
}
