//! Pods as records of their own: found, changed and deleted only as they were seen.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use backend_core::ErrorKind;
use backend_k8s::pods::{self, PodPhase, Version};
use backend_testkit::fails;

use crate::support::place::{CONTAINER, Place};
use crate::support::sandbox::purge;

fn values<const N: usize>(all: [(&str, Option<&str>); N]) -> BTreeMap<String, Option<String>> {
    let owned = |(key, value): (&str, Option<&str>)| (key.to_owned(), value.map(str::to_owned));
    all.into_iter().map(owned).collect()
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn found_by_name_and_by_label() {
    let place = Place::new().await;
    let cluster = &place.cluster;
    assert_eq!(pods::find(cluster, "box").await.unwrap(), None);
    let before = SystemTime::now() - Duration::from_secs(5);
    let builder = place.builder().name("box").label("example.com/team", "red");
    let sandbox = builder.create().await.unwrap();
    let found = pods::find(cluster, "box").await.unwrap().unwrap();
    assert_eq!((&*found.name, found.phase), ("box", PodPhase::Running));
    assert_eq!(found.uid, place.uid("box").await);
    assert_eq!(found.labels["example.com/team"], "red");
    assert_eq!(found.restart_count, 0);
    assert!(found.created >= before, "{:?}", found.created);
    assert!(found.node.is_some(), "{found:?}");
    let red = pods::list(cluster, "example.com/team=red").await.unwrap();
    assert_eq!(red.len(), 1);
    assert_eq!(red[0].uid, found.uid);
    let blue = pods::list(cluster, "example.com/team=blue").await;
    assert_eq!(blue.unwrap(), []);
    place.foreign_pod("foreign", CONTAINER).await;
    assert_eq!(pods::list(cluster, "").await.unwrap().len(), 2, "all pods");
    let ours = pods::list(cluster, "app.kubernetes.io/managed-by=agentbox").await;
    assert_eq!(ours.unwrap().len(), 1, "only sandboxes");
    fails(ErrorKind::Config, pods::list(cluster, "a=b=c").await);
    fails(ErrorKind::Config, pods::find(cluster, "../box").await);
    place.delete("foreign").await;
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn of_two_changes_to_what_was_seen_one_succeeds() {
    let place = Place::new().await;
    let cluster = &place.cluster;
    let sandbox = place.builder().name("box").create().await.unwrap();
    let seen = pods::find(cluster, "box").await.unwrap().unwrap();
    let one = values([("example.com/state", Some("busy"))]);
    let changed = pods::annotate(cluster, &seen, &one).await.unwrap();
    assert_eq!(changed.annotations["example.com/state"], "busy");
    assert_ne!(changed.resource_version, seen.resource_version);
    let late = pods::annotate(cluster, &seen, &one).await;
    fails(ErrorKind::Conflict, late);
    fails(ErrorKind::Conflict, pods::label(cluster, &seen, &one).await);
    let other = values([("example.com/team", Some("red"))]);
    let labelled = pods::label(cluster, &changed, &other).await.unwrap();
    assert_eq!(labelled.labels["example.com/team"], "red");
    let none = values([("example.com/state", None)]);
    let cleared = pods::annotate(cluster, &labelled, &none).await.unwrap();
    assert!(!cleared.annotations.contains_key("example.com/state"));
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn only_the_pod_that_was_seen_is_deleted() {
    let place = Place::new().await;
    let cluster = &place.cluster;
    let at_once = Duration::ZERO;
    let first = place.builder().name("box").create().await.unwrap();
    let old = pods::find(cluster, "box").await.unwrap().unwrap();
    let note = values([("example.com/state", Some("busy"))]);
    let new = pods::annotate(cluster, &old, &note).await.unwrap();
    // It has changed since.
    let changed = pods::delete(cluster, &old, at_once, Version::Read).await;
    fails(ErrorKind::Conflict, changed);
    assert!(place.exists("box").await);
    assert!(
        pods::delete(cluster, &new, at_once, Version::Read)
            .await
            .unwrap()
    );
    place.gone("box").await;
    let again = pods::delete(cluster, &new, at_once, Version::Any).await;
    assert!(!again.unwrap(), "there is nothing to delete");
    // Another pod of the same name is another pod.
    let second = place.builder().name("box").create().await.unwrap();
    let other = pods::delete(cluster, &new, at_once, Version::Any).await;
    assert!(!other.unwrap(), "it is not there");
    assert!(place.exists("box").await);
    drop(first);
    purge(&second).await;
    place.end().await;
}
