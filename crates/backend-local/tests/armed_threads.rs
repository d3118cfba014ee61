//! A program with an async `main` is its own supervisor too, with a
//! multi-threaded runtime.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

mod support {
    pub(crate) mod own_supervisor;
}

// The attribute overrides the environment variable.
#[tokio::main(worker_threads = 12)]
async fn main() {
    backend_local::supervisor::run_if_asked();
    support::own_supervisor::works().await;
}
