//! The whole suite in a pod, served by the agent and by the image's own tools. There is
//! one pod for each mode, in which every case has its own directory.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::ops::Command;
use backend_core::{Backend, Sandbox as _, VPath};
use backend_k8s::{K8sSandbox, Mode};
use backend_testkit::{CASES, Case, CaseResult, Fixture, Need, Outcome, check, run_case};
use futures::StreamExt as _;

use crate::support::place::Place;
use crate::support::sandbox::{purge, run};

/// Number of cases that run concurrently.
const AT_ONCE_BY_THE_AGENT: usize = 8;

/// The same where every case starts processes of its own: as many as the library starts in
/// one pod at a time.
const AT_ONCE_BY_TOOLS: usize = 4;

/// Cases that no pod can run: those with a link to a path outside (12), and those with
/// a second, read-only backend on the same directory (3).
const SKIPPED: usize = 15;

/// A directory of a pod, and a second handle to modify it.
struct PodFixture {
    backend: K8sSandbox,
    hand: K8sSandbox,
    mode: Mode,
}

impl PodFixture {
    /// Runs a command without the backend's knowledge.
    async fn hand(&self, line: &str, values: &[&str]) -> CaseResult {
        let mut command = Command::new(line);
        for (number, value) in values.iter().enumerate() {
            command = command.env(format!("V{number}"), *value);
        }
        let outcome = self.hand.execute(command).await?;
        let stderr = outcome.stderr.text();
        check!(
            outcome.status.success(),
            "the fixture failed: {line}: {stderr}"
        )
    }
}

#[async_trait]
impl Fixture for PodFixture {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(self.backend.clone())
    }

    fn provides(&self, need: Need) -> bool {
        !matches!(need, Need::Outside | Need::ReadOnly)
    }

    /// Without an agent there is only the cluster's stream, which tells nothing of input.
    fn acknowledges_input(&self) -> bool {
        self.mode != Mode::Portable
    }

    async fn make_link(&self, path: &VPath, text: &str) -> CaseResult {
        self.hand(r#"ln -s -- "$V1" "$V0""#, &[path.as_str(), text])
            .await
    }

    async fn make_fifo(&self, path: &VPath) -> CaseResult {
        self.hand(r#"mkfifo -m 600 "$V0""#, &[path.as_str()]).await
    }

    async fn make_raw_name(&self, directory: &VPath, name: &[u8]) -> CaseResult {
        let mut escaped = String::new();
        for byte in name {
            write!(escaped, "\\{byte:03o}").unwrap();
        }
        let line = r#"cd "$V0" && : > "$(printf "$V1")""#;
        self.hand(line, &[directory.as_str(), &escaped]).await
    }

    async fn set_mode(&self, path: &VPath, mode: u32) -> CaseResult {
        let mode = format!("{mode:o}");
        self.hand(r#"chmod "$V1" "$V0""#, &[path.as_str(), &mode])
            .await
    }

    async fn set_modified(&self, path: &VPath, time: SystemTime) -> CaseResult {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let time = format!("@{}", since.as_secs());
        self.hand(r#"touch -d "$V1" "$V0""#, &[path.as_str(), &time])
            .await
    }
}

/// Whether a case stops its sandbox, which would disturb other cases.
fn needs_its_own(case: &Case) -> bool {
    case.group == "sandbox" || case.name == "stop_ends_everything"
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
    let fixture = PodFixture {
        backend,
        hand: pod.clone(),
        mode,
    };
    run_case(&CASES[number], fixture).await
}

/// Runs a case in its own pod.
async fn run_alone(place: &Place, mode: Mode, case: &Case) -> Outcome {
    let backend = place.builder().mode(mode).build().unwrap();
    let hand = backend.clone();
    let fixture = PodFixture {
        backend,
        hand: hand.clone(),
        mode,
    };
    let outcome = run_case(case, fixture).await;
    purge(&hand).await;
    outcome
}

async fn suite(mode: Mode, at_once: usize) {
    let place = Place::new().await;
    let pod = place.builder().memory(1 << 30).build().unwrap();
    run(&pod, "true").await;
    let cases = CASES.iter().enumerate().map(|(number, case)| {
        let (place, pod) = (&place, &pod);
        async move {
            let outcome = if needs_its_own(case) {
                run_alone(place, mode, case).await
            } else {
                run_shared(place, pod, mode, number).await
            };
            (case.id(), outcome)
        }
    });
    let outcomes: Vec<_> = futures::stream::iter(cases)
        .buffer_unordered(at_once)
        .collect()
        .await;
    purge(&pod).await;
    place.end().await;
    let failed: Vec<_> = outcomes
        .iter()
        .filter_map(|(id, outcome)| match outcome {
            Outcome::Failed(failure) => Some(format!("{id}: {failure}")),
            _ => None,
        })
        .collect();
    let skipped = outcomes
        .iter()
        .filter(|(_, outcome)| matches!(outcome, Outcome::Skipped(_)));
    let skipped = skipped.count();
    assert!(
        failed.is_empty(),
        "{} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert_eq!((outcomes.len(), skipped), (CASES.len(), SKIPPED));
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
