//! The runtime of a sandbox, and waiting for work on it.

use backend_core::{Error, Result};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Returns a sandbox's runtime, starting it if needed.
pub type Engine = fn() -> Result<&'static Handle>;

/// Waits for a task. Dropping the call aborts it.
///
/// # Errors
///
/// Any error of the task; `Internal` with this text if it panicked;
/// `Unavailable` if its runtime is gone.
pub async fn join<T>(task: JoinHandle<Result<T>>, panicked: &'static str) -> Result<T> {
    let mut task = AbortOnDrop(task);
    match (&mut task.0).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => Err(Error::internal(panicked)),
        Err(_) => Err(Error::unavailable("the process is ending")),
    }
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The error for a command whose task panicked.
pub fn panicked() -> Error {
    Error::internal("a command's task panicked; please report this")
}
