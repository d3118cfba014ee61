//! Which pod is that of a session.
//!
//! The pod that the lease of the session's name is on. Names are unique, so creating that lease
//! is the lock between processes, whether the pod was made before its session or for it.
//!
//! - A pod that was made before is marked as that of the session while the lease is created.
//!   The marks alone mean nothing: a process that cannot create the lease takes them off.
//! - A pod that is made for its session has the session's name, and marks from the start, so
//!   that two processes do not make two. It is leased when it runs. A process that then finds
//!   another lease deletes its pod.
//! - A process that finds such a pod without a lease creates the lease for it before it uses
//!   the pod: the process that made the pod may have been killed.
//!
//! A process may be killed when its lease is on a pod that has no marks yet. Then the pod is
//! deleted after a while, in a change that fails if it has become the session's. If it is killed
//! when the pod has marks and there is no lease yet, the session is free, and the reaper deletes
//! the pod.

use std::time::{Duration, Instant};

use backend_core::{Error, ErrorKind, Result};
use backend_k8s::pods::objects::{self, Draft, Kind, Object};
use backend_k8s::pods::{self, Pod, Version};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::annotations::{self, Annotations};
use super::{K8sEngine, TRIES, has_ended, names};
use crate::error::contended;
use crate::id::SessionId;
use crate::record::{Record, RecordState};

/// The pause before objects that are changing are looked at again.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The time in which a process completes the claim of a pod that is ready. It takes a hundredth
/// of this, unless the process was killed.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(3);
/// The pause before a pod that is ending is asked for again: while its end would be reported,
/// and while nothing is watched.
const WATCHED_INTERVAL: Duration = Duration::from_secs(10);
const UNWATCHED_INTERVAL: Duration = Duration::from_millis(500);
/// The time in which a pod ends after its grace.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// The changes of annotations: `None` removes one.
pub(super) type Changes = std::collections::BTreeMap<String, Option<String>>;

/// A session as the cluster has it.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) pod: Pod,
    /// The lock. A pod that was made for the session has none yet, or its process was killed.
    pub(super) lease: Option<Object>,
}

impl Held {
    pub(super) fn record(&self, id: &SessionId) -> Record {
        record(&self.pod, id)
    }
}

/// Returns the record of a session with a pod.
pub(super) fn record(pod: &Pod, id: &SessionId) -> Record {
    let state = if has_ended(pod) {
        RecordState::Stopped
    } else {
        RecordState::Running
    };
    annotations::record(&pod.annotations, id, pod.created, state)
}

/// The answer to one look at a session.
enum Look {
    Held(Box<Held>),
    Nothing,
    /// Another process is in the middle of a claim.
    Unclear,
}

impl K8sEngine {
    /// Finds the pod of a session. One that is being deleted is waited for.
    pub(super) async fn find(&self, id: &SessionId) -> Result<Option<Held>> {
        let begun = Instant::now();
        while begun.elapsed() < self.0.pods.grace + END_TIMEOUT {
            match self.look(id, begun.elapsed() > CLAIM_TIMEOUT).await? {
                Look::Nothing => return Ok(None),
                Look::Unclear => sleep(POLL_INTERVAL).await,
                Look::Held(held) if held.pod.deleting => self.gone(&held.pod).await?,
                Look::Held(held) if !annotations::is_of(&held.pod.annotations, id) => {
                    return Err(foreign(&held.pod).about(id));
                }
                Look::Held(held) => return Ok(Some(*held)),
            }
        }
        Err(contended(id))
    }

    /// Finds the pod of a session that is about to be used: one with the lease.
    pub(super) async fn find_leased(&self, id: &SessionId) -> Result<Option<Held>> {
        for _ in 0..TRIES {
            let Some(mut held) = self.find(id).await? else {
                return Ok(None);
            };
            if held.lease.is_none() {
                held.lease = self.lease(id, &held.pod).await?;
            }
            if held.lease.is_some() {
                return Ok(Some(held));
            }
        }
        Err(contended(id))
    }

    /// Creates the lease of a session on a pod. `None` if there is one.
    pub(super) async fn lease(&self, id: &SessionId, pod: &Pod) -> Result<Option<Object>> {
        let pods = &self.0.pods;
        let holder = json!({"spec": {"holderIdentity": pod.name}});
        let draft = Draft::new(pods.names.session(id), holder)
            .label(names::SPACE, pods.names.space())
            .owned_by_pod(pod);
        match objects::create(&pods.cluster, &Kind::lease(), draft).await {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            created => created.map(Some),
        }
    }

