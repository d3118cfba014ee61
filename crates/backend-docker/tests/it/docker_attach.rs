//! Attaching to existing containers: by name, by id, in every state.

use backend_core::ops::StopMode;
use backend_core::{Backend as _, BackendExt as _, ErrorKind, Sandbox as _};
use backend_docker::{Attach, ContainerState, DockerSandbox, Mode};
use backend_testkit::fails;

use crate::support::docker;
use crate::support::docker::{builder, busybox, daemon, exists, purge, run};

fn attach(container: &str) -> Attach {
    let attach = DockerSandbox::attach(container).daemon(daemon());
    attach.agent(docker::agent()).mode(Mode::Agent)
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn in_every_state_and_by_name_or_id() {
    let first = builder().build().unwrap();
    first.write_file("a.txt", "one\n").await.unwrap();
    let name = first.id();
    let id = docker::docker(&["inspect", "-f", "{{.Id}}", &name]);
    for given in [&*name, &*id, &id[..12]] {
        let second = attach(given).open().await.unwrap();
        assert_eq!(second.working_dir().as_str(), "/workspace");
        assert_eq!(second.read_to_string("a.txt").await.unwrap(), "one\n");
    }
    first.stop(StopMode::Keep).await.unwrap();
    let stopped = attach(&name).open().await.unwrap();
    assert_eq!(stopped.state().await.unwrap(), ContainerState::Stopped);
    assert_eq!(stopped.read_to_string("a.txt").await.unwrap(), "one\n");
    stopped.pause().await.unwrap();
    let paused = attach(&name).open().await.unwrap();
    let error = fails(ErrorKind::Unavailable, paused.read_to_string("a.txt").await);
    assert!(error.to_string().contains("paused"), "{error}");
    paused.start().await.unwrap();
    assert_eq!(paused.read_to_string("a.txt").await.unwrap(), "one\n");
    drop((stopped, paused));
    assert!(
        first.is_alive().await.unwrap(),
        "an attached one is left alone"
    );
    purge(&first).await;
    fails(ErrorKind::NotFound, attach(&name).open().await);
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn one_that_was_never_started() {
    let image = busybox();
    let id = docker::docker(&["create", "--network", "none", &image, "sleep", "infinity"]);
    let attach = attach(&id).allow_foreign(true).working_dir("/srv/work");
    let sandbox = attach.open().await.unwrap();
    assert_eq!(sandbox.state().await.unwrap(), ContainerState::Created);
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    assert_eq!(run(&sandbox, "pwd; cat a.txt").await, "/srv/work\none");
    sandbox.stop(StopMode::Purge).await.unwrap();
    fails(
        ErrorKind::Unavailable,
        sandbox.read_to_string("a.txt").await,
    );
    let error = sandbox.start().await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Unavailable,
        "it was not made here: {error}"
    );
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn containers_of_others_only_when_allowed() {
    let image = busybox();
    let id = docker::docker(&[
        "run",
        "-d",
        "--network",
        "none",
        &image,
        "sleep",
        "infinity",
    ]);
    fails(ErrorKind::PermissionDenied, attach(&id).open().await);
    let sandbox = attach(&id).allow_foreign(true).open().await.unwrap();
    assert_eq!(run(&sandbox, "pwd").await, "/workspace");
    drop(sandbox);
    docker::docker(&["rm", "-f", &id]);
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_name_is_used_again_if_nothing_has_changed() {
    let name = format!("agentbox-named-{:x}", std::process::id());
    let named = || builder().name(&name);
    let first = named().build().unwrap();
    first.write_file("a.txt", "one\n").await.unwrap();
    drop(first);
    assert!(exists(&name), "a named one stays");
    let second = named().build().unwrap();
    assert_eq!(second.read_to_string("a.txt").await.unwrap(), "one\n");
    second.stop(StopMode::Keep).await.unwrap();
    let third = named().build().unwrap();
    assert_eq!(third.read_to_string("a.txt").await.unwrap(), "one\n");
    let other = named().env("A", "b").build().unwrap();
    fails(ErrorKind::Conflict, other.start().await);
    purge(&third).await;
    docker::docker(&["create", "--name", &name, &busybox(), "true"]);
    fails(ErrorKind::Conflict, named().build().unwrap().start().await);
    docker::docker(&["rm", &name]);
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn two_that_ask_for_one_name_at_once_share_it() {
    let name = format!("agentbox-shared-{:x}", std::process::id());
    let all: Vec<_> = (0..4)
        .map(|_| builder().name(&name).build().unwrap())
        .collect();
    let starts = all
        .iter()
        .map(|sandbox| sandbox.write_file("a.txt", "one\n"));
    for started in futures::future::join_all(starts).await {
        started.unwrap();
    }
    purge(&all[0]).await;
}
