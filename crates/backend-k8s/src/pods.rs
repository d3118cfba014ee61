//! Pods for programs that keep records of their own: found by labels, changed only as
//! they were read, and watched.
//!
//! The names of pods are unique in a namespace, so creating one is a lock between
//! processes. Its annotations are a record that several of them can write without
//! overwriting each other's: [`annotate`] and [`delete`] fail if the pod changed since it
//! was read.
//!
//! ```no_run
//! # async fn example() -> backend_core::Result<()> {
//! use backend_k8s::{Cluster, pods};
//!
//! let cluster = Cluster::from_env().await?;
//! for pod in pods::list(&cluster, "example.com/team=red").await? {
//!     println!("{} {:?}", pod.name, pod.phase);
//! }
//! # Ok(())
//! # }
//! ```

pub mod objects;
mod request;
mod watch;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use backend_core::{Error, ErrorKind, Result};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod as Object};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::check;
use crate::cluster::{self, Cluster, status};
use crate::labels::{self, CONTAINER};
use crate::reason::PodState;
use request::{conditional, list_all, moment};

pub use request::Version;
pub use watch::{PodChange, watch};

/// The label selector of all sandboxes. This crate watches with it, so a [`watch`] with the
/// same one costs no request of its own.
pub const SANDBOXES: &str = "app.kubernetes.io/managed-by=agentbox,agentbox.dev/sandbox";

/// A pod, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Identifies it, also from other pods of the same name.
    pub uid: String,
    /// The version that was read. Every change makes another one.
    pub resource_version: String,
    /// All of its labels.
    pub labels: BTreeMap<String, String>,
    /// All of its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its phase.
    pub phase: PodPhase,
    /// Whether the container of the sandbox is ready.
    pub ready: bool,
    /// Whether it is on a node that does not answer.
    pub lost: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The time it was created, in whole seconds.
    pub created: SystemTime,
    /// The node it is on, once it has one.
    pub node: Option<String>,
    /// How often the container of the sandbox was restarted.
    pub restart_count: u32,
    /// Why it is not running, in the cluster's word: `Evicted`, `ImagePullBackOff`,
    /// `OOMKilled`.
    pub reason: Option<String>,
}

/// The phase of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PodPhase {
    /// It is waiting for a node, an image or a volume.
    Pending,
    /// It is running.
    Running,
    /// Its programs have ended well.
    Succeeded,
    /// Its programs have ended, or were ended.
    Failed,
    /// Its node does not answer.
    Unknown,
}

impl PodPhase {
    /// Reads the cluster's word for it. A pod that is not looked at yet has none.
    fn of(phase: Option<&str>) -> Self {
        match phase {
            None | Some("" | "Pending") => Self::Pending,
            Some("Running") => Self::Running,
            Some("Succeeded") => Self::Succeeded,
            Some("Failed") => Self::Failed,
            Some(_) => Self::Unknown,
        }
    }
}

impl Pod {
    /// Reads the cluster's description. `None` if it lacks a name or an id.
    pub(crate) fn of(object: Object) -> Option<Self> {
        let lost = matches!(PodState::of(&object), PodState::Lost(_));
        let metadata = object.metadata;
        let status = object.status.unwrap_or_default();
        let containers = status.container_statuses.unwrap_or_default();
        let container = containers.iter().find(|one| one.name == CONTAINER);
        let restarts = container.and_then(|one| u32::try_from(one.restart_count).ok());
        Some(Self {
            name: metadata.name?,
            uid: metadata.uid?,
            resource_version: metadata.resource_version.unwrap_or_default(),
            labels: metadata.labels.unwrap_or_default(),
            annotations: metadata.annotations.unwrap_or_default(),
            phase: PodPhase::of(status.phase.as_deref()),
            ready: container.is_some_and(|one| one.ready),
            lost,
            deleting: metadata.deletion_timestamp.is_some(),
            created: moment(metadata.creation_timestamp),
            node: object.spec.and_then(|spec| spec.node_name),
            restart_count: restarts.unwrap_or_default(),
            reason: status.reason.or_else(|| container.and_then(reason)),
        })
    }

    /// Whether the process that created it is certainly gone. `false` for processes of
    /// other hosts and pid namespaces.
    pub fn is_abandoned(&self) -> bool {
        labels::judge()(&self.annotations)
    }
}

/// Why a container is not running, or why it was restarted.
fn reason(container: &ContainerStatus) -> Option<String> {
    let now = container.state.as_ref();
    let waiting = now.and_then(|state| state.waiting.as_ref()?.reason.clone());
    let ended = |state: &ContainerState| state.terminated.as_ref()?.reason.clone();
    waiting
        .or_else(|| now.and_then(ended))
        .or_else(|| container.last_state.as_ref().and_then(ended))
}

