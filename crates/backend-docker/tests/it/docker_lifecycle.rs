//! The states of a container, and every transition between them.

use std::time::Duration;

use backend_core::ops::StopMode;
use backend_core::{Backend as _, BackendExt as _, ErrorKind, Result, Sandbox as _};
use backend_docker::{ContainerState, DockerSandbox};
use backend_testkit::fails;

use crate::support::docker;
use crate::support::docker::{builder, daemon, exists, outcome, purge, run, until, variable};

fn unavailable<T: std::fmt::Debug>(result: Result<T>, text: &str) {
    let error = fails(ErrorKind::Unavailable, result);
    assert!(error.to_string().contains(text), "{}", error.chain());
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn the_first_operation_starts_it_and_files_survive_a_stop() {
    let sandbox = builder().build().unwrap();
    assert!(!sandbox.is_alive().await.unwrap());
    assert_eq!(sandbox.state().await.unwrap(), ContainerState::Missing);
    assert!(
        !exists(&sandbox.id()),
        "nothing is made before it is needed"
    );
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    assert!(sandbox.is_alive().await.unwrap());
    assert_eq!(run(&sandbox, "pwd; cat a.txt").await, "/workspace\none");
    sandbox.stop(StopMode::Keep).await.unwrap();
    sandbox.stop(StopMode::Keep).await.unwrap();
    assert_eq!(sandbox.state().await.unwrap(), ContainerState::Stopped);
    assert!(!sandbox.is_alive().await.unwrap());
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    purge(&sandbox).await;
    purge(&sandbox).await;
    assert!(!exists(&sandbox.id()));
    let error = sandbox.read_to_string("a.txt").await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::NotFound,
        "a new, empty one: {error}"
    );
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn one_that_somebody_stopped_is_started_again() {
    let sandbox = builder().build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    docker::docker(&["stop", "-t", "1", &sandbox.id()]);
    until("the channel's end", async || {
        sandbox.read_to_string("a.txt").await.is_ok()
    })
    .await;
    assert_eq!(sandbox.state().await.unwrap(), ContainerState::Running);
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn one_that_somebody_removed_is_never_made_anew_unasked() {
    let sandbox = builder().build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    docker::docker(&["rm", "-f", &sandbox.id()]);
    for _ in 0..3 {
        unavailable(sandbox.read_to_string("a.txt").await, "was removed");
        unavailable(sandbox.exists("a.txt").await, "was removed");
    }
    assert!(!sandbox.is_alive().await.unwrap());
    assert!(!exists(&sandbox.id()));
    sandbox.start().await.unwrap();
    assert!(!sandbox.exists("a.txt").await.unwrap());
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_paused_one_says_so_and_goes_on() {
    let sandbox = builder().build().unwrap();
    unavailable(sandbox.pause().await, "has not been created");
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    sandbox.pause().await.unwrap();
    sandbox.pause().await.unwrap();
    assert_eq!(sandbox.state().await.unwrap(), ContainerState::Paused);
    assert!(!sandbox.is_alive().await.unwrap());
    sandbox.unpause().await.unwrap();
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    sandbox.pause().await.unwrap();
    sandbox.start().await.unwrap();
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    sandbox.pause().await.unwrap();
    sandbox.stop(StopMode::Keep).await.unwrap();
    assert_eq!(sandbox.state().await.unwrap(), ContainerState::Stopped);
    sandbox.start().await.unwrap();
    sandbox.pause().await.unwrap();
    purge(&sandbox).await;
    assert!(!exists(&sandbox.id()));
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn the_last_clone_takes_the_container_along() {
    let sandbox = builder().build().unwrap();
    sandbox.start().await.unwrap();
    let name = sandbox.id();
    let clone = sandbox.clone();
    drop(sandbox);
    assert_eq!(run(&clone, "echo still").await, "still");
    drop(clone);
    until("the removal", async || !exists(&name)).await;

    let kept = builder().auto_remove(false).build().unwrap();
    kept.start().await.unwrap();
    let name = kept.id();
    drop(kept);
    let attached = DockerSandbox::attach(&name)
        .daemon(daemon())
        .agent(docker::agent());
    let attached = attached.open().await.unwrap();
    until("the stop", async || {
        attached.state().await.unwrap() == ContainerState::Stopped
    })
    .await;
    purge(&attached).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_idle_one_is_stopped_and_wakes_up() {
    let idle = Duration::from_millis(300);
    let sandbox = builder().idle_timeout(idle).build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    let stopped = async || sandbox.state().await.unwrap() == ContainerState::Stopped;
    until("the stop", stopped).await;
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    until("the second stop", stopped).await;
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn statistics_take_one_call() {
    let sandbox = builder().build().unwrap();
    unavailable(sandbox.stats().await, "no container");
    sandbox.start().await.unwrap();
    let first = sandbox.stats().await.unwrap();
    assert_eq!(first.cpu_percent, None);
    assert!(first.pids >= 2 && first.memory > 0, "{first:?}");
    assert_eq!(first.memory_limit, backend_docker::DEFAULT_MEMORY);
    let used = sandbox.stats().await.unwrap();
    assert!(used.cpu_percent.is_some(), "{used:?}");
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_cancelled_start_leaves_nothing() {
    let sandbox = builder().build().unwrap();
    let name = sandbox.id();
    for delay in [1, 5, 20, 60, 120] {
        let start = sandbox.start();
        let cancelled = tokio::time::timeout(Duration::from_millis(delay), start).await;
        drop(cancelled);
    }
    sandbox.start().await.unwrap();
    drop(sandbox);
    until("the removal", async || !exists(&name)).await;
    // The same if nothing is awaited after the cancelled call.
    let mut names = Vec::new();
    for delay in [0, 1, 2, 4, 8, 16, 32, 64, 128] {
        let sandbox = builder().build().unwrap();
        let start = tokio::time::timeout(Duration::from_millis(delay), sandbox.start());
        let _ = start.await;
        names.push(sandbox.id());
    }
    // Every container that will be created exists by now. It is removed as soon as it
    // exists.
    let last = builder().build().unwrap();
    last.start().await.unwrap();
    purge(&last).await;
    for name in names {
        until("the removal", async || !exists(&name)).await;
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn what_cannot_be_made_says_why_and_leaves_nothing() {
    let cases = [
        (
            builder().image("agentbox-test/none:0"),
            "agentbox-test/none:0",
        ),
        (builder().oci_runtime("no-such-runtime"), "no-such-runtime"),
        (
            builder().network(backend_docker::Network::Named("no-such-net".into())),
            "no-such-net",
        ),
        (
            builder().volume(backend_docker::Volume::host("/no/such/directory", "/x")),
            "/no/such/directory",
        ),
        (builder().user("nobody-knows"), "nobody-knows"),
    ];
    for (builder, text) in cases {
        let sandbox = builder.build().unwrap();
        let error = sandbox.start().await.unwrap_err();
        assert!(
            error.to_string().contains(text),
            "{text}: {}",
            error.chain()
        );
        assert!(!exists(&sandbox.id()), "{text}");
        let again = sandbox.working_dir();
        assert!(sandbox.ls(&again, Default::default()).await.is_err());
        assert!(!exists(&sandbox.id()), "{text}");
    }
}

/// An empty image, which is removed in the end.
struct Image(String);

impl Image {
    fn empty() -> Self {
        let name = format!("agentbox-test/empty-{}:1", std::process::id());
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("etc")).unwrap();
        let mut tar = std::process::Command::new("tar");
        tar.arg("-C").arg(place.path()).args(["-c", "."]);
        let archive = tar.output().unwrap().stdout;
        let file = place.path().join("image.tar");
        std::fs::write(&file, archive).unwrap();
        let mut import = std::process::Command::new("docker");
        import.env("DOCKER_HOST", variable("DOCKER_HOST"));
        let done = import.arg("import").arg(&file).arg(&name).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        Self(name)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let mut remove = std::process::Command::new("docker");
        remove.env("DOCKER_HOST", variable("DOCKER_HOST"));
        let _ = remove.args(["rmi", "-f", &self.0]).output();
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_image_without_a_shell_says_what_is_missing() {
    let image = Image::empty();
    let portable = builder()
        .image(&image.0)
        .mode(backend_docker::Mode::Portable);
    let portable = portable.build().unwrap();
    unavailable(outcome(&portable, "true").await, "choose one with");
    purge(&portable).await;
    // The agent keeps the container alive and serves its files.
    let served = builder().image(&image.0).build().unwrap();
    let directory = served.working_dir();
    assert!(served.ls(&directory, Default::default()).await.is_ok());
    unavailable(outcome(&served, "true").await, "use an image that has one");
    purge(&served).await;
}
