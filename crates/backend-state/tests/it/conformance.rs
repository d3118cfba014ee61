//! The whole conformance suite on the in-memory backend.

use std::sync::Arc;

use backend_state::StateBackend;
use backend_testkit::ClockFixture;

fn state() -> ClockFixture {
    ClockFixture::new(|clock| Arc::new(StateBackend::builder().clock(clock).build()))
}

backend_testkit::conformance! {
    mod in_memory;
    fixture = async || state();
    skipped = 210;
}

#[test]
fn the_page_of_capabilities_is_current() {
    backend_testkit::test_column("state", &state());
}
