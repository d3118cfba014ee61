//! A runtime that is owned elsewhere and may end at any time.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use backend_core::Result;
use futures_util::FutureExt as _;
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

    /// Polls a future while the runtime runs. A timer that is polled after the end
    /// panics. So the end is checked first, and again after a panic: the runtime may end
    /// in between.
    pub(super) async fn while_it_runs<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        let mut runs = self.runs.clone();
        let end = pin!(runs.changed());
        let future = pin!(AssertUnwindSafe(future).catch_unwind());
        match select(end, future).await {
            Either::Left(_) => Err(ended()),
            Either::Right((Ok(value), _)) => Ok(value),
            Either::Right((Err(panic), _)) => {
                self.handle()?;
                resume_unwind(panic)
            }
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
    use std::panic::catch_unwind;
    use std::time::Duration;

    use backend_core::ErrorKind;
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn a_timer_after_the_end_of_the_runtime_is_unavailable() {
        for mut builder in [Builder::new_multi_thread(), Builder::new_current_thread()] {
            let runtime = builder.worker_threads(1).enable_all().build().unwrap();
            let handle = runtime.handle().clone();
            let borrowed = Borrowed::new(&handle);
            let work = async move {
                // Another thread drops it: an async context must not.
                std::thread::spawn(move || drop(runtime)).join().unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            };
            let _context = handle.enter();
            let ended = futures::executor::block_on(borrowed.while_it_runs(work));
            assert_eq!(ended.unwrap_err().kind(), ErrorKind::Unavailable);
        }
    }

    #[test]
    fn other_panics_reach_the_caller() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let borrowed = Borrowed::new(runtime.handle());
        let work = async { panic!("its own") };
        let call = || runtime.block_on(borrowed.while_it_runs::<()>(work));
        let panic = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"its own"));
    }

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
