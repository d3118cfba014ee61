//! Tests of the suite itself: each defect fails exactly the cases that it should.

mod backend;
mod expected;

use std::sync::Arc;
use std::time::Duration;

use backend::{Broken, Defect, ROWS};
use backend_core::Backend;
use backend_state::StateBackend;
use backend_testkit::fake::PausedClock;
use backend_testkit::{Fixture, block_on, run_all};
use expected::FAILURES;

struct BrokenFixture(Defect);

impl Fixture for BrokenFixture {
    fn backend(&self) -> Arc<dyn Backend> {
        // The clock advances by a second on every reading, so that times are in the
        // order of writes.
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

/// Returns the ids in a text of groups, each with a colon and followed by its cases.
fn ids(cases: &str) -> Vec<String> {
    let mut group = "";
    let mut ids = Vec::new();
    for word in cases.split_whitespace() {
        match word.strip_suffix(':') {
            Some(name) => group = name,
            None => ids.push(format!("{group}::{word}")),
        }
    }
    ids
}

/// Returns the defects that fail other cases than expected, with those cases.
fn unexpected(defects: &[(Defect, &str)]) -> String {
    let mut wrong = String::new();
    for (defect, expected) in defects {
        let report = block_on(run_all(async || BrokenFixture(*defect)));
        let failed = report.failed_ids();
        if failed.is_empty() || failed != ids(expected) {
            wrong += &format!("{defect:?} => {failed:?},\n");
        }
    }
    wrong
}

#[test]
fn each_defect_fails_exactly_the_cases_it_should() {
    let (first, second) = FAILURES.split_at(FAILURES.len() / 2);
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
    let last = |(defect, _): &(Defect, &str)| *defect == Defect::WorkingDirectoryFindsNothing;
    assert_eq!(FAILURES.iter().position(last), Some(ROWS - 1));
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
