//! The threads on which all sandboxes of this process work.
//!
//! Channels into sandboxes, and the client libraries that start them, live on a
//! separate runtime. So a dropped call is cancelled even if its caller's
//! runtime is never polled again, and callers need no runtime at all.

use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::sync::OnceLock;

use backend_core::{Error, Result};
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that move bytes. The real work is done in the sandboxes.
const THREADS: usize = 2;

/// The message of the error for an operation that panicked.
pub const PANICKED: &str = "an operation on a sandbox panicked; please report this";

/// Returns the runtime, which the first call starts.
///
/// # Errors
///
/// `Unavailable` if no thread can be started.
pub fn handle() -> Result<&'static Handle> {
    // Never dropped: that would end channels that are still in use.
    static ENGINE: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = ENGINE.get() {
        return Ok(runtime.handle());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("sandbox-engine")
        .enable_all()
        .build()
        .map_err(|source| {
            Error::unavailable("no thread could be started for sandboxes; raise the process limit")
                .with_source(source)
        })?;
    if let Err(second) = ENGINE.set(runtime) {
        second.shutdown_background();
    }
    let engine = ENGINE.get().map(Runtime::handle);
    engine.ok_or_else(|| Error::internal("the sandbox engine was not stored"))
}

/// Runs `work` on the engine. Dropping the call drops the work.
///
/// # Errors
///
/// Any error of `work`; `Unavailable` if the engine cannot be started.
pub async fn run<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    backend_run::run(handle()?, work, PANICKED).await
}

/// Returns the last kind of I/O error in the sources of a client library's error: why a
/// service does not answer.
pub fn io_kind(error: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    let mut next = Some(error);
    let mut found = None;
    while let Some(error) = next {
        let here = error.downcast_ref::<io::Error>().map(io::Error::kind);
        found = here.filter(|kind| *kind != io::ErrorKind::Other).or(found);
        next = error.source();
    }
    found
}
