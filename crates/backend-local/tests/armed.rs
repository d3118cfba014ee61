//! A program that is its own supervisor, because it says so first thing.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

#[path = "support_commands/own_supervisor.rs"]
mod own_supervisor;
#[path = "support_commands/support.rs"]
mod support;

fn main() {
    backend_local::supervisor::run_if_asked();
    futures::executor::block_on(own_supervisor::works());
}
