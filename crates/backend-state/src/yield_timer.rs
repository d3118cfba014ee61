//! Runs long work on an async worker in slices, so that other tasks get their turn
//! and a dropped future stops soon.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Time that a task works before it yields.
const SLICE: Duration = Duration::from_micros(500);

/// The timer of one operation.
#[derive(Debug)]
pub(crate) struct YieldTimer {
    began: Instant,
}

impl YieldTimer {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
        }
    }

    /// Yields to the runtime, whichever it is, if a slice has passed.
    pub(crate) async fn tick(&mut self) {
        if self.began.elapsed() >= SLICE {
            yield_now().await;
            self.began = Instant::now();
        }
    }
}

async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
