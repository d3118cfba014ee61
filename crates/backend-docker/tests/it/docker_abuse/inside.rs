//! Programs in the container exhaust its resources.

use std::time::Duration;

use backend_core::ops::{Command, Event};
use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_docker::Delivery;
use backend_testkit::fails;
use futures::StreamExt as _;

use super::support::{Box, resident};
use crate::support::docker::until;

const MIB: u64 = 1 << 20;

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_read_only_root_gets_the_agent_all_the_same() {
    for delivery in [Delivery::Bind, Delivery::Upload] {
        let b = Box::with(|builder| {
            builder
                .read_only_root(true)
                .tmpfs("/workspace", "size=8m,uid=1000,gid=1000")
                .delivery(delivery)
        });
        b.works().await;
        fails(
            ErrorKind::PermissionDenied,
            b.sandbox.write_file("/etc/x", "x").await,
        );
        b.end().await;
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_flood_of_output_is_cut_and_holds_nobody_up() {
    let b = Box::new();
    b.works().await;
    let before = resident();
    // 128 MB, of which the beginning and the end are returned.
    let flood = Command::new("yes 0123456789abcdef | head -c 128000000; echo; echo the end")
        .hard_output_bytes(u64::MAX);
    let small = async {
        for _ in 0..20 {
            b.works().await;
        }
    };
    let (flooded, ()) = tokio::join!(b.sandbox.execute(flood), small);
    let flooded = flooded.unwrap();
    assert!(flooded.status.success());
    assert!(flooded.stdout.is_truncated());
    assert!(flooded.stdout.text().ends_with("the end\n"));
    // A reader that stops blocks the command, and memory does not grow meanwhile.
    let mut events = b
        .sandbox
        .stream(Command::new("yes").hard_output_bytes(u64::MAX))
        .await
        .unwrap();
    assert!(matches!(events.next().await, Some(Ok(Event::Stdout(_)))));
    for _ in 0..20 {
        b.works().await;
    }
    drop(events);
    let grown = resident().saturating_sub(before);
    assert!(grown < 96 * MIB, "{} MiB more", grown / MIB);
    // The dropped stream does not wait for the end of its command.
    until("the flood has ended", async || {
        Box::said(b.sh("ps | grep -c '[y]es$' || true").await) == "0"
    })
    .await;
    b.end().await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_fork_bomb_hits_its_limit_and_the_sandbox_lives() {
    let b = Box::with(|builder| builder.pids_limit(64));
    b.works().await;
    let bomb =
        Command::new("bomb() { bomb | bomb & }; bomb; sleep 2").timeout(Duration::from_secs(10));
    // However that ends, later calls work.
    let _ = b.sandbox.execute(bomb).await;
    until("it works again", async || {
        b.sandbox.write_file("after.txt", "x").await.is_ok() && b.sh("true").await.is_ok()
    })
    .await;
    b.works().await;
    b.end().await;
}
