//! The async runtime that a command runs on.

use std::time::Duration;

use tokio::runtime::Builder;

use crate::exit::{Failure, environment};

/// Time allowed for work that cannot be cancelled, such as replacing a file.
const LAST_WORK: Duration = Duration::from_millis(300);

/// Runs `work` on as many threads as the machine has processors.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    run(Builder::new_multi_thread(), work)
}

/// Runs `work` on this thread alone. Files and commands have their own threads.
pub(crate) fn block_on_one_thread<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    run(Builder::new_current_thread(), work)
}

fn run<T>(
    mut builder: Builder,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| environment!("no threads can be started: {error}; end other programs"))?;
    // Boxed: otherwise each layer of the runtime has room for it on the stack.
    let result = runtime.block_on(Box::pin(work));
    // A thread may be blocked on standard input forever.
    runtime.shutdown_timeout(LAST_WORK);
    result
}
