//! Sessions in a cluster that is played by a function, in which others have written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use backend_core::{Error, ErrorKind};
use backend_k8s::{Cluster, K8sSandbox, Mode, Runtime};
use kube::client::{Body, Client};
use serde_json::{Value, json};

use super::names::{Names, SESSION, SPACE, SPARE};
use super::*;
use crate::request::OpenRequest;

/// The objects by the name of their kind and their own.
type Objects = BTreeMap<(String, String), Value>;

/// A cluster, and the requests that change something.
#[derive(Default)]
struct World {
    objects: Objects,
    changes: Vec<String>,
    /// Whether each look at a pod finds another one of its name.
    is_replaced: bool,
}

impl World {
    fn put(&mut self, kind: &str, name: &str, metadata: Value) -> &mut Value {
        let key = (kind.to_owned(), name.to_owned());
        let mut object = json!({"metadata": metadata});
        object["metadata"]["name"] = name.into();
        object["metadata"]["uid"] = format!("uid-{name}").into();
        object["metadata"]["resourceVersion"] = "1".into();
        object["metadata"]["creationTimestamp"] = "2026-01-02T03:04:05Z".into();
        if kind == "pods" {
            object["spec"] = json!({"containers": [{"name": "sandbox"}]});
            object["status"] = json!({"phase": "Running"});
        }
        self.objects.insert(key.clone(), object);
        self.objects.get_mut(&key).unwrap()
    }

    fn has(&self, kind: &str, name: &str) -> bool {
        let key = (kind.to_owned(), name.to_owned());
        self.objects.contains_key(&key)
    }

    fn answer(&mut self, method: &str, target: &str) -> (u16, Value) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (_, path) = path.split_once("/namespaces/work/").unwrap();
        let (kind, name) = path.split_once('/').unwrap_or((path, ""));
        let key = (kind.to_owned(), name.to_owned());
        if method != "GET" {
            self.changes.push(format!("{method} {path}"));
        }
        match (method, name) {
            ("GET", "") => {
                let of_kind = |((other, _), _): &(&(String, String), &Value)| other == kind;
                let all = self.objects.iter().filter(of_kind);
                let all = all.map(|(_, object)| object).filter(|object| {
                    // The label of a session is that part of a selector which matters here.
                    let asked = query.split("session%3D").nth(1);
                    let asked = asked.and_then(|asked| asked.split('&').next());
                    asked.is_none_or(|asked| object["metadata"]["labels"][SESSION] == asked)
                });
                let items: Vec<_> = all.cloned().collect();
                (
                    200,
                    json!({"metadata": {"resourceVersion": "1"}, "items": items}),
                )
            }
            ("POST", "") => (409, json!(null)),
            ("GET", _) => match self.objects.get_mut(&key) {
                Some(object) => {
                    let found = object.clone();
                    if kind == "pods" && self.is_replaced {
                        object["metadata"]["uid"] = "uid-of-another".into();
                    }
                    (200, found)
                }
                None => (404, json!(null)),
            },
            ("DELETE", _) => match self.objects.remove(&key) {
                Some(object) => (200, object),
                None => (404, json!(null)),
            },
            _ => (400, json!(null)),
        }
    }
}

type Shared = Arc<Mutex<World>>;

fn cluster_of(world: &Shared) -> Cluster {
    let world = Arc::clone(world);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let world = Arc::clone(&world);
        async move {
            let target = request.uri().to_string();
            if target.contains("watch=true") {
                return std::future::pending().await;
            }
            let (code, mut body) = world
                .lock()
                .unwrap()
                .answer(request.method().as_str(), &target);
            if code >= 400 {
                let reason = if code == 409 { "AlreadyExists" } else { "" };
                body =
                    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason});
            }
            let answer = http::Response::builder().status(code);
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(
                answer.body(Body::from(body.to_string().into_bytes()))?,
            )
        }
    });
    Cluster::from_client(Client::new(service, "default"), "work")
}

/// Returns an engine with volumes, and its cluster.
fn engine() -> (K8sEngine, Shared) {
    let world = Shared::default();
    let engine = K8sEngine::builder(cluster_of(&world))
        .runtime(Runtime::from_image("image", "image:1"))
        .template(
            K8sSandbox::builder()
                .mode(Mode::Portable)
                .reap_leftovers(false),
        )
        .volumes(1024);
    (engine.build().unwrap(), world)
}

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn names() -> Names {
    Names::new("default").unwrap()
}