/// Lists the pods that a label selector matches, in any phase. An empty one matches all
/// pods of the namespace.
///
/// # Errors
///
/// `Config` if the selector is malformed; `TooLarge` for more than 100,000 pods;
/// `Unavailable` if the cluster does not answer.
pub async fn list(cluster: &Cluster, selector: &str) -> Result<Vec<Pod>> {
    let (cluster, selector) = (cluster.clone(), selector.to_owned());
    cluster::run(async move {
        let (objects, _) = list_now(&cluster, &selector).await?;
        Ok(objects.into_iter().filter_map(Pod::of).collect())
    })
    .await
}

/// Lists pods, with the version that a watch can begin at.
pub(crate) async fn list_now(cluster: &Cluster, selector: &str) -> Result<(Vec<Object>, String)> {
    let api: Api<Object> = cluster.api()?;
    list_all(cluster, &api, selector).await
}

/// Finds a pod by its name. `None` if there is none.
///
/// # Errors
///
/// `Unavailable` if the cluster does not answer.
pub async fn find(cluster: &Cluster, name: &str) -> Result<Option<Pod>> {
    check::name("a pod", name)?;
    let (cluster, name) = (cluster.clone(), name.to_owned());
    cluster::run(async move { Ok(find_now(&cluster, &name).await?.and_then(Pod::of)) }).await
}

async fn find_now(cluster: &Cluster, name: &str) -> Result<Option<Object>> {
    let api: Api<Object> = cluster.api()?;
    cluster.found(api.get(name).await)
}

/// Sets annotations of a pod, and removes those without a value. Returns it as it is
/// then.
///
/// # Errors
///
/// `Conflict` if it changed since it was read; `NotFound` if it is gone; `Unavailable` if
/// the cluster does not answer.
pub async fn annotate(
    cluster: &Cluster,
    pod: &Pod,
    changes: &BTreeMap<String, Option<String>>,
) -> Result<Pod> {
    patch(cluster, pod, json!({"metadata": {"annotations": changes}})).await
}

/// Sets labels of a pod, and removes those without a value. Returns it as it is then.
///
/// # Errors
///
/// As [`annotate`]; `Config` if the cluster does not accept a label.
pub async fn label(
    cluster: &Cluster,
    pod: &Pod,
    changes: &BTreeMap<String, Option<String>>,
) -> Result<Pod> {
    patch(cluster, pod, json!({"metadata": {"labels": changes}})).await
}

/// Changes a pod, if it is as it was read.
async fn patch(cluster: &Cluster, pod: &Pod, change: Value) -> Result<Pod> {
    check::name("a pod", &pod.name)?;
    let change = conditional(change, &pod.uid, &pod.resource_version);
    let (cluster, name) = (cluster.clone(), pod.name.clone());
    cluster::run(async move {
        let api: Api<Object> = cluster.api()?;
        let patch = Patch::Merge(change);
        let patched = api.patch(&name, &PatchParams::default(), &patch).await;
        let patched = patched.map_err(|error| match status(&error) {
            Some(404) => gone(&name),
            Some(409) => changed(&name),
            _ => cluster.error(error),
        })?;
        Pod::of(patched).ok_or_else(|| gone(&name))
    })
    .await
}

/// Deletes a pod, and gives its programs this time to end. Returns `false` if it was gone
/// already. It still exists, and is being deleted, until its programs have ended.
///
/// # Errors
///
/// `Conflict` if it must be unchanged, and changed since it was read; `Unavailable` if
/// the cluster does not answer.
pub async fn delete(
    cluster: &Cluster,
    pod: &Pod,
    grace: Duration,
    version: Version,
) -> Result<bool> {
    check::name("a pod", &pod.name)?;
    let preconditions = version.preconditions(&pod.uid, &pod.resource_version);
    // Less than a second is no time at all to the cluster.
    let seconds = grace.as_secs() + u64::from(grace.subsec_nanos() > 0);
    let parameters = DeleteParams::default()
        .grace_period(u32::try_from(seconds).unwrap_or(u32::MAX))
        .preconditions(preconditions);
    let (cluster, name, uid) = (cluster.clone(), pod.name.clone(), pod.uid.clone());
    cluster::run(async move {
        let api: Api<Object> = cluster.api()?;
        let Err(error) = api.delete(&name, &parameters).await else {
            return Ok(true);
        };
        match status(&error) {
            Some(404) => Ok(false),
            Some(409) => {
                // The name may be that of another pod by now.
                let there = find_now(&cluster, &name).await?;
                match there.is_some_and(|there| there.metadata.uid == Some(uid)) {
                    true if version == Version::Read => Err(changed(&name)),
                    true => Err(cluster.error(error)),
                    false => Ok(false),
                }
            }
            _ => Err(cluster.error(error)),
        }
    })
    .await
}

fn changed(name: &str) -> Error {
    let text = format!("the pod {name} has changed since it was read; read it again");
    Error::new(ErrorKind::Conflict, text)
}

fn gone(name: &str) -> Error {
    let text = format!("the pod {name} was deleted; create another");
    Error::new(ErrorKind::NotFound, text)
}

#[cfg(test)]
pub(crate) mod tests;
