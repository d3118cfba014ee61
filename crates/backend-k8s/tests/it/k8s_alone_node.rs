//! Faults of the node: its kubelet and its container runtime end and come back, and it
//! drives pods away.

use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_k8s::Mode;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::support::daemons::{Daemon, is_ours};
use crate::support::place::{Place, restarts};
use crate::support::sandbox::{
    DELETED, ended, first_failure, is_unavailable, lost, purge, run, running, says, works_again,
};
use crate::support::wait::at_last;

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_kubelet_and_a_container_runtime_that_are_back_soon() {
    if !is_ours() {
        return;
    }
    let place = Place::alone().await;
    let modes = [Mode::Agent, Mode::Portable];
    let all = modes.map(|mode| place.builder().mode(mode).build().unwrap());
    let mut uids = Vec::new();
    for sandbox in &all {
        sandbox.write_file("kept.txt", "kept\n").await.unwrap();
        uids.push(place.uid(sandbox.pod_name()).await);
    }
    for daemon in ["kubelet", "containerd"] {
        let mut under_way = Vec::new();
        for sandbox in &all {
            under_way.push(running(sandbox).await);
        }
        let killed = Daemon::new(daemon);
        killed.kill().await;
        for events in under_way {
            lost(events).await;
        }
        killed.start().await;
        for (sandbox, uid) in all.iter().zip(&uids) {
            works_again(sandbox).await;
            let pod = place.pod(sandbox.pod_name()).await;
            assert_eq!(pod.metadata.uid.as_ref(), Some(uid), "{daemon}");
            assert_eq!(restarts(&pod), 0, "{daemon}");
            assert!(sandbox.is_alive().await.unwrap(), "{daemon}");
        }
        place.healthy().await;
    }
    for sandbox in &all {
        purge(sandbox).await;
    }
    place.end().await;
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

/// A taint of the only node that drives pods away, until this is dropped.
struct Taint {
    node: String,
}

impl Taint {
    async fn new(place: &Place, key: &str) -> Self {
        let nodes: Api<Node> = Api::all(place.client.clone());
        let all = nodes.list(&ListParams::default()).await.unwrap();
        let node = all.items[0].name_any();
        let taints = json!([{"key": key, "effect": "NoExecute"}]);
        set_taints(&place.client, &node, taints).await.unwrap();
        Self { node }
    }
}

impl Drop for Taint {
    fn drop(&mut self) {
        let node = std::mem::take(&mut self.node);
        at_last(async move {
            let client = Client::try_default().await.unwrap();
            set_taints(&client, &node, json!([])).await.unwrap();
        });
    }
}

async fn set_taints(client: &Client, node: &str, taints: Value) -> Result<Node, kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
    nodes.patch(node, &PatchParams::default(), &patch).await
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_pod_driven_away_from_its_node() {
    if !is_ours() {
        return;
    }
    let place = Place::alone().await;
    let sandbox = place.builder().build().unwrap();
    sandbox.write_file("kept.txt", "kept\n").await.unwrap();
    let tolerant = place
        .builder()
        .toleration(json!({"key": "example.com/away", "operator": "Exists"}))
        .build()
        .unwrap();
    tolerant.write_file("kept.txt", "kept\n").await.unwrap();
    let events = running(&sandbox).await;
    let taint = Taint::new(&place, "example.com/away").await;
    lost(events).await;
    place.gone(sandbox.pod_name()).await;
    let told = sandbox.exists("kept.txt").await;
    assert_eq!(run(&tolerant, "cat kept.txt").await, "kept");
    drop(taint);
    place.healthy().await;
    is_unavailable(told, DELETED);
    ended(&place, &sandbox).await;
    purge(&tolerant).await;
    place.end().await;
}
