//! A program that is its own supervisor because it calls `run_if_asked` first.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

mod support {
    pub(crate) mod own_supervisor;
}

fn main() {
    backend_local::supervisor::run_if_asked();
    futures::executor::block_on(support::own_supervisor::works());
}
