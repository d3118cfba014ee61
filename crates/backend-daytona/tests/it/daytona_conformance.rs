//! The whole suite in sandboxes of the stand-in, served by the agent and by their own tools.
//! There is one sandbox for each mode, in which every case has its own directory.

use backend_daytona::{Connection, DaytonaSandbox, Mode};
use backend_testkit::{
    CASES, Case, Outcome, SandboxFixture, run_case, run_concurrently, test_column,
};

use crate::support::{Place, agent, purge, run};

/// Number of cases that run concurrently.
const AT_ONCE: usize = 8;

/// Cases that no sandbox can run: those with a link to a path outside (12), and those
/// with a second, read-only backend on the same directory (3), and those of views (7).
const SKIPPED: usize = 22;

/// Cases that need the agent: those with ports (14), terminals (25) and changes (23).
const AGENT_ONLY: usize = 62;

/// Without an agent, input is written to a session, which tells nothing of its program.
fn fixture(backend: DaytonaSandbox, hand: DaytonaSandbox, mode: Mode) -> SandboxFixture {
    SandboxFixture::new(backend, hand).input_is_acknowledged(mode != Mode::Portable)
}

/// Runs a case in its own directory of a shared sandbox.
async fn run_shared(place: &Place, shared: &DaytonaSandbox, mode: Mode, number: usize) -> Outcome {
    let directory = run(
        shared,
        &format!("mkdir case-{number} && cd case-{number} && pwd"),
    )
    .await;
    let backend = place
        .attach(shared.name())
        .agent(agent())
        .mode(mode)
        .working_dir(directory)
        .open()
        .await
        .unwrap();
    run_case(&CASES[number], fixture(backend, shared.clone(), mode)).await
}

/// Runs a case in its own sandbox.
async fn run_alone(place: &Place, mode: Mode, case: &Case) -> Outcome {
    let backend = place.with_agent().mode(mode).build().unwrap();
    let fixture = fixture(backend.clone(), backend.clone(), mode);
    let outcome = run_case(case, fixture).await;
    purge(&backend).await;
    outcome
}

async fn suite(mode: Mode, connection: Connection) {
    let place = Place::new().await;
    let shared = place.with_agent().mode(mode).build().unwrap();
    run(&shared, "true").await;
    assert_eq!(shared.connection(), Some(connection));
    let (sandbox, sandboxes) = (&shared, &place);
    // sandbox-shell checks the column of the portable mode.
    if !matches!(mode, Mode::Portable) {
        test_column("daytona", &fixture(shared.clone(), shared.clone(), mode));
    }
    let report = run_concurrently(AT_ONCE, |number, case| async move {
        if case.stops_its_sandbox() {
            run_alone(sandboxes, mode, case).await
        } else {
            run_shared(sandboxes, sandbox, mode, number).await
        }
    });
    let report = report.await;
    purge(&shared).await;
    place.standin.close().await;
    assert!(report.failed.is_empty(), "{report}");
    let skipped = match mode {
        Mode::Portable => SKIPPED + AGENT_ONLY,
        _ => SKIPPED,
    };
    assert_eq!(report.skipped.len(), skipped, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the agent; run by cargo xtask test-all"]
async fn every_case_holds_with_the_agent() {
    suite(Mode::Agent, Connection::Proxy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the agent; run by cargo xtask test-all"]
async fn every_case_holds_with_the_sandboxs_own_tools() {
    suite(Mode::Portable, Connection::Sessions).await;
}
