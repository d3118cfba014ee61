//! Pods of a cluster that is played by a function.

use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use backend_core::sync::lock;
use kube::client::{Body, Client};
use tower::BoxError;

use super::*;

/// The answer to a request.
pub(crate) enum Answer {
    Json(Value),
    /// A refusal with a status code.
    Refused(u16),
    /// The events of a watch that ends after them.
    Events(Vec<Value>),
    Never,
    /// None: the connection ends.
    Lost,
}

/// A request: its method, its path and query, and its body.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) body: Value,
}

/// Returns a cluster that a function plays, and the requests that were made.
pub(crate) fn cluster_of(
    answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> (Cluster, Arc<Mutex<Vec<Asked>>>) {
    let requests: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let (log, answer) = (Arc::clone(&requests), Arc::new(answer));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let asked = Asked {
                method: parts.method.to_string(),
                target: parts.uri.to_string(),
                body: serde_json::from_slice(&body).unwrap_or_default(),
            };
            lock(&log).push(asked.clone());
            let (code, body) = match answer(&asked) {
                Answer::Json(value) => (200, value.to_string()),
                Answer::Refused(code) => {
                    let status = json!({"kind": "Status", "status": "Failure", "code": code});
                    (code, status.to_string())
                }
                Answer::Events(events) => {
                    let lines = events.iter().map(|event| format!("{event}\n"));
                    (200, lines.collect())
                }
                Answer::Never => futures::future::pending().await,
                Answer::Lost => return Err("the connection was lost".into()),
            };
            let answer = http::Response::builder().status(code);
            Ok::<_, BoxError>(answer.body(Body::from(body.into_bytes()))?)
        }
    });
    let client = Client::new(service, "default");
    (Cluster::from_client(client, "work"), requests)
}

/// The description of a running pod.
pub(crate) fn object(name: &str, version: u64) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"example.com/team": "red"}, "annotations": {"example.com/note": "x"},
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": CONTAINER, "image": "image"}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": "other", "image": "", "imageID": "", "ready": false, "restartCount": 9},
                {"name": CONTAINER, "image": "", "imageID": "", "ready": true, "restartCount": 2},
            ],
        },
    })
}

pub(crate) fn pod(name: &str, version: u64) -> Pod {
    Pod::of(serde_json::from_value(object(name, version)).unwrap()).unwrap()
}

#[test]
fn a_description_is_read() {
    let pod = pod("box", 7);
    assert_eq!((&*pod.name, &*pod.uid), ("box", "uid-box"));
    assert_eq!(pod.resource_version, "7");
    assert_eq!(pod.phase, PodPhase::Running);
    assert!(pod.ready && !pod.lost && !pod.deleting);
    let created = UNIX_EPOCH + Duration::from_secs(1_767_323_045);
    assert_eq!(pod.created, created);
    assert_eq!(pod.node.as_deref(), Some("node-1"));
    assert_eq!((pod.restart_count, pod.reason.as_deref()), (2, None));
    assert_eq!(pod.labels["example.com/team"], "red");
    assert!(!pod.is_abandoned());
}

#[test]
fn the_reason_is_that_of_the_pod_or_else_of_its_container() {
    let reason = |status: Value| {
        let mut object = object("box", 1);
        object["status"] = status;
        Pod::of(serde_json::from_value(object).unwrap())
            .unwrap()
            .reason
    };
    let container = |state: Value, last: Value| {
        json!({"phase": "Pending", "containerStatuses": [{
            "name": CONTAINER, "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": state, "lastState": last,
        }]})
    };
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff"}});
    let ended = json!({"terminated": {"reason": "OOMKilled", "exitCode": 137}});
    let running = json!({"running": {}});
    for (status, expected) in [
        (
            json!({"phase": "Failed", "reason": "Evicted"}),
            Some("Evicted"),
        ),
        (container(waiting, ended.clone()), Some("ImagePullBackOff")),
        (container(ended.clone(), json!({})), Some("OOMKilled")),
        (container(running.clone(), ended), Some("OOMKilled")),
        (container(running, json!({})), None),
        (json!({}), None),
    ] {
        assert_eq!(reason(status).as_deref(), expected);
    }
}

