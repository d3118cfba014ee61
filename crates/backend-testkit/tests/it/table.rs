//! The table of cases is complete, and every case says what it proves.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use backend_core::{Backend, Error, ErrorKind};
use backend_state::StateBackend;
use backend_testkit::fake::Intercepted;
use backend_testkit::{CASES, Env, Failure, Fixture, Need, Outcome, block_on, run_all, run_case};

struct State;

impl Fixture for State {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(StateBackend::new())
    }
}

#[test]
fn every_case_is_in_the_table_once() {
    let listed: BTreeSet<_> = CASES.iter().map(|case| case.id()).collect();
    assert_eq!(listed.len(), CASES.len(), "a case is listed twice");
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cases");
    let mut written = BTreeSet::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let group = path.file_stem().unwrap().to_str().unwrap();
        let parts = fs::read_dir(&path).into_iter().flatten();
        for file in parts.map(|part| part.unwrap().path()).chain([path.clone()]) {
            let text = fs::read_to_string(file).unwrap_or_default();
            let names = text
                .lines()
                .filter_map(|line| line.strip_prefix("pub async fn "))
                .filter_map(|rest| rest.split('(').next());
            written.extend(names.map(|name| format!("{group}::{name}")));
        }
    }
    assert_eq!(written, listed);
}

#[test]
fn there_are_enough_cases_and_each_proves_something() {
    assert!(CASES.len() >= 150, "{}", CASES.len());
    for case in CASES {
        assert!(
            case.source.starts_with(['D', 'U', 'S']),
            "{case:?}: {}",
            case.source
        );
    }
}

#[test]
fn every_row_of_the_table_of_differences_is_proven() {
    // The rows, by the words that name them in the table.
    for row in [
        "read line prefix",
        "final newline counts as extra line",
        "read empty file",
        "offset past the end",
        "more-lines trailer",
        "missing file",
        "read a directory",
        "binary file via read",
        "long-line truncation in read",
        "CRLF in read",
        "write with CR",
        "edit on CRLF",
        "edit on non-UTF-8",
        "ls on a file",
        "ls dir size",
        "ls modified_at",
        "ls path field",
        "symlink row in ls",
        "glob `*` crosses `/`",
        "glob `*.py` depth",
        "glob hides dotfiles",
        "glob brace",
        "glob ordering",
        "glob size/mtime",
        "grep dialect",
        "invalid regex",
        "grep glob filter",
        "grep single file",
        "grep with ignore_hidden",
    ] {
        let proven = CASES
            .iter()
            .any(|case| case.source.contains(&format!("U0 {row}")));
        assert!(proven, "no case proves U0 {row}");
    }
}

#[test]
fn a_case_without_what_it_needs_is_skipped() {
    let case = CASES.iter().find(|case| case.needs.contains(&Need::Links));
    let outcome = block_on(run_case(case.unwrap(), State));
    assert_eq!(outcome, Outcome::Skipped(Need::Links));
}

#[test]
fn a_fixture_that_promises_too_much_fails() {
    struct Boaster;
    impl Fixture for Boaster {
        fn backend(&self) -> Arc<dyn Backend> {
            Arc::new(StateBackend::new())
        }
        fn provides(&self, _: Need) -> bool {
            true
        }
    }
    let report = block_on(run_all(async || Boaster));
    assert_eq!(report.skipped, []);
    let text = report.to_string();
    let needs = [Need::Links, Need::Fifo, Need::RawName, Need::SetTime];
    for need in needs.into_iter().chain([Need::Modes, Need::Outside]) {
        assert!(text.contains(&format!("says it provides {need}")), "{text}");
    }
    assert!(text.contains("failed: ls::fifo_is_listed"), "{text}");
    assert!(text.contains("but is not a sandbox"), "{text}");
    assert!(text.contains("read-only backend but has none"), "{text}");
}

#[test]
fn a_case_that_panics_or_fails_is_told() {
    #[derive(Debug)]
    struct Panics;
    impl Fixture for Panics {
        fn backend(&self) -> Arc<dyn Backend> {
            Arc::new(Intercepted::new(StateBackend::new(), |_| {
                panic!("at the disco")
            }))
        }
    }
    let case = &CASES[0];
    let Outcome::Failed(failure) = block_on(run_case(case, Panics)) else {
        panic!("it did not fail");
    };
    assert!(failure.to_string().contains("at the disco"), "{failure}");
    let env = Env::new(State);
    assert!(format!("{env:?} {case:?}").contains(case.name));
    let failed = env.fails(ErrorKind::NotFound, Ok(1));
    assert!(failed.unwrap_err().to_string().contains("got 1"));
    let failed = env.fails::<()>(ErrorKind::NotFound, Err(Error::conflict()));
    assert!(failed.unwrap_err().to_string().contains("Conflict"));
    let error: Failure = Error::conflict().into();
    assert!(error.to_string().contains("unexpected error"));
}

/// A wrapper that only observes calls passes the suite.
mod wrapper {
    use super::*;

    struct Watched;

    impl Fixture for Watched {
        fn backend(&self) -> Arc<dyn Backend> {
            let state: Arc<dyn Backend> = Arc::new(StateBackend::new());
            Arc::new(Intercepted::new(state, |_| Ok(())))
        }
    }

    backend_testkit::conformance! {
        mod intercepted;
        fixture = async || Watched;
        skipped = 216;
    }
}
