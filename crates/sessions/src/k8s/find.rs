//! Which pod is that of a session.
//!
//! A session is one of two objects of its name: a pod that was created for it, or a lease on a
//! pod that was made before. Names are unique among pods and among leases, but not between the
//! two. So a process that creates one of them looks for the other one afterwards, and the order
//! is always: the pod first, then the lease.
//!
//! - A process with a lease that finds a pod gives way: it deletes its lease.
//! - A process with a pod that finds a lease waits. If the leased pod becomes that of the
//!   session, the other process had not found its pod, and it gives way. If the lease is
//!   deleted, the other one gave way.
//! - Any other process that finds a pod and no lease knows that the pod has won: a lease that
//!   comes later gives way, and one that came before would still be there, or have given way.
//!
//! A process may be killed while it holds a lease on a pod that is not yet that of the session.
//! Then the pod is deleted after a while, in a change that fails if it has become the session's.

use std::time::{Duration, Instant};

use backend_core::{Error, ErrorKind, Result};
use backend_k8s::pods::objects::{self, Kind, Object};
use backend_k8s::pods::{self, Pod, Version};
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
    /// The lock, if it is not the pod itself.
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

    /// Looks once. If it is late, a claim in the middle is taken for one of a killed process.
    async fn look(&self, id: &SessionId, is_late: bool) -> Result<Look> {
        let pods = &self.0.pods;
        let (cluster, name) = (&pods.cluster, pods.names.session(id));
        let own = pods::find(cluster, &name).await?;
        let Some(lease) = objects::find(cluster, &Kind::lease(), &name).await? else {
            let held = own.map(|pod| Look::Held(Box::new(Held { pod, lease: None })));
            return Ok(held.unwrap_or(Look::Nothing));
        };
        let Some(pod) = self.leased(&lease).await? else {
            // Its pod is gone, and the cluster has not deleted it yet.
            objects::delete(cluster, &Kind::lease(), &lease, Version::Any).await?;
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
        let ended = async {
            loop {
                let found = pods::find(cluster, &pod.name).await?;
                if found.is_none_or(|found| found.uid != pod.uid) {
                    return Ok::<(), Error>(());
                }
                let pause = match self.0.view.is_current() {
                    true => WATCHED_INTERVAL,
                    false => UNWATCHED_INTERVAL,
                };
                let _ = timeout(pause, self.0.view.gone(&pod.uid)).await;
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
