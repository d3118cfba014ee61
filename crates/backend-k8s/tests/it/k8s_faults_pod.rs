//! Pods that end, and processes in them that are killed: callers are told why.

use backend_core::ops::CommandStatus;
use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_testkit::fails;
use kube::api::EvictParams;
use serde_json::json;

use crate::support::place::{Place, restarts};
use crate::support::sandbox::{
    DELETED, ended, in_both_modes, lost, outcome, purge, run, running, says,
};
use crate::support::wait::until;

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_pod_deleted_under_a_command() {
    let place = Place::new().await;
    in_both_modes(async |mode| {
        let sandbox = place.builder().mode(mode).build().unwrap();
        sandbox.write_file("kept.txt", "kept\n").await.unwrap();
        let events = running(&sandbox).await;
        place.delete(sandbox.pod_name()).await;
        says(&lost(events).await, DELETED);
        ended(&place, &sandbox).await;
    })
    .await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_pod_evicted_under_a_command() {
    let place = Place::new().await;
    in_both_modes(async |mode| {
        let sandbox = place.builder().mode(mode).build().unwrap();
        sandbox.write_file("kept.txt", "kept\n").await.unwrap();
        let events = running(&sandbox).await;
        let pods = place.pods();
        let options = EvictParams::default();
        let evicted = pods.evict(sandbox.pod_name(), &options).await;
        evicted.unwrap();
        lost(events).await;
        place.gone(sandbox.pod_name()).await;
        ended(&place, &sandbox).await;
    })
    .await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn the_main_process_out_of_memory() {
    let place = Place::new().await;
    // When told to, the program that keeps the pod alive takes more than there is.
    let script = "until [ -e /tmp/now ]; do sleep 0.1; done; exec dd if=/dev/zero of=/dev/null bs=300M count=1";
    let container = json!([{"name": "sandbox", "command": ["sh", "-c", script], "args": []}]);
    let overlay = json!({"spec": {"containers": container}});
    in_both_modes(async |mode| {
        let builder = place.builder().memory(96 << 20).mode(mode);
        let sandbox = builder.overlay(overlay.clone()).build().unwrap();
        sandbox.start().await.unwrap();
        let events = running(&sandbox).await;
        // The end may come before the answer.
        let _ = sandbox.write_file("/tmp/now", "").await;
        let error = lost(events).await;
        says(&error, &["memory", "OOMKilled"]);
        purge(&sandbox).await;
    })
    .await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_command_out_of_memory_is_a_result() {
    let place = Place::new().await;
    in_both_modes(async |mode| {
        let builder = place.builder().memory(96 << 20).mode(mode);
        let sandbox = builder.build().unwrap();
        // Where the kernel kills all of a container at once, the sandbox ends with it.
        let all = "cat /sys/fs/cgroup/memory.oom.group 2>/dev/null || echo 0";
        let ends_with_it = run(&sandbox, all).await == "1";
        let hog = "exec dd if=/dev/zero of=/dev/null bs=300M count=1";
        let hog = outcome(&sandbox, hog).await;
        if ends_with_it {
            says(
                &fails(ErrorKind::Unavailable, hog),
                &["memory", "OOMKilled"],
            );
        } else {
            let ended = hog.unwrap();
            let killed = CommandStatus::Signalled(9);
            assert_eq!(ended.status, killed, "{mode:?}: {ended:?}");
            assert_eq!(run(&sandbox, "echo alive").await, "alive");
            let pod = place.pod(sandbox.pod_name()).await;
            assert_eq!(restarts(&pod), 0, "{mode:?}");
        }
        purge(&sandbox).await;
    })
    .await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_killed_agent_takes_its_calls_along_and_is_started_anew() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    let uid = place.uid(sandbox.pod_name()).await;
    for _ in 0..3 {
        let events = running(&sandbox).await;
        let agents = place.pids(sandbox.pod_name(), "sandbox-agent").await;
        let first = agents.first().expect("an agent runs");
        place
            .exec(sandbox.pod_name(), &format!("kill -9 {first}"))
            .await;
        lost(events).await;
        assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    }
    until("the end of its commands", async || {
        let left = place.pids(sandbox.pod_name(), "sleep 4321").await;
        left.is_empty()
    })
    .await;
    assert_eq!(place.uid(sandbox.pod_name()).await, uid);
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_dropped_stream_ends_its_command() {
    let place = Place::new().await;
    in_both_modes(async |mode| {
        let sandbox = place.builder().mode(mode).build().unwrap();
        drop(running(&sandbox).await);
        until("the end of the command", async || {
            let left = place.pids(sandbox.pod_name(), "sleep 4321").await;
            left.is_empty()
        })
        .await;
        assert_eq!(run(&sandbox, "echo on").await, "on");
        purge(&sandbox).await;
    })
    .await;
    place.end().await;
}
