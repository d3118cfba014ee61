//! Pods that cannot be started: the reason is told, and nothing is left.

use std::time::{Duration, Instant};

use backend_core::{Error, ErrorKind, Sandbox as _};
use backend_k8s::{Cluster, K8sBuilder};
use backend_testkit::fails;
use k8s_openapi::api::core::v1::{ResourceQuota, ServiceAccount};
use kube::ResourceExt as _;
use serde_json::json;

use crate::support::account;
use crate::support::place::Place;
use crate::support::process::{Part, given, say};
use crate::support::sandbox::{purge, run, says};
use crate::support::wait::within;

/// Starts a sandbox, which must fail, and checks that no pod is left.
async fn refused(place: &Place, builder: K8sBuilder) -> Error {
    let sandbox = builder.build().unwrap();
    let started = within("a start that fails", sandbox.start()).await;
    let error = started.unwrap_err();
    assert!(!place.exists(sandbox.pod_name()).await, "{}", error.chain());
    error
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn an_image_that_is_missing_or_has_no_valid_name() {
    let place = Place::new().await;
    let begun = Instant::now();
    let missing = place.builder().image("localhost/agentbox-test/none:0");
    let error = refused(&place, missing).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.chain());
    says(&error, &["localhost/agentbox-test/none:0"]);
    // Of the 120 seconds that a start may take, none is waited for in vain.
    assert!(begun.elapsed() < Duration::from_secs(60), "{error}");
    for name in ["", "No:Valid:Name", "a b"] {
        let error = match place.builder().image(name).build() {
            Ok(sandbox) => sandbox.start().await.unwrap_err(),
            Err(error) => error,
        };
        let known = [ErrorKind::Config, ErrorKind::Unavailable];
        assert!(known.contains(&error.kind()), "{name}: {}", error.chain());
    }
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn no_node_for_it() {
    let place = Place::new().await;
    let soon = Duration::from_secs(3);
    let nowhere = || place.builder().start_timeout(soon);
    let selected = nowhere().node_selector("example.com/no-such", "node");
    let large = nowhere().memory(1 << 50).request_memory(1 << 50);
    let (selected, large) = futures::join!(refused(&place, selected), refused(&place, large));
    let kind = ErrorKind::Unavailable;
    assert_eq!(selected.kind(), kind, "{}", selected.chain());
    says(&selected, &["node"]);
    says(&large, &["memory"]);
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_quota_that_is_exceeded() {
    let place = Place::new().await;
    let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}});
    place.create::<ResourceQuota>(quota).await;
    let counted = |quota: Option<&ResourceQuota>| {
        let status = quota.and_then(|quota| quota.status.as_ref());
        status.is_some_and(|status| status.used.is_some())
    };
    place.awaits::<ResourceQuota>("few", counted).await;
    let first = place.builder().build().unwrap();
    run(&first, "true").await;
    let error = refused(&place, place.builder()).await;
    says(&error, &["quota"]);
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.chain());
    assert_eq!(run(&first, "echo on").await, "on");
    purge(&first).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn an_account_without_rights() {
    let place = Place::new().await;
    let account = json!({"metadata": {"name": "powerless"}});
    let account = place.create::<ServiceAccount>(account).await;
    let client = account::client(&place, &account.name_any()).await;
    let cluster = Cluster::from_client(client, &*place.namespace);
    let error = refused(&place, place.builder().cluster(cluster)).await;
    let kind = ErrorKind::PermissionDenied;
    assert_eq!(error.kind(), kind, "{}", error.chain());
    says(&error, &["powerless"]);
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_program_that_does_not_stay() {
    let place = Place::new().await;
    let container = json!([{"name": "sandbox", "command": ["sh", "-c", "echo gone; exit 3"]}]);
    let overlay = json!({"spec": {"containers": container}});
    let sandbox = place.builder().overlay(overlay).build().unwrap();
    let started = within("a start that fails", sandbox.start()).await;
    let error = fails(ErrorKind::Unavailable, started);
    says(&error, &["code 3"]);
    // It may have run for a moment, and is then there.
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "a part of another test, which starts it"]
async fn part_opens_a_named_sandbox() {
    let Some((place, named)) = given().await else {
        return;
    };
    let sandbox = place.builder().name(&named).build().unwrap();
    run(&sandbox, "echo one >> opened").await;
    let uid = place.uid(sandbox.pod_name()).await;
    say(&[&*uid]).await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn two_processes_that_open_one_name_share_its_pod() {
    let place = Place::new().await;
    let test = "k8s_faults_start::part_opens_a_named_sandbox";
    let mut parts = [(); 2].map(|()| Part::start(&place, test, "shared"));
    let mut uids = Vec::new();
    for part in &mut parts {
        uids.push(part.words().await);
    }
    assert_eq!(uids[0], uids[1]);
    let opened = place.exec("shared", "cat /workspace/opened").await;
    assert_eq!(opened.lines().count(), 2, "{opened}");
    // The end of one changes nothing for the other.
    parts[0].kill();
    let attached = place.attach("shared").open().await.unwrap();
    assert_eq!(run(&attached, "wc -l < opened").await, "2");
    parts[1].kill();
    purge(&attached).await;
    place.end().await;
}
