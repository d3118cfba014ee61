//! The scripted conversation in a container, in both modes. The transcript must equal
//! that of every other backend, byte for byte.
use std::sync::Arc;

use backend_core::ops::StopMode;
use backend_core::{Backend, BackendExt as _, Sandbox as _};
use backend_docker::{Daemon, DockerSandbox, Mode};
use console_testkit::{Chats, Environment, Script, Transcript, play};
use sandbox_wire::agent::AgentBinary;

/// A variable that `cargo xtask test-all` sets.
#[expect(
    clippy::disallowed_methods,
    reason = "tests on a daemon are told where it is"
)]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; run cargo xtask test-all"))
}

async fn converse(mode: Mode) {
    let daemon = Daemon::at(&variable("DOCKER_HOST")).unwrap();
    let sandbox = DockerSandbox::builder()
        .daemon(daemon)
        .image(variable("TEST_IMAGE_PYTHON"))
        .agent(AgentBinary::new(variable("SANDBOX_AGENT")).unwrap())
        .mode(mode)
        .build()
        .unwrap();
    let sandbox = Arc::new(sandbox);
    let backend: Arc<dyn Backend> = Arc::clone(&sandbox) as _;
    let script = Script::bundled().unwrap();
    script.seed(backend.as_ref()).await.unwrap();
    let environment = Environment::of(backend.as_ref());
    let played = play(
        &Chats::new(&script, &backend).unwrap(),
        &script,
        &environment,
    )
    .await;
    let left = backend.list_dir(".").await;
    sandbox.stop(StopMode::Purge).await.unwrap();
    let expected = Transcript::expected().for_environment(&script, &environment);
    assert_eq!(played.difference(&expected), None);
    assert_eq!(left.unwrap().entries, [], "every file was removed again");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn the_conversation_by_the_agent() {
    converse(Mode::Agent).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn the_conversation_in_portable_mode() {
    converse(Mode::Portable).await;
}
