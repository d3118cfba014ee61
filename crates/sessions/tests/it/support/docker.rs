//! The daemon, the image and the agent for tests, from the environment, and engines on
//! them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backend_core::Sandbox;
use backend_core::ops::Command;
use backend_docker::{AgentBinary, Daemon, DockerSandbox, Mode, Runtime};
use sessions::{DockerEngine, DockerEngineBuilder, SessionManager};

/// Returns the value of a variable, which must be set.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set; run `cargo xtask test-all`, which sets it"))
}

/// The small image, used as it is.
pub(crate) fn runtime() -> Runtime {
    Runtime::from_image("busybox", variable("TEST_IMAGE_BUSYBOX"))
}

/// A name for the space of one test.
pub(crate) fn new_space() -> String {
    format!("test{:016x}", fastrand::u64(..))
}

/// An engine on the small image, with files below a directory.
pub(crate) fn engine(space: &str, root: &Path) -> DockerEngineBuilder {
    bare_engine(space).workspace_root(root)
}

/// The same without files that last.
pub(crate) fn bare_engine(space: &str) -> DockerEngineBuilder {
    let template = DockerSandbox::builder()
        .agent(AgentBinary::new(variable("SANDBOX_AGENT")).unwrap())
        .mode(Mode::Agent)
        .memory(64 * 1024 * 1024)
        // Containers that other tests leave for a while must not be reaped.
        .reap_leftovers(false);
    DockerEngine::builder(Daemon::at(&variable("DOCKER_HOST")).unwrap())
        .space(space)
        .runtime(runtime())
        .template(template)
}

/// A manager on an engine, as another process would have it.
pub(crate) fn manager(engine: &DockerEngine) -> SessionManager {
    let engine = Arc::new(engine.clone());
    SessionManager::builder().engine(engine).build().unwrap()
}

/// Runs a command that must succeed, and returns its output.
pub(crate) async fn run(sandbox: &dyn Sandbox, line: &str) -> String {
    let outcome = sandbox.execute(Command::new(line)).await.unwrap();
    let (out, err) = (outcome.stdout.text(), outcome.stderr.text());
    assert!(outcome.status.success(), "{line}: {out}{err}");
    out.trim_end().to_owned()
}

/// The container that a session runs in, by the beginning of its id.
pub(crate) async fn container_of(sandbox: &dyn Sandbox) -> String {
    run(sandbox, "cat /etc/hostname").await
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

/// The names of the containers of a space, in these states, or in any if none is named.
pub(crate) fn containers(space: &str, states: &[&str]) -> Vec<String> {
    let label = format!("label=agentbox-sessions.space={space}");
    let mut arguments = vec!["ps".to_owned(), "-a".into(), "--filter".into(), label];
    for state in states {
        arguments.extend(["--filter".to_owned(), format!("status={state}")]);
    }
    arguments.extend(["--format".to_owned(), "{{.Names}}".into()]);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    docker(&arguments).lines().map(str::to_owned).collect()
}

/// Removes all containers of a space when a test ends, however it ends.
#[derive(Debug)]
pub(crate) struct Cleanup(pub(crate) String);

impl Drop for Cleanup {
    fn drop(&mut self) {
        // A second panic would hide the first.
        let label = format!("label=agentbox-sessions.space={}", self.0);
        let program = |arguments: &[&str]| {
            let mut command = std::process::Command::new("docker");
            command.env("DOCKER_HOST", variable("DOCKER_HOST"));
            command.args(arguments).output()
        };
        let Ok(listed) = program(&["ps", "-aq", "--filter", &label]) else {
            return;
        };
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        for id in listed.split_whitespace() {
            let _ = program(&["rm", "-f", "-v", id]);
        }
    }
}

/// Polls until a condition holds that the daemon or another process brings about without
/// notification. Only a condition that never holds takes the whole timeout.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let holding = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let held = tokio::time::timeout(Duration::from_secs(120), holding).await;
    held.unwrap_or_else(|_| panic!("{what} did not come about"));
}
