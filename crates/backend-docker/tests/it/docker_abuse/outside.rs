//! Another client of the daemon kills, pauses or removes the container.

use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};

use super::support::{Box, is_unavailable};
use crate::support::docker::until;

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn agents_that_are_killed_over_and_over_lose_no_answer() {
    let b = Box::new();
    b.works().await;
    for round in 0..5 {
        let calls = (0..10).map(|_| b.sandbox.read_to_string("missing.txt"));
        let calls = futures::future::join_all(calls);
        let kill = async { b.kill_agent() };
        let (answers, ()) = tokio::join!(calls, kill);
        for answer in answers {
            let kind = answer.unwrap_err().kind();
            let known = [ErrorKind::NotFound, ErrorKind::Unavailable];
            assert!(known.contains(&kind), "round {round}: {kind:?}");
        }
        until("it answers again", async || {
            b.sandbox.write_file("again.txt", "x").await.is_ok()
        })
        .await;
    }
    b.end().await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_container_that_somebody_removed_is_never_an_empty_answer() {
    let b = Box::new();
    b.works().await;
    b.sandbox.write_file("lost.txt", "lost").await.unwrap();
    b.cli.run(&["rm", "--force", &b.container()]);
    let told = is_unavailable(b.sandbox.exists("lost.txt").await);
    assert!(told.contains("removed") || told.contains("gone"), "{told}");
    is_unavailable(b.sandbox.list_dir(".").await);
    assert!(!b.sandbox.is_alive().await.unwrap());
    // A new container must be requested explicitly.
    b.sandbox.start().await.unwrap();
    assert!(!b.sandbox.exists("lost.txt").await.unwrap());
    b.works().await;
    b.end().await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_paused_container_does_not_hang_its_callers() {
    let b = Box::new();
    b.works().await;
    let container = b.container();
    until("it is paused", async || {
        // The kernel does not freeze a busy machine's processes at once.
        b.cli.try_run(&["pause", &container]).status.success()
    })
    .await;
    let told = is_unavailable(b.sandbox.list_dir(".").await);
    assert!(told.contains("paused"), "{told}");
    b.cli.run(&["unpause", &container]);
    b.works().await;
    b.end().await;
}
