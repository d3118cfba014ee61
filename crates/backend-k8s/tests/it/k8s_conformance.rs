//! The whole suite in a pod, served by the agent and by the image's own tools. There is
//! one pod for each mode, in which every case has its own directory.

use backend_k8s::{K8sSandbox, Mode};
use backend_testkit::{
    CASES, Case, Outcome, SandboxFixture, run_case, run_concurrently, test_column,
};

use crate::support::place::Place;
use crate::support::sandbox::{purge, run};

/// Number of cases that run concurrently.
const AT_ONCE_BY_THE_AGENT: usize = 8;

/// The same where every case starts processes of its own: as many as the library starts in
/// one pod at a time.
const AT_ONCE_BY_TOOLS: usize = 4;

/// Cases that no pod can run: those with a link to a path outside (12), and those with
/// a second, read-only backend on the same directory (3), and those of views (7).
const SKIPPED: usize = 22;

/// Cases that need the agent: those with ports (14), terminals (25) and changes (23).
const AGENT_ONLY: usize = 62;

/// Without an agent there is only the cluster's stream, which tells nothing of input.
fn fixture(backend: K8sSandbox, hand: K8sSandbox, mode: Mode) -> SandboxFixture {
    SandboxFixture::new(backend, hand).input_is_acknowledged(mode != Mode::Portable)
}

/// Runs a case in its own directory of a shared pod.
async fn run_shared(place: &Place, pod: &K8sSandbox, mode: Mode, number: usize) -> Outcome {
    run(pod, &format!("mkdir case-{number}")).await;
    let backend = place
        .attach(pod.pod_name())
        .mode(mode)
        .working_dir(format!("/workspace/case-{number}"))
        .open()
        .await
        .unwrap();
    run_case(&CASES[number], fixture(backend, pod.clone(), mode)).await
}

/// Runs a case in its own pod.
async fn run_alone(place: &Place, mode: Mode, case: &Case) -> Outcome {
    let backend = place.builder().mode(mode).build().unwrap();
    let fixture = fixture(backend.clone(), backend.clone(), mode);
    let outcome = run_case(case, fixture).await;
    purge(&backend).await;
    outcome
}

async fn suite(mode: Mode, at_once: usize) {
    let place = Place::new().await;
    let pod = place.builder().memory(1 << 30).build().unwrap();
    run(&pod, "true").await;
    let (shared, pods) = (&pod, &place);
    // sandbox-shell checks the column of the portable mode.
    if !matches!(mode, Mode::Portable) {
        test_column("k8s", &fixture(pod.clone(), pod.clone(), mode));
    }
    let report = run_concurrently(at_once, |number, case| async move {
        if case.stops_its_sandbox() {
            run_alone(pods, mode, case).await
        } else {
            run_shared(pods, shared, mode, number).await
        }
    });
    let report = report.await;
    purge(&pod).await;
    place.end().await;
    assert!(report.failed.is_empty(), "{report}");
    let skipped = match mode {
        Mode::Portable => SKIPPED + AGENT_ONLY,
        _ => SKIPPED,
    };
    assert_eq!(report.skipped.len(), skipped, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn every_case_holds_with_the_agent() {
    suite(Mode::Agent, AT_ONCE_BY_THE_AGENT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn every_case_holds_with_the_images_own_tools() {
    suite(Mode::Portable, AT_ONCE_BY_TOOLS).await;
}
