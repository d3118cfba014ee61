//! Faults of the node: its kubelet and its container runtime end, and come back.

use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_k8s::Mode;
use k8s_openapi::api::core::v1::Pod;

use crate::support::daemons::{Daemon, is_ours};
use crate::support::place::{Place, restarts};
use crate::support::sandbox::{
    first_failure, is_unavailable, lost, purge, running, says, works_again,
};

/// Kills a daemon under a command, starts it again, and checks that the pod and its files
/// are those from before.
async fn short_absence(daemon: &'static str) {
    if !is_ours() {
        return;
    }
    let place = Place::alone().await;
    let modes = [Mode::Agent, Mode::Portable];
    let all = modes.map(|mode| place.builder().mode(mode).build().unwrap());
    let mut under_way = Vec::new();
    let mut uids = Vec::new();
    for sandbox in &all {
        sandbox.write_file("kept.txt", "kept\n").await.unwrap();
        under_way.push(running(sandbox).await);
        uids.push(place.uid(sandbox.pod_name()).await);
    }
    let daemon = Daemon::new(daemon);
    daemon.kill().await;
    for events in under_way {
        lost(events).await;
    }
    daemon.start().await;
    for (sandbox, uid) in all.iter().zip(&uids) {
        works_again(sandbox).await;
        let pod = place.pod(sandbox.pod_name()).await;
        assert_eq!(pod.metadata.uid.as_ref(), Some(uid));
        assert_eq!(restarts(&pod), 0);
        assert!(sandbox.is_alive().await.unwrap());
    }
    place.healthy().await;
    for sandbox in &all {
        purge(sandbox).await;
    }
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_kubelet_that_is_back_soon() {
    short_absence("kubelet").await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_container_runtime_that_is_killed() {
    short_absence("containerd").await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_kubelet_that_stays_away() {
    if !is_ours() {
        return;
    }
    let place = Place::alone().await;
    let sandbox = place.builder().build().unwrap();
    sandbox.write_file("kept.txt", "kept\n").await.unwrap();
    let uid = place.uid(sandbox.pod_name()).await;
    let kubelet = Daemon::new("kubelet");
    kubelet.kill().await;
    let error = first_failure(&sandbox).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.chain());
    // The cluster gives up the node and, unless it has no other node, its pods.
    let is_gone = |pod: Option<&Pod>| {
        pod.is_none_or(|pod| {
            let is_other = pod.metadata.uid.as_ref() != Some(&uid);
            is_other || pod.metadata.deletion_timestamp.is_some()
        })
    };
    let given_up = |pod: Option<&Pod>| is_gone(pod) || !is_ready(pod);
    place.awaits::<Pod>(sandbox.pod_name(), given_up).await;
    let error = first_failure(&sandbox).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.chain());
    says(&error, &["node", "was deleted", "was evicted"]);
    assert!(!sandbox.is_alive().await.unwrap());
    kubelet.start().await;
    place.healthy().await;
    let settled = |pod: Option<&Pod>| is_gone(pod) || is_ready(pod);
    let pod = place.awaits::<Pod>(sandbox.pod_name(), settled).await;
    if is_gone(pod.as_ref()) {
        place.gone(sandbox.pod_name()).await;
        is_unavailable(
            sandbox.exists("kept.txt").await,
            &["was deleted", "was evicted"],
        );
        sandbox.start().await.unwrap();
        assert!(!sandbox.exists("kept.txt").await.unwrap());
    } else {
        works_again(&sandbox).await;
    }
    purge(&sandbox).await;
    place.end().await;
}

fn is_ready(pod: Option<&Pod>) -> bool {
    let status = pod.and_then(|pod| pod.status.as_ref());
    let mut conditions = status
        .into_iter()
        .flat_map(|it| it.conditions.iter().flatten());
    conditions.any(|it| it.type_ == "Ready" && it.status == "True")
}
