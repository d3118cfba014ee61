//! The runtime of a sandbox, and waiting for work on it.
//!
//! A runtime has code of its own for every type of work, several kilobytes each. All
//! work that is started here is of one type to it.

use std::sync::{Arc, Mutex};

use backend_core::sync::lock;
use backend_core::{Error, Result};
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Returns a sandbox's runtime, starting it if needed.
pub type Engine = fn() -> Result<&'static Handle>;

/// Starts work on a runtime.
pub fn spawn(engine: &Handle, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let work: BoxFuture<'static, ()> = Box::pin(work);
    engine.spawn(work)
}

/// Starts work on the threads of a runtime that may wait.
pub fn spawn_blocking(engine: &Handle, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let work: Box<dyn FnOnce() + Send> = Box::new(work);
    engine.spawn_blocking(work)
}

/// Runs work on a runtime. Dropping the call aborts it.
///
/// # Errors
///
/// Any error of the work; `Internal` with this text if it panicked;
/// `Unavailable` if the runtime is gone.
pub async fn run<T: Send + 'static>(
    engine: &Handle,
    work: impl Future<Output = Result<T>> + Send + 'static,
    panicked: &'static str,
) -> Result<T> {
    let (slot, done) = slot();
    let work = async move { *lock(&slot) = Some(work.await) };
    ended(spawn(engine, work), panicked).await?;
    result(&done, panicked)
}

/// Runs work on the threads of a runtime that may wait. If the call is dropped before it
/// starts, it never does.
///
/// # Errors
///
/// As [`run`].
pub async fn run_blocking<T: Send + 'static>(
    engine: &Handle,
    work: impl FnOnce() -> Result<T> + Send + 'static,
    panicked: &'static str,
) -> Result<T> {
    let (slot, done) = slot();
    let work = move || *lock(&slot) = Some(work());
    ended(spawn_blocking(engine, work), panicked).await?;
    result(&done, panicked)
}

/// The place for the result of a task, which itself returns nothing.
type Slot<T> = Arc<Mutex<Option<Result<T>>>>;

fn slot<T>() -> (Slot<T>, Slot<T>) {
    let slot = Slot::<T>::default();
    (Arc::clone(&slot), slot)
}

fn result<T>(slot: &Slot<T>, panicked: &'static str) -> Result<T> {
    let result = lock(slot).take();
    result.unwrap_or_else(|| Err(Error::internal(panicked)))
}

/// Waits for a task. Dropping the call aborts it.
async fn ended(task: JoinHandle<()>, panicked: &'static str) -> Result<()> {
    let mut task = AbortOnDrop(task);
    match (&mut task.0).await {
        Ok(()) => Ok(()),
        Err(error) if error.is_panic() => Err(Error::internal(panicked)),
        Err(_) => Err(Error::unavailable("the process is ending")),
    }
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The error for a command whose task panicked.
pub fn panicked() -> Error {
    Error::internal("a command's task panicked; please report this")
}
