//! A program with an async `main` is its own supervisor too, with a
//! single-threaded runtime.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

#[path = "it/support/commands.rs"]
#[allow(dead_code, reason = "a part of it is used here")]
mod commands;
#[path = "it/support/own_supervisor.rs"]
mod own_supervisor;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    backend_local::supervisor::run_if_asked();
    own_supervisor::works().await;
}
