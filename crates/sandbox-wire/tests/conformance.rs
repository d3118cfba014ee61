//! The whole suite through a pipe: a directory and a store in memory, served.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set up has failed"
)]
#![cfg(target_os = "linux")]

// What stands behind a guard there stands behind a pipe here.
#[path = "../../permissions/tests/guarded_support/fixture.rs"]
mod fixture;
#[path = "support/pipe.rs"]
mod pipe;

use std::sync::Arc;

use backend_core::Backend;
use fixture::{GuardedLocal, GuardedState};

fn piped<B: Backend>(backend: B) -> Arc<dyn Backend> {
    Arc::new(pipe::piped(backend))
}

backend_testkit::conformance! {
    mod local;
    fixture = async || GuardedLocal::new(piped);
    skipped = 0;
}

backend_testkit::conformance! {
    mod state;
    fixture = async || GuardedState::new(piped);
    skipped = 159;
}
