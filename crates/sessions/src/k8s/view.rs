//! [`View`]: the pods of the space, as one watch for the whole process reports them.
//!
//! It saves requests and is no proof, except that a pod whose end was reported is gone: every
//! decision is made by a request that fails if the view was wrong. Where none fails because
//! a pod is missing in it, pods are only taken from it while the watch works.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use backend_core::Result;
use backend_k8s::Cluster;
use backend_k8s::pods::{self, Pod, PodChange};
use futures_util::StreamExt as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::names::SPACE;
use super::{annotations, has_ended};
use crate::id::SessionId;

/// The most pods that are remembered as gone.
const GONE: usize = 65_536;
/// The time for the first report of the watch. Without one, pods are read.
const REPORT_TIMEOUT: Duration = Duration::from_secs(60);

/// The pods by their ids. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct View(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    cluster: Cluster,
    space: String,
    seen: Mutex<Seen>,
    changes: watch::Sender<()>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Seen {
    pods: HashMap<String, Arc<Pod>>,
    gone: HashSet<String>,
    /// Whether the watch has reported anything.
    has_reported: bool,
    /// Whether the watch has listed the pods, and reported changes since, without an error.
    is_current: bool,
}

impl Seen {
    /// Takes over a report of the watch, which goes on after an error: where it was, or with
    /// a list.
    fn report(&mut self, report: Result<PodChange>, space: &str) {
        self.has_reported = true;
        self.is_current = report.is_ok();
        match report {
            Ok(change) => self.change(change, space),
            Err(error) => tracing::debug!("a watch of pods was interrupted: {}", error.chain()),
        }
    }

    fn change(&mut self, change: PodChange, space: &str) {
        let is_ours = |pod: &Arc<Pod>| pod.labels.get(SPACE).is_some_and(|found| found == space);
        match change {
            PodChange::Listed(all) => {
                let all = all.into_iter().filter(is_ours);
                let all = all.map(|pod| (pod.uid.clone(), pod)).collect();
                let former = std::mem::replace(&mut self.pods, all);
                let is_gone = |uid: &String| !self.pods.contains_key(uid);
                self.gone.extend(former.into_keys().filter(is_gone));
            }
            PodChange::Changed(pod) if is_ours(&pod) => {
                self.pods.insert(pod.uid.clone(), pod);
            }
            PodChange::Deleted(pod) if is_ours(&pod) => {
                self.pods.remove(&pod.uid);
                self.gone.insert(pod.uid.clone());
            }
            // One of another space.
            _ => {}
        }
        if self.gone.len() > GONE {
            self.gone.clear();
        }
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task.take() {
            task.abort();
        }
    }
}

impl View {
    pub(super) fn new(cluster: Cluster, space: String) -> Self {
        let (changes, _) = watch::channel(());
        Self(Arc::new(Shared {
            cluster,
            space,
            seen: Mutex::default(),
            changes,
            task: Mutex::default(),
        }))
    }

    /// Begins to watch, unless it does already.
    pub(super) fn begin(&self) {
        let mut task = self.0.task.lock().unwrap_or_else(PoisonError::into_inner);
        // The runtime of an earlier task may have ended.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            *task = Some(tokio::spawn(follow(Arc::downgrade(&self.0))));
        }
    }

    /// Returns a pod as it was reported last.
    pub(super) fn get(&self, uid: &str) -> Option<Pod> {
        let pod = self.0.seen().pods.get(uid).cloned();
        pod.map(Arc::unwrap_or_clone)
    }

    /// Returns all pods as they were reported last, if the watch works.
    pub(super) fn all(&self) -> Option<Vec<Arc<Pod>>> {
        let collect = || self.0.seen().pods.values().map(Arc::clone).collect();
        self.is_current().then(collect)
    }

    /// Waits for the first report of a watch that has begun: all pods, or that it does not
    /// work.
    pub(super) async fn reported(&self) {
        let mut changes = self.0.changes.subscribe();
        let reported =
            async { while !self.0.seen().has_reported && changes.changed().await.is_ok() {} };
        let _ = timeout(REPORT_TIMEOUT, reported).await;
    }

    /// Whether the watch works.
    pub(super) fn is_current(&self) -> bool {
        let task = self.0.task.lock().unwrap_or_else(PoisonError::into_inner);
        let is_running = task.as_ref().is_some_and(|task| !task.is_finished());
        drop(task);
        is_running && self.0.seen().is_current
    }

    /// Whether a session is known to have a pod.
    pub(super) fn has_session(&self, id: &SessionId) -> bool {
        let seen = self.0.seen();
        let is_its = |pod: &Arc<Pod>| annotations::is_of(&pod.annotations, id);
        seen.pods.values().any(is_its)
    }

    /// Whether a pod is known to be gone, to have ended, or to be out of reach.
    pub(super) fn has_lost(&self, uid: &str) -> bool {
        let seen = self.0.seen();
        let is_lost = |pod: &Arc<Pod>| pod.deleting || pod.lost || has_ended(pod);
        seen.gone.contains(uid) || seen.pods.get(uid).is_some_and(is_lost)
    }

    /// Whether a pod was reported, also as one that is gone.
    pub(super) fn knows(&self, uid: &str) -> bool {
        let seen = self.0.seen();
        seen.pods.contains_key(uid) || seen.gone.contains(uid)
    }

    /// Waits until a pod is known to be gone, which is never if nothing is watched.
    pub(super) async fn gone(&self, uid: &str) {
        let mut changes = self.0.changes.subscribe();
        while !self.0.seen().gone.contains(uid) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

async fn follow(shared: Weak<Shared>) {
    let watched = shared
        .upgrade()
        .map(|shared| pods::watch(&shared.cluster, pods::SANDBOXES));
    let mut changes = match watched {
        Some(Ok(changes)) => changes,
        Some(Err(error)) => {
            tracing::warn!("pods cannot be watched: {}", error.chain());
            if let Some(shared) = shared.upgrade() {
                shared.seen().report(Err(error), &shared.space);
                shared.changes.send_replace(());
            }
            return;
        }
        None => return,
    };
    while let Some(change) = changes.next().await {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        shared.seen().report(change, &shared.space);
        shared.changes.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use backend_core::Error;

    use super::*;

    #[test]
    fn pods_are_current_while_the_watch_works() {
        let mut seen = Seen::default();
        assert!(!seen.is_current, "nothing was reported");
        seen.report(Ok(PodChange::Listed(Vec::new())), "default");
        assert!(seen.is_current);
        seen.report(Err(Error::unavailable("it was closed")), "default");
        assert!(!seen.is_current);
        seen.report(Ok(PodChange::Listed(Vec::new())), "default");
        assert!(seen.is_current, "it works again");
    }
}
