//! Faults of the API server: it is killed under a stream, and closes watches.

use std::collections::BTreeSet;

use backend_core::{BackendExt as _, ErrorKind, Result, Sandbox as _};
use backend_k8s::pods::{self, Pod, PodChange, PodPhase};
use backend_k8s::{Cluster, Mode};
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::support::daemons::{Daemon, is_ours};
use crate::support::observed::{changed, is_watch};
use crate::support::place::{Place, restarts};
use crate::support::sandbox::{first_failure, lost, purge, run, running, works_again};
use crate::support::wait::within;

/// The sandboxes of a namespace, as a watch tells them.
struct Watched {
    changes: BoxStream<'static, Result<PodChange>>,
    running: BTreeSet<String>,
}

impl Watched {
    fn new(cluster: &Cluster) -> Self {
        let changes = pods::watch(cluster, "agentbox.dev/sandbox").unwrap();
        let running = BTreeSet::new();
        Self { changes, running }
    }

    /// Takes a change. An error is one of a cluster that is away: the watch goes on.
    async fn next(&mut self) {
        let change = self.changes.next().await.expect("a watch never ends");
        let is_running = |pod: &Pod| pod.phase == PodPhase::Running && !pod.deleting;
        match change {
            Ok(PodChange::Listed(all)) => {
                let all = all.iter().filter(|pod| is_running(pod));
                self.running = all.map(|pod| pod.name.clone()).collect();
            }
            Ok(PodChange::Changed(pod)) if is_running(&pod) => {
                self.running.insert(pod.name.clone());
            }
            Ok(PodChange::Changed(pod) | PodChange::Deleted(pod)) => {
                self.running.remove(&pod.name);
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    }

    /// Waits until a pod is seen to run, or not to.
    async fn sees(&mut self, name: &str, runs: bool) {
        let seeing = async {
            while self.running.contains(name) != runs {
                self.next().await;
            }
        };
        within("a change that the watch tells", seeing).await;
    }
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
    let mut watched = Watched::new(&place.cluster);
    let first = place.builder().build().unwrap();
    first.start().await.unwrap();
    watched.sees(first.pod_name(), true).await;
    let server = Daemon::new("apiserver");
    server.kill().await;
    server.start().await;
    place.healthy().await;
    let second = place.builder().build().unwrap();
    second.start().await.unwrap();
    watched.sees(second.pod_name(), true).await;
    for sandbox in [&first, &second] {
        purge(sandbox).await;
        watched.sees(sandbox.pod_name(), false).await;
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
    let mut watched = Watched::new(&cluster);
    let mut closed = 0;
    while closed < 3 {
        // Through another client, whose requests are not counted.
        let sandbox = place.builder().build().unwrap();
        run(&sandbox, "sleep 1").await;
        watched.sees(sandbox.pod_name(), true).await;
        purge(&sandbox).await;
        watched.sees(sandbox.pod_name(), false).await;
        closed += requests.take().iter().filter(|it| is_watch(it)).count();
    }
    place.end().await;
}