/// The metadata of a session's pod, which has this volume.
fn metadata(session: &str, volume: &str) -> Value {
    let request = OpenRequest::new(id(session));
    let annotations = annotations::of(&Record::new(&request, SystemTime::now())).unwrap();
    let mut metadata = json!({"annotations": annotations});
    metadata["annotations"][annotations::VOLUME] = volume.into();
    metadata["labels"] = json!({
        SPACE: "default",
        "app.kubernetes.io/managed-by": "agentbox",
        "agentbox.dev/sandbox": names().session(&id(session)),
    });
    metadata
}

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error: Error| error.kind())
}

#[tokio::test]
async fn a_lease_does_not_make_a_pod_one_of_ours() {
    let alice = names().session(&id("alice"));
    let spare = json!({SPACE: "default", SPARE: "x"});
    let mut bob = metadata("bob", "files");
    bob["labels"] = spare.clone();
    let elsewhere = json!({"labels": {SPACE: "other", SPARE: "x"}});
    for (pod, metadata) in [("database", json!({})), ("bob", bob), ("other", elsewhere)] {
        let (engine, world) = engine();
        world.lock().unwrap().put("pods", pod, metadata);
        let owner =
            json!({"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": format!("uid-{pod}")});
        let lease = json!({"ownerReferences": [owner]});
        world.lock().unwrap().put("leases", &alice, lease)["spec"]["holderIdentity"] = pod.into();
        let found = engine.attach(&id("alice")).await;
        assert_eq!(kind(found), Some(ErrorKind::Conflict), "{pod}");
        assert_eq!(
            kind(engine.purge(&id("alice")).await),
            Some(ErrorKind::Conflict)
        );
        let world = world.lock().unwrap();
        assert!(world.has("pods", pod));
        assert_eq!(world.changes, [""; 0]);
    }
}

#[tokio::test]
async fn an_annotation_does_not_make_a_claim_one_of_the_session() {
    let alice = names().session(&id("alice"));
    let of_bob = json!({"labels": {SPACE: "default", SESSION: names().key(&id("bob"))}});
    let elsewhere = json!({"labels": {SPACE: "other"}});
    for (is_purged, labels) in [
        (true, json!({})),
        (true, of_bob.clone()),
        (true, elsewhere),
        (false, json!({})),
        (false, of_bob),
    ] {
        let (engine, world) = engine();
        world
            .lock()
            .unwrap()
            .put("persistentvolumeclaims", "files", labels.clone());
        world
            .lock()
            .unwrap()
            .put("pods", &alice, metadata("alice", "files"));
        let ended = match is_purged {
            true => engine.purge(&id("alice")).await,
            false => engine.stop(&id("alice")).await,
        };
        assert!(ended.unwrap());
        let world = world.lock().unwrap();
        assert!(world.has("persistentvolumeclaims", "files"), "{labels}");
        assert_eq!(world.changes, [format!("DELETE pods/{alice}")], "{labels}");
    }
    let (engine, world) = engine();
    let own = json!({"labels": {SPACE: "default", SESSION: names().key(&id("alice"))}});
    world
        .lock()
        .unwrap()
        .put("persistentvolumeclaims", "files", own);
    world
        .lock()
        .unwrap()
        .put("pods", &alice, metadata("alice", "files"));
    assert!(engine.purge(&id("alice")).await.unwrap());
    assert!(
        world.lock().unwrap().objects.is_empty(),
        "its own is deleted"
    );
}

#[tokio::test]
async fn a_claim_of_others_is_not_used_for_a_session() {
    let alice = names().session(&id("alice"));
    let of_bob = json!({"labels": {SPACE: "default", SESSION: names().key(&id("bob"))}});
    for labels in [json!({}), json!({"labels": {SPACE: "other"}}), of_bob] {
        let (engine, world) = engine();
        world
            .lock()
            .unwrap()
            .put("persistentvolumeclaims", &alice, labels.clone());
        let claimed = engine.claim(&OpenRequest::new(id("alice"))).await;
        assert_eq!(kind(claimed), Some(ErrorKind::Conflict), "{labels}");
        let world = world.lock().unwrap();
        assert_eq!(world.changes, ["POST persistentvolumeclaims"], "{labels}");
    }
}

#[tokio::test]
async fn a_pod_that_was_replaced_meanwhile_is_not_handed_out() {
    let alice = names().session(&id("alice"));
    let (engine, world) = engine();
    world
        .lock()
        .unwrap()
        .put("pods", &alice, metadata("alice", ""));
    assert!(engine.attach(&id("alice")).await.unwrap().is_some());
    let (engine, world) = self::engine();
    world
        .lock()
        .unwrap()
        .put("pods", &alice, metadata("alice", ""));
    world.lock().unwrap().is_replaced = true;
    assert!(engine.attach(&id("alice")).await.unwrap().is_none());
}
