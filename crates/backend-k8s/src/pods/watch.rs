//! One watch for each selector, however many parts of a process wait for changes.
//!
//! A task on the engine lists the pods once, follows the cluster's watch, and resumes it
//! where it ended. It ends a while after its last listener.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Result};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use k8s_openapi::api::core::v1::Pod as Object;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use sandbox_wire::engine;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep, timeout};

use super::{Pod, list_now};
use crate::cluster::{Cluster, status};

/// Changes that wait for a slow listener. One that misses some gets the whole list.
const WAITING: usize = 1024;
/// Seconds after which the cluster ends a watch.
const WATCH_SECONDS: u32 = 290;
/// The time without any event after which a watch is begun again.
const SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 10);
/// A watch that ended sooner did not work.
const SHORT: Duration = Duration::from_secs(1);
/// The time that a watch goes on without a listener: the next one often comes soon.
const LINGER: Duration = if cfg!(test) {
    Duration::ZERO
} else {
    Duration::from_secs(30)
};
/// The pauses after failures.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// A change of the pods that are watched.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PodChange {
    /// All pods that there are. The first item is one, and another comes when changes may
    /// have been missed.
    Listed(Vec<Arc<Pod>>),
    /// A pod was created or changed.
    Changed(Arc<Pod>),
    /// A pod no longer exists.
    Deleted(Arc<Pod>),
}

/// Watches the pods that a label selector matches, in the namespace of the cluster.
///
/// A watch that ends is resumed. Errors are items of the stream, which goes on: a
/// listener that gives up drops it. All streams of a cluster and its clones with the same
/// namespace and selector share one request.
///
/// # Errors
///
/// `Config` if the namespace is no name; `Unavailable` if no thread can be started.
pub fn watch(cluster: &Cluster, selector: &str) -> Result<BoxStream<'static, Result<PodChange>>> {
    cluster.check_namespace()?;
    let handle = engine::handle()?;
    let key = (
        cluster.id(),
        cluster.namespace().to_owned(),
        selector.to_owned(),
    );
    let mut hubs = lock(&HUBS);
    let hub = hubs.entry(key.clone()).or_insert_with(|| {
        let hub = Arc::new(Hub::new(cluster.clone(), selector.to_owned()));
        handle.spawn(follow(Arc::clone(&hub), key));
        hub
    });
    let listener = Listener::new(Arc::clone(hub));
    Ok(stream::unfold(listener, Listener::next).boxed())
}

/// A cluster, a namespace and a selector.
type Key = (usize, String, String);

/// The watches of this process. The key of a cluster stays its own while a hub holds it.
static HUBS: Mutex<BTreeMap<Key, Arc<Hub>>> = Mutex::new(BTreeMap::new());

/// A watch and its listeners.
#[derive(Debug)]
struct Hub {
    cluster: Cluster,
    selector: String,
    /// The pods by name, once they were listed. Held while a change is announced, so that
    /// a new listener misses none and gets none twice.
    pods: Mutex<Option<BTreeMap<String, Arc<Pod>>>>,
    changes: broadcast::Sender<Announced>,
}

/// A change for all listeners.
#[derive(Debug, Clone)]
enum Announced {
    Change(PodChange),
    Failed(ErrorKind, String),
}

impl Hub {
    fn new(cluster: Cluster, selector: String) -> Self {
        Self {
            cluster,
            selector,
            pods: Mutex::default(),
            changes: broadcast::Sender::new(WAITING),
        }
    }

    fn announce(&self, change: Announced) {
        // There may be no listener at the moment.
        let _ = self.changes.send(change);
    }

    fn fail(&self, error: &Error) {
        let message = error.chain().to_string();
        self.announce(Announced::Failed(error.kind(), message));
    }

    /// Lists the pods. Returns the version to watch from.
    async fn list(&self) -> Result<String> {
        let (objects, version) = list_now(&self.cluster, &self.selector).await?;
        let pods = objects.into_iter().filter_map(Pod::of).map(Arc::new);
        let mut known = lock(&self.pods);
        let found: BTreeMap<_, _> = pods.map(|pod| (pod.name.clone(), pod)).collect();
        let all = found.values().map(Arc::clone).collect();
        *known = Some(found);
        self.announce(Announced::Change(PodChange::Listed(all)));
        Ok(version)
    }

