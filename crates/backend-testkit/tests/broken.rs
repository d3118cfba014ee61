//! The suite itself, tested: each defect fails the cases it should, and no
//! others.

#[path = "broken/backend.rs"]
mod backend;
#[path = "broken/expected.rs"]
mod expected;

use std::sync::Arc;

use backend::{Broken, DEFECTS, Defect, ROWS};
use backend_core::Backend;
use backend_state::StateBackend;
use backend_testkit::{Fixture, block_on, run_all};

struct BrokenFixture(Defect);

impl Fixture for BrokenFixture {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(Broken {
            inner: StateBackend::new(),
            defect: self.0,
        })
    }
}

#[test]
fn each_defect_fails_exactly_the_cases_it_should() {
    let mut wrong = String::new();
    for defect in DEFECTS {
        // Each case gets a backend of its own, as in the real suite.
        let report = block_on(run_all(async || BrokenFixture(*defect)));
        let failed = report.failed_ids();
        let expected = expected::failures(*defect);
        if failed != expected || failed.is_empty() {
            wrong += &format!("{defect:?} => &{failed:?},\n");
        }
    }
    assert!(wrong.is_empty(), "other cases failed than expected:\n{wrong}");
}

#[test]
fn every_row_of_the_table_of_differences_has_a_defect() {
    assert!(DEFECTS.len() >= ROWS);
    let last = DEFECTS.iter().position(|defect| *defect == Defect::WorkingDirectoryFindsNothing);
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
