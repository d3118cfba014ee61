//! Runs cases on fixtures: one for a test, or all for a report.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};

use crate::CASES;
use crate::case::Case;
use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::fixture::{Fixture, Need};

/// Timeout of one case. Only a hang takes this long.
const CASE_TIMEOUT: Duration = Duration::from_secs(240);

/// The result of running a case.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The rule was followed.
    Passed,
    /// The rule was violated.
    Failed(Failure),
    /// The case could not run, because this requirement is not met.
    Skipped(Need),
}

/// Runs one case on a fixture.
pub async fn run_case(case: &Case, fixture: impl Fixture) -> Outcome {
    if let Some(need) = case.needs.iter().find(|need| !fixture.provides(**need)) {
        return Outcome::Skipped(*need);
    }
    let env = Env::new(fixture);
    let run: BoxFuture<'_, CaseResult> = (case.run)(&env);
    // A panic fails the case. The others still run.
    let guarded = AssertUnwindSafe(run).catch_unwind();
    match tokio::time::timeout(CASE_TIMEOUT, guarded).await {
        Ok(Ok(Ok(()))) => Outcome::Passed,
        Ok(Ok(Err(failure))) => Outcome::Failed(failure),
        Ok(Err(panic)) => Outcome::Failed(Failure::new(format!(
            "panicked: {}",
            panic_message(&*panic)
        ))),
        Err(_) => Outcome::Failed(Failure::new(format!("no answer in {CASE_TIMEOUT:?}"))),
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

/// The results of a backend in all cases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Ids of the cases that passed.
    pub passed: Vec<String>,
    /// Ids of the cases that failed, with the failure.
    pub failed: Vec<(String, Failure)>,
    /// Ids of the cases that could not run, with the requirement that is not met.
    pub skipped: Vec<(String, Need)>,
}

impl Report {
    fn add(&mut self, case: &Case, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.passed.push(case.id()),
            Outcome::Failed(failure) => self.failed.push((case.id(), failure)),
            Outcome::Skipped(need) => self.skipped.push((case.id(), need)),
        }
    }

    /// Returns the ids of the cases that failed.
    pub fn failed_ids(&self) -> Vec<&str> {
        self.failed.iter().map(|(id, _)| id.as_str()).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, failure) in &self.failed {
            writeln!(f, "failed: {id}: {failure}")?;
        }
        for (id, need) in &self.skipped {
            writeln!(f, "skipped: {id}: needs {need}")?;
        }
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed.len(),
            self.failed.len(),
            self.skipped.len()
        )
    }
}

/// Runs every case, each on its own fixture.
pub async fn run_all<F: Fixture>(mut fixture: impl AsyncFnMut() -> F) -> Report {
    let mut report = Report::default();
    for case in CASES {
        report.add(case, run_case(case, fixture().await).await);
    }
    report
}

/// Runs every case with a function that gets its number too, several at once: for sandboxes
/// that cases share.
pub async fn run_concurrently<F: Future<Output = Outcome>>(
    at_once: usize,
    run: impl Fn(usize, &'static Case) -> F,
) -> Report {
    let cases = CASES.iter().enumerate().map(|(number, case)| {
        let outcome = run(number, case);
        async move { (case, outcome.await) }
    });
    let mut outcomes = stream::iter(cases).buffer_unordered(at_once);
    let mut report = Report::default();
    while let Some((case, outcome)) = outcomes.next().await {
        report.add(case, outcome);
    }
    report
}

/// Runs a future on a new runtime, as each test of [`conformance!`](crate::conformance)
/// does.
///
/// # Panics
///
/// If no runtime can be created.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    #[expect(clippy::expect_used, reason = "a test without a runtime has failed")]
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a test needs a runtime")
        .block_on(future)
}

/// The body of one test that [`conformance!`](crate::conformance) generates.
///
/// # Panics
///
/// If the case fails, as a test must.
#[doc(hidden)]
#[expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "this is how a test fails and tells why it did not run"
)]
pub fn test_case<F: Fixture>(group: &str, name: &str, fixture: impl AsyncFnOnce() -> F) {
    let case = CASES
        .iter()
        .find(|case| case.group == group && case.name == name);
    let Some(case) = case else {
        panic!("there is no case {group}::{name}");
    };
    match block_on(async { run_case(case, fixture().await).await }) {
        Outcome::Passed => {}
        Outcome::Failed(failure) => panic!("{failure}\nrule: {}", case.source),
        Outcome::Skipped(need) => println!("skipped: needs {need}"),
    }
}

/// The body of the test that fixes the number of skipped cases.
///
/// # Panics
///
/// If the number differs from `expected`.
#[doc(hidden)]
pub fn test_skipped<F: Fixture>(expected: usize, fixture: impl AsyncFnOnce() -> F) {
    let fixture = block_on(fixture());
    let skips = |case: &&Case| case.needs.iter().any(|need| !fixture.provides(*need));
    let skipped: Vec<_> = CASES.iter().filter(skips).map(Case::id).collect();
    assert_eq!(
        skipped.len(),
        expected,
        "the number of skipped cases has changed: a capability was lost or gained; they are {skipped:#?}"
    );
}