    /// Announces changes until the watch ends, and keeps the version of the last one.
    async fn watch(&self, version: &mut String) -> Result<(), kube::Error> {
        let Ok(api): Result<Api<Object>> = self.cluster.api() else {
            return Ok(());
        };
        let parameters = WatchParams::default()
            .labels(&self.selector)
            .timeout(WATCH_SECONDS);
        let mut events = pin!(api.watch(&parameters, version).await?);
        while let Ok(Some(event)) = timeout(SILENCE, events.next()).await {
            match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    self.apply(object, version, PodChange::Changed);
                }
                WatchEvent::Deleted(object) => self.apply(object, version, PodChange::Deleted),
                WatchEvent::Bookmark(mark) => *version = mark.metadata.resource_version,
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            }
        }
        Ok(())
    }

    fn apply(
        &self,
        object: Object,
        version: &mut String,
        change: impl FnOnce(Arc<Pod>) -> PodChange,
    ) {
        let Some(pod) = Pod::of(object).map(Arc::new) else {
            return;
        };
        version.clone_from(&pod.resource_version);
        let mut known = lock(&self.pods);
        let change = change(Arc::clone(&pod));
        if let Some(pods) = &mut *known {
            match change {
                PodChange::Deleted(_) => pods.remove(&pod.name),
                _ => pods.insert(pod.name.clone(), pod),
            };
        }
        self.announce(Announced::Change(change));
    }
}

/// Follows a watch until it has no listeners.
async fn follow(hub: Arc<Hub>, key: Key) {
    loop {
        tokio::select! {
            () = keep_watching(&hub) => {}
            () = unused(&hub) => {}
        }
        // No listener is added while this is held.
        let mut hubs = lock(&HUBS);
        if hub.changes.receiver_count() == 0 {
            hubs.remove(&key);
            return;
        }
    }
}

/// Waits until there was no listener for a while.
async fn unused(hub: &Hub) {
    loop {
        hub.changes.closed().await;
        sleep(LINGER).await;
        if hub.changes.receiver_count() == 0 {
            return;
        }
    }
}

/// Lists and watches for ever.
async fn keep_watching(hub: &Hub) {
    let mut version: Option<String> = None;
    let mut failures = 0;
    loop {
        let mut from = match version.take() {
            Some(version) => version,
            None => match hub.list().await {
                Ok(version) => version,
                Err(error) => {
                    hub.fail(&error);
                    failures += 1;
                    sleep(pause(failures)).await;
                    continue;
                }
            },
        };
        let (began, first) = (Instant::now(), from.clone());
        let ended = hub.watch(&mut from).await;
        if from != first || began.elapsed() >= SHORT {
            failures = 0;
        } else {
            failures += 1;
        }
        match ended {
            Ok(()) => version = Some(from),
            // The cluster no longer knows the version: everything is listed again.
            Err(error) if status(&error) == Some(410) => {}
            Err(error) => {
                hub.fail(&hub.cluster.error(error));
                failures = failures.max(1);
                version = (failures == 1).then_some(from);
            }
        }
        if failures > 0 {
            sleep(pause(failures)).await;
        }
    }
}

/// The pause after a number of failures in a row. It differs, so that the processes of a
/// cluster do not all come back to it at once.
fn pause(failures: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << failures.min(10));
    doubled.min(LAST_PAUSE).mul_f64(0.5 + fastrand::f64())
}

/// One stream of changes.
#[derive(Debug)]
struct Listener {
    hub: Arc<Hub>,
    changes: broadcast::Receiver<Announced>,
    /// The pods that were known when it began, or after it missed changes.
    first: Option<Vec<Arc<Pod>>>,
}

impl Listener {
    fn new(hub: Arc<Hub>) -> Self {
        let known = lock(&hub.pods);
        let changes = hub.changes.subscribe();
        let first = known.as_ref().map(|pods| pods.values().cloned().collect());
        drop(known);
        Self {
            hub,
            changes,
            first,
        }
    }

    async fn next(mut self) -> Option<(Result<PodChange>, Self)> {
        loop {
            if let Some(first) = self.first.take() {
                return Some((Ok(PodChange::Listed(first)), self));
            }
            match self.changes.recv().await {
                Ok(Announced::Change(change)) => return Some((Ok(change), self)),
                Ok(Announced::Failed(kind, message)) => {
                    let error = Error::new(kind, message).on("k8s");
                    return Some((Err(error), self));
                }
                Err(RecvError::Lagged(_)) => self = Self::new(Arc::clone(&self.hub)),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests;
