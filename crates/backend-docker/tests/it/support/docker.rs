//! The daemon, the images and the agent for tests, from the environment.

use std::time::Duration;

use backend_core::ops::{Command, ExecuteOutcome, StopMode};
use backend_core::{Result, Sandbox};
use backend_docker::{Daemon, DockerBuilder, DockerSandbox, Mode};
use sandbox_wire::agent::AgentBinary;

/// Returns the value of a variable, which must be set.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set; run `cargo xtask test-all`, which sets it"))
}

pub(crate) fn daemon() -> Daemon {
    Daemon::at(&variable("DOCKER_HOST")).unwrap()
}

pub(crate) fn busybox() -> String {
    variable("TEST_IMAGE_BUSYBOX")
}

pub(crate) fn agent() -> AgentBinary {
    AgentBinary::new(variable("SANDBOX_AGENT")).unwrap()
}

/// A builder for a sandbox on the small image, served by the agent.
pub(crate) fn builder() -> DockerBuilder {
    DockerSandbox::builder()
        .daemon(daemon())
        .image(busybox())
        .agent(agent())
        .mode(Mode::Agent)
        // Containers that other tests leave for a while must not be reaped.
        .reap_leftovers(false)
}

/// Runs a command that must succeed, and returns its output.
pub(crate) async fn run(sandbox: &DockerSandbox, line: &str) -> String {
    let outcome = outcome(sandbox, line).await.unwrap();
    let (out, err) = (outcome.stdout.text(), outcome.stderr.text());
    assert!(
        outcome.status.success(),
        "{line}: {}: {out}{err}",
        outcome.status
    );
    out.trim_end().to_owned()
}

pub(crate) async fn outcome(sandbox: &DockerSandbox, line: &str) -> Result<ExecuteOutcome> {
    sandbox.execute(Command::new(line)).await
}

/// Removes the container. If a test forgets, the drop does it.
pub(crate) async fn purge(sandbox: &DockerSandbox) {
    sandbox.stop(StopMode::Purge).await.unwrap();
}

/// Runs the `docker` program, without the library's knowledge.
pub(crate) fn docker(arguments: &[&str]) -> String {
    let output = std::process::Command::new("docker")
        .env("DOCKER_HOST", variable("DOCKER_HOST"))
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    assert!(
        output.status.success(),
        "docker {arguments:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Whether a container of that name exists.
pub(crate) fn exists(name: &str) -> bool {
    let filter = format!("name=^/{name}$");
    !docker(&["ps", "-aq", "--filter", &filter]).is_empty()
}

/// Polls until a condition holds that the daemon or another process brings about
/// without notification. Only a condition that never holds takes the whole timeout.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let holding = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let held = tokio::time::timeout(Duration::from_secs(300), holding).await;
    held.unwrap_or_else(|_| panic!("{what} did not come about"));
}
