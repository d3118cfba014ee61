//! New containers that are bound by their ids, found by labels, renamed, and with small
//! files in them.

use backend_core::{ErrorKind, Sandbox as _};
use backend_docker::{ContainerState, Volume, containers};
use backend_testkit::fails;

use crate::support::docker::{builder, daemon, docker, outcome, purge, run};

/// A name that no other container has.
fn name(what: &str) -> String {
    format!("agentbox-test-{what}-{:016x}", fastrand::u64(..))
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_new_container_keeps_its_sandbox_under_any_name() {
    let (daemon, first, second) = (daemon(), name("first"), name("second"));
    let sandbox = builder().name(&*first).create().await.unwrap();
    run(&sandbox, "echo kept > file").await;
    let other = builder().name(&*second).create().await.unwrap();
    fails(
        ErrorKind::AlreadyExists,
        builder().name(&*first).create().await,
    );
    let taken = containers::rename(&daemon, sandbox.container(), &second).await;
    fails(ErrorKind::AlreadyExists, taken);
    purge(&other).await;
    let renamed = containers::rename(&daemon, sandbox.container(), &second).await;
    renamed.unwrap();
    assert_eq!(run(&sandbox, "cat file").await, "kept");
    let found = containers::find(&daemon, &second).await.unwrap().unwrap();
    assert_eq!(found.id, sandbox.container());
    assert_eq!(
        (&*found.name, found.state),
        (&*second, ContainerState::Running)
    );
    assert!(!found.abandoned);
    assert_eq!(containers::find(&daemon, &first).await.unwrap(), None);
    docker(&["rm", "-f", &second]);
    fails(ErrorKind::Unavailable, outcome(&sandbox, "true").await);
    fails(ErrorKind::Unavailable, sandbox.start().await);
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn files_beside_those_of_commands() {
    let (daemon, team) = (daemon(), name("team"));
    let builder = builder().name(name("box")).label("example.team", &*team);
    let sandbox = builder.create().await.unwrap();
    let id = sandbox.container();
    let files = async || {
        containers::read_files(&daemon, id, "/.notes")
            .await
            .unwrap()
    };
    assert!(files().await.is_empty());
    for (path, content) in [("/.notes/a", "1"), ("/.notes/b", "2"), ("/.notes/a", "3")] {
        let written = containers::write_file(&daemon, id, path, content.as_bytes());
        written.await.unwrap();
    }
    let found = files().await;
    let expected = [("a", "3"), ("b", "2")];
    let found: Vec<_> = found
        .iter()
        .map(|(name, content)| (&**name, &**content))
        .collect();
    assert_eq!(
        found,
        expected.map(|(name, content)| (name, content.as_bytes()))
    );
    let looked = run(&sandbox, "cat /.notes/a 2>/dev/null || echo refused").await;
    assert_eq!(looked, "refused");
    docker(&["stop", "-t", "1", id]);
    assert_eq!(files().await.len(), 2, "it need not run");
    let listed = containers::list(&daemon, "example.team", &team).await;
    let listed = listed.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&*listed[0].id, listed[0].state),
        (id, ContainerState::Stopped)
    );
    let attached = sandbox_of(id).await;
    purge(&attached).await;
    let gone = containers::write_file(&daemon, id, "/.notes/a", b"4").await;
    fails(ErrorKind::NotFound, gone);
}

/// Attaches with the options of a builder.
async fn sandbox_of(id: &str) -> backend_docker::DockerSandbox {
    builder().attach(id).open().await.unwrap()
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_host_directory_is_given_to_the_user() {
    let place = tempfile::tempdir().unwrap();
    let volume = Volume::host(place.path(), "/workspace").owned(true);
    let builder = builder()
        .name(name("owned"))
        .user("1234:1234")
        .volume(volume);
    let sandbox = builder.create().await.unwrap();
    run(&sandbox, "echo mine > file").await;
    let written = std::fs::read_to_string(place.path().join("file"));
    assert_eq!(written.unwrap(), "mine\n");
    purge(&sandbox).await;
}
