//! The example `volume_persistence`, with a real daemon.

use backend_docker::{Daemon, DockerSandbox};
use sandbox_wire::agent::AgentBinary;

#[expect(dead_code, reason = "its main function is not called")]
#[path = "../../volume_persistence.rs"]
mod volume_persistence;

/// Returns the value of a variable, which must be set.
fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set; run `cargo xtask test-all`, which sets it"))
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_volume_outlives_its_container() {
    let host = variable("DOCKER_HOST");
    let container = || {
        DockerSandbox::builder()
            .daemon(Daemon::at(&host).unwrap())
            .image(variable("TEST_IMAGE_BUSYBOX"))
            .agent(AgentBinary::new(variable("SANDBOX_AGENT")).unwrap())
            // Containers that other tests leave for a while must not be reaped.
            .reap_leftovers(false)
    };
    let volume = format!("agentbox-test-example-{:x}", std::process::id());
    for expected in 1..=2 {
        let visited = volume_persistence::visit(container(), &volume).await;
        assert_eq!(visited.unwrap(), (expected, false));
    }
    let removed = std::process::Command::new("docker")
        .env("DOCKER_HOST", &host)
        .args(["volume", "rm", &volume])
        .status();
    assert!(removed.unwrap().success());
}
