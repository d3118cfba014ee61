//! The volumes in which the files of sessions are kept.
//!
//! A volume claim has the label of a session only while it belongs to it. It gets the label
//! after its session has a pod, in a change that fails if the claim was deleted meanwhile; and
//! it is deleted in a change that fails if it was given to a session. So a session's files are
//! neither deleted while it is opened nor given to two sessions.

use std::time::{Duration, SystemTime};

use backend_core::{Error, ErrorKind, Result};
use backend_k8s::Cluster;
use backend_k8s::pods::objects::{self, Draft, Kind, Object};
use backend_k8s::pods::{Pod, Version};
use serde_json::{Value, json};

use super::annotations::{self, VOLUME};
use super::names::{self, Names};
use super::{K8sEngine, TRIES};
use crate::error::contended;
use crate::id::SessionId;
use crate::record::{Record, RecordState};

/// How often a claim is looked at that is being deleted, and the pause between.
const DELETED_TIMES: u32 = 240;
const DELETED_PAUSE: Duration = Duration::from_millis(250);

/// The properties of the volumes.
#[derive(Debug, Clone)]
pub(super) struct Volumes {
    pub(super) bytes: u64,
    pub(super) class: Option<String>,
    pub(super) mode: Option<String>,
}

impl Volumes {
    fn spec(&self) -> Value {
        let mode = self.mode.as_deref().unwrap_or("ReadWriteOnce");
        let mut spec = json!({
            "accessModes": [mode],
            "resources": {"requests": {"storage": self.bytes.to_string()}},
        });
        if let (Some(class), Some(spec)) = (&self.class, spec.as_object_mut()) {
            spec.insert("storageClassName".to_owned(), json!(class));
        }
        json!({"spec": spec})
    }

    /// Makes sure that there is a claim of a name, which a session can have, or one that is
    /// not known yet. One that is being deleted is waited for.
    pub(super) async fn make(
        &self,
        cluster: &Cluster,
        names: &Names,
        name: &str,
        id: Option<&SessionId>,
    ) -> Result<()> {
        let kind = Kind::volume_claim();
        for _ in 0..DELETED_TIMES {
            let draft = Draft::new(name, self.spec()).label(names::SPACE, names.space());
            match objects::create(cluster, &kind, draft).await {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                created => return created.map(drop),
            }
            let found = objects::find(cluster, &kind, name).await?;
            if let Some(found) = found.filter(|found| !found.is_ending) {
                return match can_have(names, id, &found) {
                    true => Ok(()),
                    false => Err(foreign(&found)),
                };
            }
            tokio::time::sleep(DELETED_PAUSE).await;
        }
        Err(Error::unavailable(format!(
            "the volume claim {name} is still being deleted; try again later"
        )))
    }
}

impl K8sEngine {
    /// Returns the volume claims of a session, or of all, that are not being deleted.
    pub(super) async fn stored(&self, id: Option<&SessionId>) -> Result<Vec<Object>> {
        let pods = &self.0.pods;
        if pods.volumes.is_none() {
            return Ok(Vec::new());
        }
        let (kind, selector) = (Kind::volume_claim(), pods.names.stored(id));
        let mut found = objects::list(&pods.cluster, &kind, &selector).await?;
        found.retain(|volume| !volume.is_ending);
        found.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
        Ok(found)
    }

