//! The whole conformance suite on the in-memory backend.

use std::sync::Arc;

use backend_state::StateBackend;
use backend_testkit::ClockFixture;

backend_testkit::conformance! {
    mod state;
    fixture = async || {
        ClockFixture::new(|clock| Arc::new(StateBackend::builder().clock(clock).build()))
    };
    skipped = 210;
}
