//! Following one object: its versions as the cluster reports them.

use std::pin::pin;

use backend_core::Result;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use kube::Api;
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use sandbox_wire::engine;
use tokio::sync::mpsc;

use super::{Kind, Object, checked};
use crate::cluster::Cluster;

/// Versions that wait to be read.
const WAITING: usize = 16;
/// Seconds after which the cluster ends the watch.
const WATCH_SECONDS: u32 = 290;

/// A later version of an object, or `None` if it no longer exists.
type Change = Result<Option<Object>>;

/// Follows an object from the version that was read: later versions are items of the stream,
/// and `None` if it no longer exists.
///
/// The stream ends after an error, and after a few minutes. Then the object is to be read
/// again.
///
/// # Errors
///
/// `Config` if the namespace is no name; `Unavailable` if no thread can be started.
pub fn follow(
    cluster: &Cluster,
    kind: &Kind,
    object: &Object,
) -> Result<BoxStream<'static, Change>> {
    let (name, version) = (checked(&object.name)?, object.resource_version.clone());
    let (cluster, api) = (cluster.clone(), kind.of(cluster)?);
    let (send, mut changes) = mpsc::channel(WAITING);
    engine::handle()?.spawn(async move {
        tokio::select! {
            () = report(&cluster, &api, &name, &version, &send) => {}
            () = send.closed() => {}
        }
    });
    Ok(stream::poll_fn(move |context| changes.poll_recv(context)).boxed())
}

/// Reports the versions of an object until it has ended, or an error.
async fn report(
    cluster: &Cluster,
    api: &Api<DynamicObject>,
    name: &str,
    version: &str,
    send: &mpsc::Sender<Change>,
) {
    let parameters = WatchParams::default()
        .fields(&format!("metadata.name={name}"))
        .timeout(WATCH_SECONDS);
    let refused = |error| cluster.error(error).on("k8s");
    let events = match api.watch(&parameters, version).await {
        Ok(events) => events,
        Err(error) => {
            let _ = send.send(Err(refused(error))).await;
            return;
        }
    };
    let mut events = pin!(events);
    while let Some(event) = events.next().await {
        let change = match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                Ok(Some(Object::new(object)))
            }
            Ok(WatchEvent::Deleted(_)) => Ok(None),
            Ok(WatchEvent::Bookmark(_)) => continue,
            Ok(WatchEvent::Error(status)) => Err(refused(kube::Error::Api(status))),
            Err(error) => Err(refused(error)),
        };
        let is_last = !matches!(change, Ok(Some(_)));
        if send.send(change).await.is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use backend_core::ErrorKind;
    use backend_core::sync::lock;
    use serde_json::{Value, json};

    use super::*;
    use crate::pods::tests::{Answer, cluster_of};

    fn lease(version: &str) -> Value {
        let metadata = json!({"name": "turn", "uid": "u", "resourceVersion": version});
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata})
    }

    fn seen() -> Object {
        Object::new(serde_json::from_value(lease("7")).unwrap())
    }

    #[tokio::test]
    async fn an_object_is_followed_to_its_end() {
        let event = |kind: &str, version: &str| json!({"type": kind, "object": lease(version)});
        let events = [
            event("MODIFIED", "8"),
            event("BOOKMARK", "9"),
            event("DELETED", "10"),
            event("ADDED", "11"),
        ];
        let (cluster, requests) = cluster_of(move |_| Answer::Events(events.to_vec()));
        let changes = follow(&cluster, &Kind::lease(), &seen()).unwrap();
        let versions = changes.map(|change| change.unwrap().map(|object| object.resource_version));
        let versions: Vec<_> = versions.collect().await;
        assert_eq!(versions, [Some("8".to_owned()), None]);
        let asked = &lock(&requests)[0].target;
        for part in [
            "/leases?",
            "watch=true",
            "metadata.name%3Dturn",
            "resourceVersion=7",
        ] {
            assert!(asked.contains(part), "{asked}");
        }
    }

    #[tokio::test]
    async fn a_refusal_is_told_once() {
        let expired = json!({"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "code": 410}});
        let (early, _) = cluster_of(|_| Answer::Refused(403));
        let (late, _) = cluster_of(move |_| Answer::Events(vec![expired.clone()]));
        for (cluster, kind) in [
            (early, ErrorKind::PermissionDenied),
            (late, ErrorKind::Unavailable),
        ] {
            let changes = follow(&cluster, &Kind::lease(), &seen()).unwrap();
            let changes: Vec<_> = changes.collect().await;
            let kinds = changes.into_iter().map(|change| change.unwrap_err().kind());
            assert_eq!(kinds.collect::<Vec<_>>(), [kind]);
        }
    }
}
