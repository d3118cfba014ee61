//! A composite answers as one backend that holds the same files would: random
//! routes and files, random calls, the same answers and errors.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set up has failed"
)]

use proptest::prelude::*;

#[path = "support/call.rs"]
mod call;
#[path = "support/pair.rs"]
mod pair;
#[path = "support/strategy.rs"]
mod strategy;

use pair::Pair;

/// How many sequences of calls are tried; as many as the environment asks for,
/// if it does.
fn config() -> ProptestConfig {
    ProptestConfig {
        max_shrink_iters: 4_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_call_is_answered_alike(
        layout in strategy::layout(),
        files in strategy::files(),
        calls in strategy::calls(),
    ) {
        let mut pair = Pair::new(&layout, &files);
        for call in &calls {
            if let Err(difference) = pair.try_call(call) {
                return Err(TestCaseError::fail(difference));
            }
        }
        pair.check_trees().map_err(TestCaseError::fail)?;
    }

    #[test]
    fn every_search_is_answered_alike(
        layout in strategy::layout(),
        files in strategy::files(),
        calls in strategy::searches(),
    ) {
        let mut pair = Pair::new(&layout, &files);
        for call in &calls {
            if let Err(difference) = pair.try_call(call) {
                return Err(TestCaseError::fail(difference));
            }
        }
    }
}
