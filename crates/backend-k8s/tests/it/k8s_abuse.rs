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

/// Replaces the agent of a new sandbox by a script, and makes calls until one reports an
/// error. The true agent is then put back.
async fn lie(place: &Place, script: &str) {
    let sandbox = &place.builder().build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    let pod = sandbox.pod_name();
    let agents = "for a in /.agentbox/sandbox-agent-*[0-9a-f]";
    let replace = format!(
        "{agents}; do
             mv $a /tmp/true-agent; printf '%s\\n' '#!/bin/sh' '{script}' > $a; chmod 755 $a
         done"
    );
    place.exec(pod, &replace).await;
    kill_agent(place, sandbox).await;
    // This call notices that the true agent is gone.
    let _ = within("an answer", sandbox.read_to_string("a.txt")).await;
    let before = resident();
    let told = async {
        for _ in 0..100 {
            match sandbox.read_to_string("a.txt").await {
                Ok(text) => assert_eq!(text, "one\n", "{script}"),
                Err(error) => return error,
            }
        }
        panic!("{script}: nothing was noticed");
    };
    let error = within("an error", told).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.chain());
    let told = error.chain().to_string();
    assert!(told.len() < 4_000, "{told}");
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 * MIB, "{} MiB more", grown / MIB);
    let restore = format!("{agents}; do mv /tmp/true-agent $a; done");
    place.exec(pod, &restore).await;
    kill_agent(place, sandbox).await;
    until("the true agent", async || {
        let read = within("an answer", sandbox.read_to_string("a.txt")).await;
        read.is_ok_and(|text| text == "one\n")
    })
    .await;
    purge(sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn an_agent_that_lies_is_not_believed() {
    let place = Place::new().await;
    let lies = [
        "exit 0",
        "echo hello; exit 0",
        "exec cat",
        "exec yes",
        "exec cat /dev/urandom",
    ];
    // At once, because after each end of an agent the cluster has its time to tell why.
    futures::future::join_all(lies.map(|script| lie(&place, script))).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn agents_that_are_killed_over_and_over_lose_no_answer() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    sandbox.start().await.unwrap();
    for round in 0..3 {
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
