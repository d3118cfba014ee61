//! Work that is due from time to time: deleting remains of killed processes, and sessions that
//! were stored for long enough.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend_core::{ErrorKind, Result};
use backend_k8s::pods::objects::{self, Kind, Object};
use backend_k8s::pods::{Pod, Version};

use super::annotations::{self, VOLUME};
use super::presence::is_dead;
use super::volumes::stored;
use super::{K8sEngine, names};
use crate::id::SessionId;
use crate::record::{Record, RecordState};
use crate::time::elapsed;

/// The age at which a pod that waits for a session is no longer about to be announced, and one
/// that lost a session no longer about to be deleted by its process.
const SPARE_AGE: Duration = Duration::from_secs(60);
/// The age at which a volume claim without a pod is no longer about to get one.
const ORPHAN_AGE: Duration = Duration::from_secs(3600);

impl K8sEngine {
    /// Deletes what killed processes left.
    pub(super) async fn sweep(&self, now: SystemTime) -> Result<()> {
        let pods = &self.0.pods;
        let (kind, signs) = (Kind::lease(), pods.names.processes());
        // Pods that are not as they were reported are not deleted.
        let (all, leases) = tokio::try_join!(
            self.recent_pods(),
            objects::list(&pods.cluster, &kind, &signs)
        )?;
        let mut living = BTreeSet::from([self.0.presence.key()]);
        for lease in &leases {
            match lease.labels.get(names::PROCESS) {
                Some(process) if !is_dead(lease, now) => {
                    living.insert(process);
                }
                Some(_) => {
                    log_failure(objects::delete(&pods.cluster, &kind, lease, Version::Read).await);
                }
                None => {}
            }
        }
        let is_living = |pod: &Pod| {
            let process = pod.labels.get(names::SPARE);
            process.is_none_or(|process| living.contains(&**process))
        };
        let is_old = |pod: &&Arc<Pod>| elapsed(pod.created, now) > SPARE_AGE;
        let several = several(&all);
        let mut marked = Vec::new();
        for pod in all.iter().filter(is_old) {
            match annotations::session(&pod.annotations) {
                None if !is_living(pod) => log_failure(pods.try_remove(pod, Version::Read).await),
                Some(id) if !is_living(pod) || several.contains(&id) => marked.push((pod, id)),
                _ => {}
            }
        }
        self.sweep_marked(&marked, &all, is_living).await?;
        self.sweep_volumes(&all, now).await
    }

    /// Deletes those pods that have the marks of a session and are not its pod.
    async fn sweep_marked(
        &self,
        marked: &[(&Arc<Pod>, SessionId)],
        all: &[Arc<Pod>],
        is_living: impl Fn(&Pod) -> bool,
    ) -> Result<()> {
        if marked.is_empty() {
            return Ok(());
        }
        let pods = &self.0.pods;
        // After the pods: their processes have created all the leases that they will.
        let locks = objects::list(&pods.cluster, &Kind::lease(), &pods.names.locks()).await?;
        let locks: BTreeMap<_, _> = locks.iter().map(|lock| (&*lock.name, lock)).collect();
        for (pod, id) in marked {
            let lock = locks.get(&*pods.names.session(id));
            let is_left = match pod.labels.contains_key(names::SPARE) {
                // Its process gave way, or was killed before it created the lease.
                true => match lock {
                    Some(lock) => !lock.owners.contains(&pod.uid),
                    None => !is_living(pod),
                },
                // Another pod won the session. Without a lease, it is still to be that pod.
                false => lock.is_some_and(|lock| has_won(lock, pod, all)),
            };
            if is_left {
                log_failure(pods.try_remove(pod, Version::Read).await);
            }
        }
        Ok(())
    }

    /// Deletes the volume claims that never got a session.
    async fn sweep_volumes(&self, all: &[Arc<Pod>], now: SystemTime) -> Result<()> {
        let pods = &self.0.pods;
        if pods.volumes.is_none() {
            return Ok(());
        }
        let kind = Kind::volume_claim();
        let selector = format!("{},!{}", pods.names.all(), names::SESSION);
        let used: BTreeSet<_> = all
            .iter()
            .filter_map(|pod| pod.annotations.get(VOLUME))
            .collect();
        for volume in objects::list(&pods.cluster, &kind, &selector).await? {
            let is_old = elapsed(volume.created, now) > ORPHAN_AGE;
            if is_old && !volume.is_ending && !used.contains(&volume.name) {
                log_failure(objects::delete(&pods.cluster, &kind, &volume, Version::Read).await);
            }
        }
        Ok(())
    }

    /// Purges the sessions that do not run and were not used for long enough.
    pub(super) async fn expire(&self, now: SystemTime) -> Result<()> {
        let Some(keep_for) = self.0.keep_for else {
            return Ok(());
        };
        for volume in self.stored(None).await? {
            let Some(id) = annotations::session(&volume.annotations) else {
                continue;
            };
            let record = stored(&volume, &id);
            if elapsed(record.last_activity, now) <= keep_for || self.find(&id).await?.is_some() {
                continue;
            }
            if annotations::state(&volume.annotations) == Some(RecordState::Running) {
                // Its pod was deleted by others: its last use is not known, and not later.
                let record = Record {
                    last_activity: now,
                    ..record
                };
                log_failure(self.note_volume(&volume, &record).await);
            } else if let Err(error) = self.purge_volumes(&id, Some(record.last_activity)).await {
                tracing::warn!(session = %id, error = %error.chain(), "a session past its time was not purged");
            }
        }
        Ok(())
    }
}

/// Returns the sessions whose marks several pods have.
fn several(all: &[Arc<Pod>]) -> BTreeSet<SessionId> {
    let mut seen = BTreeSet::new();
    let sessions = all.iter();
    let sessions = sessions.filter_map(|pod| annotations::session(&pod.annotations));
    sessions.filter(|id| !seen.insert(id.clone())).collect()
}

/// Whether the lease of a session is on another pod, which is that of the session.
fn has_won(lock: &Object, pod: &Pod, all: &[Arc<Pod>]) -> bool {
    let session = annotations::session(&pod.annotations);
    let is_winner = |other: &Arc<Pod>| {
        lock.owners.contains(&other.uid) && annotations::session(&other.annotations) == session
    };
    !lock.owners.contains(&pod.uid) && all.iter().any(is_winner)
}

/// Logs a failure, so that it does not keep the rest. An object that was changed meanwhile is in
/// use, which is none.
fn log_failure<T>(done: Result<T>) {
    if let Err(error) = done
        && error.kind() != ErrorKind::Conflict
    {
        tracing::warn!("something was left behind: {}", error.chain());
    }
}
