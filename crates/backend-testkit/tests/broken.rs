//! The suite itself, tested: each defect fails the cases it should, and no
//! others.

#[path = "broken/backend.rs"]
mod backend;
#[path = "broken/expected.rs"]
mod expected;

use std::sync::Arc;
use std::time::Duration;

use backend::{Broken, DEFECTS, Defect, ROWS};
use backend_core::Backend;
use backend_state::StateBackend;
use backend_testkit::fake::PausedClock;
use backend_testkit::{Fixture, block_on, run_all};
use expected::FAILURES;

struct BrokenFixture(Defect);

impl Fixture for BrokenFixture {
    fn backend(&self) -> Arc<dyn Backend> {
        // Every look at the clock is a second later, so that the order of times
        // is the order of writes.
        let clock = PausedClock::new();
        let tick = move || {
            clock.advance(Duration::from_secs(1));
            clock.now()
        };
        Arc::new(Broken {
            inner: StateBackend::builder().clock(tick).build(),
            defect: self.0,
        })
    }
}

/// The defects that fail other cases than they should, with those cases.
fn unexpected(defects: &[Defect]) -> String {
    let mut wrong = String::new();
    for defect in defects {
        let report = block_on(run_all(async || BrokenFixture(*defect)));
        let failed = report.failed_ids();
        let expected = FAILURES.iter().find(|(of, _)| of == defect);
        if expected.is_none_or(|(_, cases)| cases.is_empty() || failed != *cases) {
            wrong += &format!("{defect:?} => &{failed:?},\n");
        }
    }
    wrong
}

#[test]
fn each_defect_fails_exactly_the_cases_it_should() {
    let (first, second) = DEFECTS.split_at(DEFECTS.len() / 2);
    let wrong = std::thread::scope(|scope| {
        let first = scope.spawn(|| unexpected(first));
        let second = unexpected(second);
        first.join().unwrap() + &second
    });
    assert!(
        wrong.is_empty(),
        "other cases failed than expected:\n{wrong}"
    );
}

#[test]
fn every_row_of_the_table_of_differences_has_a_defect() {
    assert!(DEFECTS.len() >= ROWS);
    let last = DEFECTS
        .iter()
        .position(|defect| *defect == Defect::WorkingDirectoryFindsNothing);
    assert_eq!(last, Some(ROWS - 1));
}

#[test]
fn without_a_defect_nothing_fails() {
    struct Plain;
    impl Fixture for Plain {
        fn backend(&self) -> Arc<dyn Backend> {
            Arc::new(StateBackend::new())
        }
    }
    let report = block_on(run_all(async || Plain));
    assert_eq!(report.failed, [], "{report}");
}
