//! The threads on which all local backends of this process work.
//!
//! One thread drives an event loop for commands (pipes, timeouts, kills). File
//! operations that may block go to its thread pool. Neither belongs to a
//! caller's runtime: a dropped call ends even if its runtime never polls again,
//! and callers need no runtime at all. One more thread frees replaced files
//! (`fs/freeing.rs`).

use std::io;
use std::sync::OnceLock;

use backend_core::{Error, Result};
use tokio::runtime::{Builder, Handle};

/// Threads that may wait for the disk at once.
const BLOCKING_THREADS: usize = 64;

/// Returns the event loop, which the first call starts.
pub(crate) fn handle() -> Result<&'static Handle> {
    static ENGINE: OnceLock<Handle> = OnceLock::new();
    if let Some(handle) = ENGINE.get() {
        return Ok(handle);
    }
    let started = start().map_err(|source| {
        Error::unavailable("no thread could be started for local work; raise the process limit")
            .with_source(source)
    })?;
    Ok(ENGINE.get_or_init(|| started))
}

fn start() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("local-files")
        .build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("local-engine".into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(handle)
}

/// Runs `work` where it may block. Once started it runs to its end, even if the
/// call is dropped. If the call is dropped before that, it never starts.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let panicked = "a file operation panicked; please report this";
    backend_run::run_blocking(handle()?, work, panicked).await
}
