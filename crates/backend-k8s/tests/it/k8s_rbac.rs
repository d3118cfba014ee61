//! All that the crate does, with exactly the rights of docs/kubernetes-rbac.yaml.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use backend_core::ops::StopMode;
use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_k8s::pods::{self, Version};
use backend_k8s::{Cluster, Mode, leftovers, reap};
use backend_testkit::fails;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::ListParams;

use crate::support::account;
use crate::support::observed::observed;
use crate::support::place::Place;
use crate::support::rights::{granted, relabel};
use crate::support::sandbox::{purge, run};
use crate::support::wait::{until, within};

/// Returns the rights about pods that a request needs.
fn needed(request: &str) -> Vec<String> {
    let (method, uri) = request.split_once(' ').unwrap();
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let Some((_, path)) = path.split_once("/pods") else {
        return Vec::new();
    };
    let mut parts = path.split('/').skip(1);
    let (name, below) = (parts.next(), parts.next());
    let verbs: &[&str] = match (method, name, below) {
        // A server of 1.35 or later wants both for a stream, an older one the first.
        ("GET", Some(_), Some("exec")) => &["get", "create"],
        ("GET", None, _) if query.contains("watch=true") => &["watch"],
        ("GET", None, _) => &["list"],
        ("GET", ..) => &["get"],
        ("POST", ..) => &["create"],
        ("PATCH", ..) => &["patch"],
        ("DELETE", Some(_), _) => &["delete"],
        _ => panic!("{request}"),
    };
    let resource = below.map_or("pods".to_owned(), |below| format!("pods/{below}"));
    let needed = verbs.iter().map(|verb| format!("{verb} {resource}"));
    needed.collect()
}

#[test]
fn a_request_needs_rights() {
    let pods = "/api/v1/namespaces/n/pods";
    let cases: &[(&str, &[&str])] = &[
        ("POST {}?", &["create pods"]),
        ("GET {}?&watch=true&labelSelector=a", &["watch pods"]),
        ("GET {}?labelSelector=a", &["list pods"]),
        ("GET {}/p", &["get pods"]),
        (
            "GET {}/p/exec?command=a/b",
            &["get pods/exec", "create pods/exec"],
        ),
        ("DELETE {}/p?", &["delete pods"]),
        ("GET /version", &[]),
    ];
    for (request, expected) in cases {
        let request = request.replace("{}", pods);
        assert_eq!(needed(&request), *expected, "{request}");
    }
}

/// Uses every part of the crate.
async fn use_all(place: &Place, cluster: &Cluster) {
    let builder = || place.builder().cluster(cluster.clone());
    assert!(!cluster.info().await.unwrap().version.is_empty());
    for mode in [Mode::Agent, Mode::Portable] {
        let sandbox = builder().mode(mode).build().unwrap();
        sandbox.write_file("a.txt", "one\n").await.unwrap();
        assert_eq!(run(&sandbox, "cat a.txt").await, "one");
        sandbox.stop(StopMode::Keep).await.unwrap();
        assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
        assert!(sandbox.is_alive().await.unwrap());
        purge(&sandbox).await;
    }
    assert_eq!(leftovers(cluster).await.unwrap().len(), 0);
    assert_eq!(reap(cluster).await.unwrap().len(), 0);
    let sandbox = builder().name("box").create().await.unwrap();
    let attached = place.attach("box").cluster(cluster.clone());
    run(&attached.open().await.unwrap(), "true").await;
    let mut changes = pods::watch(cluster, "agentbox.dev/sandbox=box").unwrap();
    let first = within("the first change", changes.next()).await;
    first.unwrap().unwrap();
    let listed = pods::list(cluster, "agentbox.dev/sandbox=box")
        .await
        .unwrap();
    assert_eq!(listed.len(), 1);
    let found = pods::find(cluster, "box").await.unwrap().unwrap();
    let note = BTreeMap::from([("example.com/note".to_owned(), Some("one".to_owned()))]);
    let noted = pods::annotate(cluster, &found, &note).await.unwrap();
    let labelled = pods::label(cluster, &noted, &note).await.unwrap();
    let grace = Duration::ZERO;
    let deleted = pods::delete(cluster, &labelled, grace, Version::Any).await;
    assert!(deleted.unwrap());
    place.gone("box").await;
    drop(sandbox);
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn the_manifest_grants_what_is_needed_and_no_more() {
    let place = Place::new().await;
    relabel(&place).await;
    let (account, rights) = granted(&place).await;
    let client = account::client(&place, &account).await;
    let (client, requests) = observed(&client, &place.namespace);
    let cluster = Cluster::from_client(client, &*place.namespace);
    // The server takes a moment to know them.
    until("the rights", async || {
        pods::list(&cluster, "").await.is_ok()
    })
    .await;
    use_all(&place, &cluster).await;
    let used = requests.take();
    let used: BTreeSet<_> = used.iter().flat_map(|request| needed(request)).collect();
    let unused: Vec<_> = rights.difference(&used).collect();
    assert!(unused.is_empty(), "granted, and never used: {unused:?}");
    // It reads nothing else of the namespace, and nothing of others.
    let client = account::client(&place, &account).await;
    let secrets: Api<Secret> = Api::namespaced(client, &place.namespace);
    let secrets = secrets.list(&ListParams::default()).await;
    assert!(matches!(secrets, Err(kube::Error::Api(status)) if status.code == 403));
    let other = cluster.with_namespace("default");
    fails(ErrorKind::PermissionDenied, pods::find(&other, "box").await);
    place.end().await;
}
