//! An API server that is killed, and comes back.

use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_k8s::Mode;

use crate::support::daemons::{Daemon, is_ours};
use crate::support::place::{Place, restarts};
use crate::support::sandbox::{first_failure, lost, purge, running, works_again};
use crate::support::watched::Watched;

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn streams_end_and_watches_go_on() {
    if !is_ours() {
        return;
    }
    let place = Place::alone().await;
    let mut watched = Watched::new(&place.cluster);
    let modes = [Mode::Agent, Mode::Portable];
    let all = modes.map(|mode| place.builder().mode(mode).build().unwrap());
    let mut under_way = Vec::new();
    let mut uids = Vec::new();
    for sandbox in &all {
        sandbox.write_file("kept.txt", "kept\n").await.unwrap();
        under_way.push(running(sandbox).await);
        uids.push(place.uid(sandbox.pod_name()).await);
        watched.sees(sandbox.pod_name(), true).await;
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
    let later = place.builder().build().unwrap();
    later.start().await.unwrap();
    watched.sees(later.pod_name(), true).await;
    for sandbox in all.iter().chain([&later]) {
        purge(sandbox).await;
        watched.sees(sandbox.pod_name(), false).await;
    }
    place.end().await;
}
