//! [`Pool`]: a bounded number of threads for work that blocks.
//!
//! Work is queued only when a thread is free for it: callers wait for a permit before
//! they submit it. If a call is dropped before that, its work is never queued.
//!
//! The threads are our own because every adapter has its own bound: in a pool that is shared,
//! such as that of the `blocking` crate or of a tokio runtime, an adapter inside another one
//! could wait for threads that wait for it. They also need no runtime.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use backend_core::sync::lock;
use backend_core::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

/// Time after which an idle thread ends.
const IDLE: Duration = Duration::from_secs(10);

/// The thread limits of a [`BlockingAdapter`](crate::BlockingAdapter). Threads are
/// started on demand and end when idle. A call waits if no thread is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolSize {
    /// Threads for file operations and everything else that does not wait long.
    pub files: usize,
    /// Threads for running commands and for reads that wait for a shell.
    pub commands: usize,
}

impl Default for PoolSize {
    fn default() -> Self {
        Self {
            files: 16,
            commands: 64,
        }
    }
}

impl PoolSize {
    backend_core::setters! {
        /// Sets the maximum number of threads for files; at least one.
        files: usize,
        /// Sets the maximum number of threads for commands; at least one.
        commands: usize,
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads for blocking work. They end with the pool, once they are idle.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    permits: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    is_closed: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("jobs", &self.jobs.len())
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// The main loop of a thread: runs jobs until there have been none for a while.
    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = lock(&self.state);
                continue;
            }
            if state.is_closed {
                return;
            }
            state.idle += 1;
            let waited = self.changed.wait_timeout(state, IDLE);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                return;
            }
        }
    }
}

impl Pool {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            shared: Arc::default(),
            permits: Arc::new(Semaphore::new(threads.clamp(1, Semaphore::MAX_PERMITS))),
        }
    }

    /// Waits until a thread is free or can be started.
    pub(super) async fn permit(&self) -> Result<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit.map_err(|_| Error::internal("the pool of threads was closed; please report this"))
    }

    /// Runs `job`, which must not panic, on a thread. The thread counts as busy for as
    /// long as the job keeps its permit.
    pub(super) fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut state = lock(&self.shared.state);
        if state.idle > state.jobs.len() {
            state.jobs.push_back(Box::new(job));
            self.shared.changed.notify_one();
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        state.jobs.push_back(Box::new(job));
        let started = std::thread::Builder::new()
            .name("blocking-backend".into())
            .spawn(move || shared.work());
        started.map(drop).map_err(|source| {
            state.jobs.pop_back();
            Error::unavailable("no thread could be started; raise the process limit")
                .with_source(source)
        })
    }

    /// Runs `work` on a thread. If the call is dropped before the work has started, it
    /// never starts; after that it runs to completion.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        fence: Option<&Fence>,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = self.permit().await?;
        let (told, answer) = oneshot::channel();
        let task = Arc::new(Task::new(fence));
        let waiter = Waiter(Arc::clone(&task));
        self.submit(move || {
            let _permit = permit;
            if task.begin() {
                let result = catch_unwind(AssertUnwindSafe(work));
                task.end();
                let _ = told.send(result.unwrap_or_else(|_| Err(panicked())));
            }
        })?;
        let result = answer.await;
        drop(waiter);
        result.unwrap_or_else(|_| Err(panicked()))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.state).is_closed = true;
        self.shared.changed.notify_all();
    }
}

pub(super) fn panicked() -> Error {
    Error::internal("the blocking backend panicked; please report this to its author")
}

/// Keeps calls from overtaking changes that are still running after their call was
/// dropped: the next call waits for them.
#[derive(Debug, Clone, Default)]
pub(super) struct Fence(Arc<watch::Sender<usize>>);

impl Fence {
    pub(super) async fn wait(&self) {
        if *self.0.borrow() > 0 {
            // The channel cannot close: `self` holds the sender.
            let _ = self
                .0
                .subscribe()
                .wait_for(|abandoned| *abandoned == 0)
                .await;
        }
    }
}

/// The state of a task.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Waiting,
    Running,
    /// It is running, but its call was dropped.
    Abandoned,
    Over,
}

#[derive(Debug)]
struct Task {
    progress: Mutex<Progress>,
    fence: Option<Fence>,
}

impl Task {
    fn new(fence: Option<&Fence>) -> Self {
        Self {
            progress: Mutex::new(Progress::Waiting),
            fence: fence.cloned(),
        }
    }

    /// Marks the task as running, unless its call was dropped.
    fn begin(&self) -> bool {
        let mut progress = lock(&self.progress);
        let is_wanted = *progress == Progress::Waiting;
        if is_wanted {
            *progress = Progress::Running;
        }
        is_wanted
    }

    fn end(&self) {
        let mut progress = lock(&self.progress);
        if let (Progress::Abandoned, Some(fence)) = (&*progress, &self.fence) {
            fence.0.send_modify(|abandoned| *abandoned -= 1);
        }
        *progress = Progress::Over;
    }
}

/// The waiting side of a task.
struct Waiter(Arc<Task>);

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut progress = lock(&self.0.progress);
        *progress = match *progress {
            Progress::Running => {
                if let Some(fence) = &self.0.fence {
                    fence.0.send_modify(|abandoned| *abandoned += 1);
                }
                Progress::Abandoned
            }
            _ => Progress::Over,
        };
    }
}

#[cfg(test)]
mod tests;
