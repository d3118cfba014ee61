//! A program whose `main` is async is its own supervisor too, with a runtime of
//! many threads.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

#[path = "support_commands/own_supervisor.rs"]
mod own_supervisor;
#[path = "support_commands/support.rs"]
mod support;

// As many as asked for, whatever the variable says.
#[tokio::main(worker_threads = 12)]
async fn main() {
    backend_local::supervisor::run_if_asked();
    own_supervisor::works().await;
}
