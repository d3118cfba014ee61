//! Ending a session, so that no process ends what another one begins to use.
//!
//! A pod is deleted on the condition that it has not changed since the time of its last use was
//! read, and a process that uses the session changes it by writing that time first. So one of
//! the two always sees the other: either the pod is not deleted, or its user waits until it is
//! gone, and wakes the session.

use std::time::SystemTime;

use backend_core::{ErrorKind, Result};
use backend_k8s::pods::Version;
use backend_k8s::pods::objects::{self, Kind};

use super::annotations::{self, ACTIVE, Annotations};
use super::find::{Changes, Held};
use super::{K8sEngine, TRIES};
use crate::error::contended;
use crate::id::SessionId;
use crate::record::{Record, RecordState};

impl K8sEngine {
    /// Writes the time of a use. When it returns, no process is ending the session that did not
    /// see it.
    pub(super) async fn write_use(&self, id: &SessionId, at: SystemTime) -> Result<bool> {
        let pod = match self.known_pod(id) {
            Some(pod) => pod,
            None => match self.find(id).await? {
                Some(held) => held.pod,
                None => return Ok(false),
            },
        };
        let later = |annotations: &Annotations| {
            let is_later = annotations::active(annotations).is_none_or(|active| active < at);
            is_later.then(|| Changes::from([(ACTIVE.to_owned(), Some(annotations::millis(at)))]))
        };
        match self.note(&pod, later).await? {
            Some(pod) => {
                self.update(id, pod);
                Ok(true)
            }
            None => self.gone(&pod).await.map(|()| false),
        }
    }

    /// Ends a session that no process has used since `since`.
    pub(super) async fn end_unused(&self, id: &SessionId, since: SystemTime) -> Result<bool> {
        for _ in 0..TRIES {
            let Some(held) = self.find(id).await? else {
                self.forget(id);
                return Ok(false);
            };
            if held.record(id).last_activity > since {
                return Ok(false);
            }
            match self.end_if(id, &held, Version::Read).await {
                // It was used, or its pod has changed in another way.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                ended => return ended,
            }
        }
        Err(contended(id))
    }

    /// Ends a session and keeps its files.
    pub(super) async fn end(&self, id: &SessionId, held: &Held) -> Result<bool> {
        self.end_if(id, held, Version::Any).await
    }

    async fn end_if(&self, id: &SessionId, held: &Held, version: Version) -> Result<bool> {
        // Before the pod is deleted: a process that opens the session later changes it.
        let volume = self.volume_of(&held.pod, id).await?;
        let deleted = self.0.pods.delete(&held.pod, version).await?;
        if let Some(volume) = volume.filter(|_| deleted) {
            let record = Record {
                state: RecordState::Stored,
                ..held.record(id)
            };
            // If it is not written, the volume is found without a pod later.
            if let Err(error) = self.note_volume(&volume, &record).await {
                tracing::debug!(session = %id, "a volume was not marked: {}", error.chain());
            }
        }
        self.ended(id, held).await?;
        Ok(deleted)
    }

    /// Waits until the pod of a session is gone, and gives its name free.
    async fn ended(&self, id: &SessionId, held: &Held) -> Result<()> {
        self.gone(&held.pod).await?;
        if let Some(lease) = &held.lease {
            objects::delete(&self.0.pods.cluster, &Kind::lease(), lease, Version::Any).await?;
        }
        self.forget(id);
        Ok(())
    }

    /// Ends a session and deletes its files.
    pub(super) async fn purge_session(&self, id: &SessionId) -> Result<bool> {
        let Some(held) = self.find(id).await? else {
            self.forget(id);
            return self.purge_volumes(id, None).await;
        };
        // First: the cluster keeps a claim for as long as a pod uses it, and no other pod can
        // begin to.
        let mut volumes = self.stored(Some(id)).await?;
        volumes.extend(self.volume_of(&held.pod, id).await?);
        let cluster = &self.0.pods.cluster;
        for volume in volumes {
            objects::delete(cluster, &Kind::volume_claim(), &volume, Version::Any).await?;
        }
        self.0.pods.delete(&held.pod, Version::Any).await?;
        self.ended(id, &held).await?;
        Ok(true)
    }
}