    /// Looks once. If it is late, a claim in the middle is taken for one of a killed process.
    async fn look(&self, id: &SessionId, is_late: bool) -> Result<Look> {
        let pods = &self.0.pods;
        let (cluster, name, kind) = (&pods.cluster, pods.names.session(id), Kind::lease());
        // Both at once: whether there is a lease decides.
        let (own, lease) = tokio::try_join!(
            pods::find(cluster, &name),
            objects::find(cluster, &kind, &name)
        )?;
        let Some(lease) = lease else {
            let held = own.map(|pod| Look::Held(Box::new(Held { pod, lease: None })));
            return Ok(held.unwrap_or(Look::Nothing));
        };
        // Most leases are on a pod of their name.
        let own = own.filter(|own| lease.owners.contains(&own.uid));
        let leased = match own {
            Some(own) => Some(own),
            None => self.leased(&lease).await?,
        };
        let Some(pod) = leased else {
            // Its pod is gone, and the cluster has not deleted it yet.
            objects::delete(cluster, &kind, &lease, Version::Any).await?;
            return Ok(Look::Unclear);
        };
        if annotations::is_of(&pod.annotations, id) {
            let lease = Some(lease);
            return Ok(Look::Held(Box::new(Held { pod, lease })));
        }
        if !self.is_spare(&pod) {
            return Err(foreign_lease(&lease).about(id));
        }
        if pod.deleting {
            self.gone(&pod).await?;
        } else if is_late {
            match pods.try_remove(&pod, Version::Read).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                removed => removed?,
            }
        }
        Ok(Look::Unclear)
    }

    /// Whether a pod waits for a session of this space. Any user who may write leases can
    /// name any pod in one.
    fn is_spare(&self, pod: &Pod) -> bool {
        let space = pod.labels.get(names::SPACE);
        space.is_some_and(|space| space == self.0.pods.names.space())
            && pod.labels.contains_key(names::SPARE)
            && annotations::session(&pod.annotations).is_none()
    }

    /// Returns the pod that a lease is on.
    async fn leased(&self, lease: &Object) -> Result<Option<Pod>> {
        let holder = lease.content.pointer("/spec/holderIdentity");
        let Some(name) = holder.and_then(serde_json::Value::as_str) else {
            return Ok(None);
        };
        let pod = pods::find(&self.0.pods.cluster, name).await?;
        Ok(pod.filter(|pod| lease.owners.contains(&pod.uid)))
    }

    /// Waits until a pod is gone.
    pub(super) async fn gone(&self, pod: &Pod) -> Result<()> {
        let cluster = &self.0.pods.cluster;
        let view = &self.0.view;
        let ended = async {
            loop {
                // A report of its end is proof, and comes if the view has the pod.
                let is_watched = view.is_current() && view.knows(&pod.uid);
                let reported = view.gone(&pod.uid);
                if is_watched && timeout(WATCHED_INTERVAL, reported).await.is_ok() {
                    return Ok::<(), Error>(());
                }
                let found = pods::find(cluster, &pod.name).await?;
                if found.is_none_or(|found| found.uid != pod.uid) {
                    return Ok(());
                }
                if !is_watched {
                    let _ = timeout(UNWATCHED_INTERVAL, view.gone(&pod.uid)).await;
                }
            }
        };
        let late = || {
            let message = "its pod has not ended; look at its node, or delete the pod by force";
            Err(Error::unavailable(message).about(&pod.name))
        };
        let ended = timeout(self.0.pods.grace + END_TIMEOUT, ended);
        ended.await.unwrap_or_else(|_| late())
    }

    /// Changes the annotations of a pod as its current ones demand, and returns it as it is
    /// then. `None` if it is gone or ending.
    pub(super) async fn note(
        &self,
        pod: &Pod,
        change: impl Fn(&Annotations) -> Option<Changes>,
    ) -> Result<Option<Pod>> {
        let cluster = &self.0.pods.cluster;
        let mut pod = pod.clone();
        for _ in 0..TRIES {
            if pod.deleting {
                return Ok(None);
            }
            let Some(changes) = change(&pod.annotations) else {
                return Ok(Some(pod));
            };
            match pods::annotate(cluster, &pod, &changes).await {
                Ok(noted) => return Ok((!noted.deleting).then_some(noted)),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
            let found = pods::find(cluster, &pod.name).await?;
            match found.filter(|found| found.uid == pod.uid) {
                Some(found) => pod = found,
                None => return Ok(None),
            }
        }
        Err(Error::unavailable("its pod keeps changing; try again").about(&pod.name))
    }
}

fn foreign_lease(lease: &Object) -> Error {
    let message = format!(
        "the lease {} has the name of a session and is on a pod that belongs to none; delete it",
        lease.name
    );
    Error::new(ErrorKind::Conflict, message)
}

fn foreign(pod: &Pod) -> Error {
    let message = format!(
        "the pod {} has the name of a session and belongs to none; delete it",
        pod.name
    );
    Error::new(ErrorKind::Conflict, message)
}