    /// Gives a volume claim to a session that has its pod. Returns `false` if the claim was
    /// deleted meanwhile.
    pub(super) async fn give_volume(&self, name: &str, record: &Record) -> Result<bool> {
        let (cluster, kind) = (&self.0.pods.cluster, Kind::volume_claim());
        for _ in 0..TRIES {
            let found = objects::find(cluster, &kind, name).await?;
            let Some(volume) = found.filter(|found| !found.is_ending) else {
                return Ok(false);
            };
            if !can_have(&self.0.pods.names, Some(&record.id), &volume) {
                return Err(foreign(&volume));
            }
            match self.note_volume(&volume, record).await {
                Ok(volume) => return Ok(!volume.is_ending),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                // The cluster changes it too, such as when it is bound.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        Err(contended(&record.id))
    }

    /// Writes the record of a session to its volume claim, unless that has changed.
    pub(super) async fn note_volume(&self, volume: &Object, record: &Record) -> Result<Object> {
        let pods = &self.0.pods;
        let labels = json!({(names::SESSION): pods.names.key(&record.id)});
        let annotations = annotations::of(record)?;
        let change = json!({"metadata": {"labels": labels, "annotations": annotations}});
        objects::patch(&pods.cluster, &Kind::volume_claim(), volume, change).await
    }

    /// Returns the volume claim that the pod of a session uses.
    pub(super) async fn volume_of(&self, pod: &Pod, id: &SessionId) -> Result<Option<Object>> {
        let pods = &self.0.pods;
        match (&pods.volumes, pod.annotations.get(VOLUME)) {
            (Some(_), Some(name)) => {
                let found = objects::find(&pods.cluster, &Kind::volume_claim(), name).await?;
                Ok(found.filter(|volume| can_have(&pods.names, Some(id), volume)))
            }
            _ => Ok(None),
        }
    }

    /// Completes the claim of a pod that was made before its session, if its process was
    /// killed in the middle of it.
    pub(super) async fn heal(&self, pod: &Pod, record: &Record) -> Result<()> {
        if !pod.labels.contains_key(names::SPARE) {
            return Ok(());
        }
        match self.volume_of(pod, &record.id).await? {
            Some(volume) if !volume.labels.contains_key(names::SESSION) => {
                self.give_volume(&volume.name, record).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Deletes the files of a session without a pod, unless it was used after `since`. Returns
    /// whether there were any.
    pub(super) async fn purge_volumes(
        &self,
        id: &SessionId,
        since: Option<SystemTime>,
    ) -> Result<bool> {
        let kind = Kind::volume_claim();
        'again: for _ in 0..TRIES {
            let volumes = self.stored(Some(id)).await?;
            let is_used = |volume: &Object| {
                since.is_some_and(|since| stored(volume, id).last_activity > since)
            };
            // After the claims were read: another process that opens the session has changed
            // them by the time they are deleted.
            if volumes.is_empty() || volumes.iter().any(is_used) || self.find(id).await?.is_some() {
                return Ok(false);
            }
            for volume in &volumes {
                match objects::delete(&self.0.pods.cluster, &kind, volume, Version::Read).await {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::Conflict => continue 'again,
                    Err(error) => return Err(error),
                }
            }
            return Ok(true);
        }
        Err(contended(id))
    }
}

/// Whether a session can have a volume claim: it was made for this space, and belongs to no
/// other session. An annotation that names one is no proof.
pub(super) fn can_have(names: &Names, id: Option<&SessionId>, volume: &Object) -> bool {
    let is_ours = volume.labels.get(names::SPACE).map(String::as_str) == Some(names.space());
    let session = volume.labels.get(names::SESSION);
    is_ours && session.is_none_or(|session| id.is_some_and(|id| *session == names.key(id)))
}

fn foreign(volume: &Object) -> Error {
    let message = "the volume claim has the name of one for the session and belongs to another, or to none; delete it";
    Error::new(ErrorKind::Conflict, message).about(&volume.name)
}

/// Returns the record of a session without a pod.
pub(super) fn stored(volume: &Object, id: &SessionId) -> Record {
    let state = RecordState::Stored;
    annotations::record(&volume.annotations, id, volume.created, state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_asks_for_what_was_set() {
        let mut volumes = Volumes {
            bytes: 1024,
            class: None,
            mode: None,
        };
        let spec = volumes.spec()["spec"].clone();
        assert_eq!(spec["accessModes"], json!(["ReadWriteOnce"]));
        assert_eq!(spec["resources"]["requests"]["storage"], "1024");
        assert_eq!(spec.get("storageClassName"), None, "the cluster's default");
        volumes.class = Some(String::new());
        volumes.mode = Some("ReadWriteOncePod".into());
        let spec = volumes.spec()["spec"].clone();
        assert_eq!(spec["storageClassName"], "", "volumes that exist");
        assert_eq!(spec["accessModes"], json!(["ReadWriteOncePod"]));
    }
}
