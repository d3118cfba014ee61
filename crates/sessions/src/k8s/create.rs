//! Creating the pods of sessions, and the ones that wait for a session.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use backend_core::{Error, Result, Sandbox as _};
use backend_k8s::pods::objects::{self, Kind};
use backend_k8s::pods::{self, Pod, Version};
use backend_k8s::{Cluster, DEFAULT_WORKING_DIR, K8sBuilder, K8sSandbox, Volume};
use sandbox_runtime::Runtime;

use super::annotations::{Annotations, VOLUME};
use super::names::{self, Names};
use super::presence::Presence;
use super::volumes::{Volumes, can_have};
use crate::id::SessionId;
use crate::pool::Source;

/// Creates pods.
#[derive(Debug)]
pub(super) struct Pods {
    pub(super) cluster: Cluster,
    pub(super) template: K8sBuilder,
    pub(super) names: Names,
    /// The time between TERM and KILL.
    pub(super) grace: Duration,
    pub(super) volumes: Option<Volumes>,
}

/// The differences between pods of one runtime.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) annotations: Annotations,
    pub(super) volume: Option<String>,
    /// The process that keeps it ready, if it is made before its session.
    pub(super) spare: Option<String>,
}

impl Pods {
    /// Creates a pod, which no other process has created.
    pub(super) async fn create(&self, runtime: &Runtime, shape: Shape) -> Result<K8sSandbox> {
        let working_dir = match &*runtime.work_dir {
            "" => DEFAULT_WORKING_DIR,
            directory => directory,
        };
        let mut builder = self
            .template
            .clone()
            .cluster(self.cluster.clone())
            .runtime(runtime.clone())
            .working_dir(working_dir)
            .grace(self.grace)
            .name(shape.name)
            .label(names::SPACE, self.names.space());
        if let Some(process) = shape.spare {
            builder = builder.label(names::SPARE, process);
        }
        for (key, value) in shape.annotations {
            builder = builder.annotation(key, value);
        }
        if let Some(volume) = shape.volume {
            builder = builder
                .annotation(VOLUME, volume.clone())
                .volume(Volume::claim(volume, working_dir));
        }
        builder.create().await
    }

    /// Makes sure that there is a volume claim of a name, for a session if it is known.
    pub(super) async fn volume(&self, name: &str, id: Option<&SessionId>) -> Result<()> {
        match &self.volumes {
            Some(volumes) => volumes.make(&self.cluster, &self.names, name, id).await,
            None => Ok(()),
        }
    }

    /// Deletes a pod. It is a `Conflict` if it must be that version and is not.
    pub(super) async fn delete(&self, pod: &Pod, version: Version) -> Result<bool> {
        pods::delete(&self.cluster, pod, self.grace, version).await
    }

    /// Deletes a pod that no session uses, and its volume. A failure is logged: another
    /// process deletes them when this one has ended.
    pub(super) async fn remove(&self, pod: &Pod) {
        if let Err(error) = self.try_remove(pod, Version::Any).await {
            tracing::warn!(pod = pod.name, "a pod was left behind: {}", error.chain());
        }
    }

    /// Does the same. It is a `Conflict` if the pod must be that version and is not.
    pub(super) async fn try_remove(&self, pod: &Pod, version: Version) -> Result<()> {
        self.delete(pod, version).await?;
        let (Some(_), Some(name)) = (&self.volumes, pod.annotations.get(VOLUME)) else {
            return Ok(());
        };
        let kind = Kind::volume_claim();
        // One that belongs to a session is purged with it only.
        let volume = objects::find(&self.cluster, &kind, name).await?;
        match volume.filter(|volume| can_have(&self.names, None, volume)) {
            Some(volume) => objects::delete(&self.cluster, &kind, &volume, Version::Read)
                .await
                .map(drop),
            None => Ok(()),
        }
    }
}

/// A pod that waits for a session, with its agent connected.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) sandbox: K8sSandbox,
    pub(super) pod: Pod,
}

/// Makes the pods of one runtime that wait for a session.
#[derive(Debug)]
pub(super) struct Spares {
    pub(super) pods: Arc<Pods>,
    pub(super) presence: Arc<Presence>,
    pub(super) runtime: Runtime,
}

#[async_trait]
impl Source for Spares {
    type Item = Spare;

    async fn make(&self) -> Result<Spare> {
        // First: a pod whose process gives no sign of life is deleted.
        self.presence.announce().await?;
        let name = names::spare(&names::new_key());
        self.pods.volume(&name, None).await?;
        let shape = Shape {
            name: name.clone(),
            volume: self.pods.volumes.as_ref().map(|_| name.clone()),
            spare: Some(self.presence.key().to_owned()),
            annotations: Annotations::new(),
        };
        let sandbox = self.pods.create(&self.runtime, shape).await?;
        let started = sandbox.start().await;
        let pod = pods::find(&self.pods.cluster, &name).await?;
        let pod = pod.ok_or_else(|| Error::unavailable(format!("the pod {name} was deleted")));
        match (pod, started) {
            (Ok(pod), Ok(())) => Ok(Spare { sandbox, pod }),
            (Ok(pod), Err(error)) => {
                self.pods.remove(&pod).await;
                Err(error)
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn discard(&self, spare: Spare) {
        self.pods.remove(&spare.pod).await;
    }
}