#[test]
fn a_pod_whose_container_is_ready_and_that_is_not_is_on_a_lost_node() {
    let mut object = object("box", 1);
    object["status"]["containerStatuses"][1]["state"] = json!({"running": {}});
    for (ready, is_lost) in [("True", false), ("False", true)] {
        object["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
        let pod = Pod::of(serde_json::from_value(object.clone()).unwrap()).unwrap();
        assert!(pod.ready);
        assert_eq!(pod.lost, is_lost);
    }
}

#[test]
fn descriptions_of_no_pod_are_passed_over() {
    assert_eq!(Pod::of(Object::default()), None);
    for (phase, expected) in [
        (None, PodPhase::Pending),
        (Some("Failed"), PodPhase::Failed),
        (Some("Succeeded"), PodPhase::Succeeded),
        (Some("Strange"), PodPhase::Unknown),
    ] {
        assert_eq!(PodPhase::of(phase), expected);
    }
}

#[tokio::test]
async fn a_list_has_pages() {
    let (cluster, requests) = cluster_of(|asked| {
        let (name, next) = match asked.target.contains("continue=second") {
            true => ("b", ""),
            false => ("a", "second"),
        };
        Answer::Json(json!({
            "apiVersion": "v1", "kind": "PodList",
            "metadata": {"resourceVersion": "9", "continue": next}, "items": [object(name, 1)],
        }))
    });
    let pods = list(&cluster, "a=b,c").await.unwrap();
    let names: Vec<_> = pods.iter().map(|pod| &*pod.name).collect();
    assert_eq!(names, ["a", "b"]);
    let first = &lock(&requests)[0].target;
    assert!(
        first.starts_with("/api/v1/namespaces/work/pods?"),
        "{first}"
    );
    assert!(first.contains("labelSelector=a%3Db%2Cc"), "{first}");
}

#[tokio::test]
async fn a_pod_is_found_by_its_name() {
    let (cluster, _) = cluster_of(|asked| match asked.target.ends_with("/pods/box") {
        true => Answer::Json(object("box", 3)),
        false => Answer::Refused(404),
    });
    assert_eq!(find(&cluster, "box").await.unwrap(), Some(pod("box", 3)));
    assert_eq!(find(&cluster, "none").await.unwrap(), None);
    let error = find(&cluster, "../secrets/x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[tokio::test]
async fn changes_are_made_only_to_what_was_read() {
    let (cluster, requests) = cluster_of(|asked| match &asked.body["metadata"]["uid"] {
        uid if uid == "uid-box" => Answer::Json(object("box", 8)),
        uid if uid == "uid-old" => Answer::Refused(409),
        _ => Answer::Refused(404),
    });
    let changes = BTreeMap::from([
        ("example.com/a".to_owned(), Some("1".to_owned())),
        ("example.com/b".to_owned(), None),
    ]);
    let changed = annotate(&cluster, &pod("box", 7), &changes).await.unwrap();
    assert_eq!(changed.resource_version, "8");
    label(&cluster, &pod("box", 7), &changes).await.unwrap();
    for (name, kind) in [("old", ErrorKind::Conflict), ("gone", ErrorKind::NotFound)] {
        let error = annotate(&cluster, &pod(name, 7), &changes).await;
        assert_eq!(error.unwrap_err().kind(), kind);
    }
    let requests = lock(&requests);
    assert_eq!(requests[0].method, "PATCH");
    let metadata = |field: &str| {
        json!({"metadata": {
            "uid": "uid-box", "resourceVersion": "7",
            field: {"example.com/a": "1", "example.com/b": null},
        }})
    };
    assert_eq!(requests[0].body, metadata("annotations"));
    assert_eq!(requests[1].body, metadata("labels"));
}

#[tokio::test]
async fn only_the_pod_that_was_read_is_deleted() {
    let (cluster, requests) = cluster_of(|asked| {
        let is_delete = asked.method == "DELETE";
        match asked
            .target
            .rsplit('/')
            .next()
            .unwrap()
            .trim_end_matches('?')
        {
            "box" => Answer::Json(object("box", 8)),
            "changed" if is_delete => Answer::Refused(409),
            "changed" => Answer::Json(object("changed", 8)),
            "replaced" if is_delete => Answer::Refused(409),
            "replaced" => Answer::Json(object("another", 8)),
            _ => Answer::Refused(404),
        }
    });
    let delete = |name: &str| {
        let (cluster, pod) = (cluster.clone(), pod(name, 7));
        async move { delete(&cluster, &pod, Duration::from_millis(1500), Version::Read).await }
    };
    assert!(delete("box").await.unwrap());
    assert!(!delete("gone").await.unwrap());
    assert!(!delete("replaced").await.unwrap());
    let error = delete("changed").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let expected = json!({
        "gracePeriodSeconds": 2,
        "preconditions": {"uid": "uid-box", "resourceVersion": "7"},
    });
    assert_eq!(lock(&requests)[0].body, expected);
}
