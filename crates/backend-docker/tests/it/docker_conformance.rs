//! The whole suite in a container, served by the agent and by the image's own tools.
//! There is one container for each mode, in which every case has its own directory.

use backend_docker::{DockerBuilder, DockerSandbox, Mode};
use backend_testkit::{
    CASES, Case, Outcome, SandboxFixture, run_case, run_concurrently, test_column,
};

use crate::support::docker::{builder, purge, run};

/// Number of cases that run concurrently.
const AT_ONCE: usize = 8;

/// Cases that no container can run: those with a link to a path outside (12), and those
/// with a second, read-only backend on the same directory (3), and those of views (7).
const SKIPPED: usize = 22;

/// Cases that need the agent: those with ports (14), terminals (25) and changes (23).
const AGENT_ONLY: usize = 62;

/// Runs a case in its own directory of a shared container.
async fn run_shared(options: &DockerBuilder, container: &DockerSandbox, number: usize) -> Outcome {
    run(container, &format!("mkdir case-{number}")).await;
    let backend = options
        .attach(container.container())
        .working_dir(format!("/workspace/case-{number}"))
        .open()
        .await
        .unwrap();
    run_case(
        &CASES[number],
        SandboxFixture::new(backend, container.clone()),
    )
    .await
}

/// Runs a case in its own container.
async fn run_alone(options: &DockerBuilder, case: &Case) -> Outcome {
    let backend = options.clone().build().unwrap();
    let outcome = run_case(case, SandboxFixture::new(backend.clone(), backend.clone())).await;
    purge(&backend).await;
    outcome
}

async fn suite(options: DockerBuilder, mode: Mode) {
    let options = &options.mode(mode);
    let container = options.clone().mode(Mode::Agent).pids_limit(4096);
    let container = &container.build().unwrap();
    run(container, "true").await;
    // sandbox-shell checks the column of the portable mode.
    if !matches!(mode, Mode::Portable) {
        test_column(
            "docker",
            &SandboxFixture::new(container.clone(), container.clone()),
        );
    }
    let report = run_concurrently(AT_ONCE, |number, case| async move {
        if case.stops_its_sandbox() {
            run_alone(options, case).await
        } else {
            run_shared(options, container, number).await
        }
    });
    let report = report.await;
    purge(container).await;
    assert!(report.failed.is_empty(), "{report}");
    let skipped = match mode {
        Mode::Portable => SKIPPED + AGENT_ONLY,
        _ => SKIPPED,
    };
    assert_eq!(report.skipped.len(), skipped, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn every_case_holds_with_the_agent() {
    suite(builder(), Mode::Agent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn every_case_holds_with_the_agent_on_a_socket() {
    let sockets = tempfile::tempdir().unwrap();
    suite(
        builder().socket_dir(sockets.path().join("sockets")),
        Mode::Agent,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn every_case_holds_with_the_images_own_tools() {
    suite(builder(), Mode::Portable).await;
}
