//! Pods left by a killed process are found and removed. Nothing else is touched.

use backend_core::{ErrorKind, Sandbox as _};
use backend_k8s::{leftovers, reap};
use backend_testkit::fails;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::json;

use crate::support::place::{CONTAINER, Place};
use crate::support::process::{Part, given, say};
use crate::support::sandbox::purge;

#[tokio::test]
#[ignore = "a part of another test, which starts it"]
async fn part_holds_sandboxes_until_it_is_killed() {
    let Some((place, named)) = given().await else {
        return;
    };
    let all = [
        place.builder().build().unwrap(),
        place.builder().keep(true).build().unwrap(),
        place.builder().name(&named).build().unwrap(),
    ];
    let starts = all.iter().map(|sandbox| sandbox.start());
    for started in futures::future::join_all(starts).await {
        started.unwrap();
    }
    let names: Vec<_> = all.iter().map(|sandbox| sandbox.pod_name()).collect();
    say(&names).await;
}

#[tokio::test]
#[ignore = "a part of another test, which starts it"]
async fn part_starts_and_reaps_until_it_is_killed() {
    let Some((place, named)) = given().await else {
        return;
    };
    let builder = place.builder().name(&named).reap_leftovers(true);
    let sandbox = builder.build().unwrap();
    sandbox.start().await.unwrap();
    say(&[sandbox.pod_name()]).await;
}

/// Creates a pod with the metadata of another one.
async fn copy(place: &Place, from: &str, name: &str, change: impl FnOnce(&mut serde_json::Value)) {
    let from = place.pod(from).await;
    let mut metadata = json!({
        "name": name,
        "labels": from.labels(),
        "annotations": from.annotations(),
    });
    change(&mut metadata);
    let mut pod = json!({"metadata": metadata, "spec": from.spec.unwrap()});
    // It is scheduled like any new pod.
    pod["spec"]["nodeName"] = json!(null);
    place.create::<Pod>(pod).await;
}

async fn names(place: &Place) -> Vec<String> {
    let found = leftovers(&place.cluster).await.unwrap();
    let mut names: Vec<_> = found.into_iter().map(|left| left.name).collect();
    names.sort();
    names
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_killed_process_is_cleaned_up_after() {
    let place = Place::new().await;
    let test = "k8s_leftovers::part_holds_sandboxes_until_it_is_killed";
    let mut part = Part::start(&place, test, "named");
    let held = part.words().await;
    let [removed, kept, named] = &held[..] else {
        panic!("{held:?}");
    };
    assert_eq!(names(&place).await, [""; 0], "it lives");
    place.foreign_pod("foreign", CONTAINER).await;
    // A copy of the manifest, and one that another host's process might have made.
    copy(&place, removed, "copied", |_| {}).await;
    copy(&place, removed, "elsewhere", |metadata| {
        metadata["labels"]["agentbox.dev/sandbox"] = json!("elsewhere");
        metadata["annotations"]["agentbox.dev/owner"] = json!("1:1:another-boot:1");
        metadata["annotations"]["agentbox.dev/host"] = json!("another/host");
    })
    .await;
    let mine = place.builder().build().unwrap();
    mine.start().await.unwrap();
    part.kill();
    assert_eq!(names(&place).await, [&**removed]);
    let elsewhere = place.cluster.clone().with_namespace("default");
    let elsewhere = leftovers(&elsewhere).await.unwrap();
    let is_found = elsewhere.iter().any(|left| &left.name == removed);
    assert!(!is_found, "another namespace");
    let reaped = reap(&place.cluster).await.unwrap();
    assert_eq!(reaped.len(), 1);
    assert_eq!(&reaped[0].name, removed);
    place.gone(removed).await;
    let others = [&**kept, &**named, "foreign", "copied", "elsewhere"];
    for stays in others {
        assert!(place.exists(stays).await, "{stays}");
    }
    assert_eq!(names(&place).await, [""; 0]);
    assert!(mine.is_alive().await.unwrap(), "its process lives");
    // A copy is not taken for the sandbox.
    fails(
        ErrorKind::PermissionDenied,
        place.attach("copied").open().await,
    );
    purge(&mine).await;
    for left in others {
        place.delete(left).await;
    }
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn the_next_start_reaps_by_itself() {
    let place = Place::new().await;
    let test = "k8s_leftovers::part_holds_sandboxes_until_it_is_killed";
    let mut part = Part::start(&place, test, "named");
    let held = part.words().await;
    part.kill();
    // Only the first start of a process reaps, and in this process other tests have
    // started sandboxes.
    let test = "k8s_leftovers::part_starts_and_reaps_until_it_is_killed";
    let mut next = Part::start(&place, test, "next");
    next.words().await;
    place.gone(&held[0]).await;
    for left in [&*held[1], &*held[2], "next"] {
        place.delete(left).await;
    }
    next.kill();
    place.end().await;
}
