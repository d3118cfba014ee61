//! A program that is its own supervisor because it calls `run_if_asked` first.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

#[path = "it/support/commands.rs"]
#[allow(dead_code, reason = "a part of it is used here")]
mod commands;
#[path = "it/support/own_supervisor.rs"]
mod own_supervisor;

fn main() {
    backend_local::supervisor::run_if_asked();
    futures::executor::block_on(own_supervisor::works());
}
