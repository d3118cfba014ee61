//! Damage that programs in a pod can do to its sandbox: kill or replace its agent, and
//! flood it.

use backend_core::ops::{Command, CommandStatus, Event};
use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_k8s::K8sSandbox;
use futures::StreamExt as _;

use crate::support::place::Place;
use crate::support::sandbox::{purge, run};
use crate::support::wait::{until, within};

const MIB: u64 = 1 << 20;

/// Kills the agent, if it runs.
async fn kill_agent(place: &Place, sandbox: &K8sSandbox) {
    let pod = sandbox.pod_name();
    for pid in place.pids(pod, "sandbox-agent-").await {
        place.exec(pod, &format!("kill -9 {pid} || true")).await;
    }
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() * 1_024
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn an_agent_that_was_replaced_is_not_run() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    for lie in ["exec cat", "exec yes", "echo hello; exit 0"] {
        let replace = format!(
            "for a in /.agentbox/sandbox-agent-*; do
                 rm -f $a; printf '#!/bin/sh\\ntouch /tmp/ran\\n{lie}\\n' > $a; chmod 755 $a
             done"
        );
        run(&sandbox, &replace).await;
        kill_agent(&place, &sandbox).await;
        until("the next agent", async || {
            let read = within("an answer", sandbox.read_to_string("a.txt")).await;
            match read {
                Ok(text) => text == "one\n",
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.chain());
                    false
                }
            }
        })
        .await;
        let ran = run(&sandbox, "ls /tmp/ran 2>/dev/null || echo never").await;
        assert_eq!(ran, "never", "{lie}");
    }
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn agents_that_are_killed_over_and_over_lose_no_answer() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    sandbox.start().await.unwrap();
    for round in 0..5 {
        let calls = (0..10).map(|_| sandbox.read_to_string("missing.txt"));
        let calls = within("all answers", futures::future::join_all(calls));
        let (answers, ()) = futures::join!(calls, kill_agent(&place, &sandbox));
        for answer in answers {
            let kind = answer.unwrap_err().kind();
            let known = [ErrorKind::NotFound, ErrorKind::Unavailable];
            assert!(known.contains(&kind), "round {round}: {kind:?}");
        }
        until("the next agent", async || {
            let written = within("an answer", sandbox.write_file("again.txt", "x")).await;
            written.is_ok()
        })
        .await;
    }
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_flood_of_output_is_cut_and_delays_no_call() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    sandbox.start().await.unwrap();
    let before = resident();
    let flood = Command::new("yes").hard_output_bytes(64 * MIB);
    let ended = within("the end of a flood", sandbox.execute(flood)).await;
    let ended = ended.unwrap();
    assert_eq!(ended.status, CommandStatus::OutputLimited);
    assert!(ended.stdout.is_truncated());
    // A stream that is not read blocks; other calls are answered meanwhile.
    let endless = Command::new("yes").hard_output_bytes(u64::MAX);
    let mut events = sandbox.stream(endless).await.unwrap();
    let first = within("the first output", events.next()).await;
    assert!(matches!(first, Some(Ok(Event::Stdout(_)))));
    for _ in 0..20 {
        assert_eq!(run(&sandbox, "echo through").await, "through");
    }
    drop(events);
    let grown = resident().saturating_sub(before);
    assert!(grown < 96 * MIB, "{} MiB more", grown / MIB);
    until("the end of the flood", async || {
        run(&sandbox, "ps | grep -c '[y]es$' || true").await == "0"
    })
    .await;
    purge(&sandbox).await;
    place.end().await;
}
