//! The conformance suite through a pipe: a directory and a store in memory,
//! served.

// The backends behind a guard there are behind a pipe here.
#[path = "../../../permissions/tests/it/support/fixture.rs"]
mod fixture;

use std::sync::Arc;

use backend_core::Backend;
use fixture::{GuardedLocal, GuardedState};

use crate::support::pipe;

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
