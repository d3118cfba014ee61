//! Faults of the API server: it is killed under a stream, and closes watches.

use std::pin::Pin;

use backend_core::{BackendExt as _, ErrorKind, Result, Sandbox as _};
use backend_k8s::pods::{self, PodChange};
use backend_k8s::{Cluster, Mode};
use futures::{Stream, StreamExt as _};

use crate::support::daemons::{Daemon, is_ours};
use crate::support::observed::{changed, is_watch};
use crate::support::place::{Place, restarts};
use crate::support::sandbox::{first_failure, lost, purge, run, running, works_again};
use crate::support::wait::within;

type Changes = Pin<Box<dyn Stream<Item = Result<PodChange>> + Send>>;

/// The sandboxes of the namespace, and what becomes of them.
fn watch(cluster: &Cluster) -> Changes {
    pods::watch(cluster, "agentbox.dev/sandbox").boxed()
}

/// Waits for a change.
async fn seen(changes: &mut Changes, what: &str, wanted: impl Fn(&PodChange) -> bool) {
    let seeing = async {
        loop {
            let change = changes.next().await.expect("a watch never ends");
            if wanted(&change.unwrap()) {
                return;
            }
        }
    };
    within(what, seeing).await;
}

/// Waits until a pod is seen to run.
async fn runs(changes: &mut Changes, name: &str) {
    seen(changes, "a pod that runs", |change| {
        matches!(change, PodChange::Present(pod) if pod.name == name && pod.phase == pods::PodPhase::Running)
    })
    .await;
}

/// Waits until a pod is seen to be gone.
async fn is_gone(changes: &mut Changes, name: &str) {
    seen(
        changes,
        "a pod that is gone",
        |change| matches!(change, PodChange::Gone(pod) if pod.name == name),
    )
    .await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_server_killed_in_the_middle_of_a_stream() {
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
    let server = Daemon::new("apiserver");
    server.kill().await;
    for events in under_way {
        lost(events).await;
    }
    for sandbox in &all {
        let error = first_failure(sandbox).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.chain());
    }
    server.start().await;
    for (sandbox, uid) in all.iter().zip(&uids) {
        works_again(sandbox).await;
        let pod = place.pod(sandbox.pod_name()).await;
        assert_eq!(pod.metadata.uid.as_ref(), Some(uid));
        assert_eq!(restarts(&pod), 0);
    }
    place.healthy().await;
    for sandbox in &all {
        purge(sandbox).await;
    }
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_watch_goes_on_after_the_server_was_away() {
    if !is_ours() {
        return;
    }
    let place = Place::alone().await;
    let mut changes = watch(&place.cluster);
    let first = place.builder().build().unwrap();
    first.start().await.unwrap();
    runs(&mut changes, first.pod_name()).await;
    let server = Daemon::new("apiserver");
    server.kill().await;
    server.start().await;
    place.healthy().await;
    let second = place.builder().build().unwrap();
    second.start().await.unwrap();
    runs(&mut changes, second.pod_name()).await;
    for sandbox in [&first, &second] {
        purge(sandbox).await;
        is_gone(&mut changes, sandbox.pod_name()).await;
    }
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_watch_that_closes_again_and_again_misses_nothing() {
    let place = Place::new().await;
    // The server closes each one after a second.
    let (client, requests) = changed(&place.client, &place.namespace, |request| {
        let asked = request.uri().to_string();
        if is_watch(&asked) {
            let parts = asked
                .split('&')
                .filter(|it| !it.starts_with("timeoutSeconds"));
            let short = format!("{}&timeoutSeconds=1", Vec::from_iter(parts).join("&"));
            *request.uri_mut() = short.parse().unwrap();
        }
    });
    let cluster = Cluster::from_client(client, &*place.namespace);
    let mut changes = watch(&cluster);
    let mut closed = 0;
    while closed < 3 {
        // Through another client, whose requests are not counted.
        let sandbox = place.builder().build().unwrap();
        run(&sandbox, "sleep 1").await;
        runs(&mut changes, sandbox.pod_name()).await;
        purge(&sandbox).await;
        is_gone(&mut changes, sandbox.pod_name()).await;
        closed += requests.take().iter().filter(|it| is_watch(it)).count();
    }
    place.end().await;
}
