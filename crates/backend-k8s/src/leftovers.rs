//! Pods left behind by processes that are gone.

use std::time::{Duration, SystemTime};

use backend_core::{Error, ErrorKind, Result};
use k8s_openapi::api::core::v1::Pod as Object;
use sandbox_shell::Disposal;

use crate::cluster::{self, Cluster};
use crate::labels;
use crate::pods::{self, Pod, Version};

/// The time that the programs of a leftover get to end.
const GRACE: Duration = Duration::from_secs(1);

/// A pod whose owner process is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftover {
    /// The pod's name.
    pub name: String,
    /// The image it was created from.
    pub image: String,
    /// The time it was created.
    pub created: SystemTime,
    /// The pod itself.
    pub pod: Pod,
}

/// Lists the unnamed pods in the cluster's namespace whose owner process on this host is
/// gone.
///
/// Pods of running processes, of other hosts or pid namespaces, pods named by the user,
/// and pods that are not sandboxes are never included. Neither are pods that only carry a
/// sandbox's labels, such as those made from the manifest of one. Those being deleted are
/// not left over any more.
///
/// # Errors
///
/// `Unavailable` if the cluster does not answer.
pub async fn leftovers(cluster: &Cluster) -> Result<Vec<Leftover>> {
    let cluster = cluster.clone();
    cluster::run(async move { find(&cluster).await }).await
}

/// Deletes the [`leftovers`], as their process would have done. Returns them.
///
/// # Errors
///
/// `Unavailable` if the cluster does not answer.
pub async fn reap(cluster: &Cluster) -> Result<Vec<Leftover>> {
    let cluster = cluster.clone();
    cluster::run(async move { reap_now(&cluster).await }).await
}

/// Reaps in the background, once per cluster and namespace.
pub(crate) fn reap_once(cluster: &Cluster) {
    let place = format!("{} {}", cluster.address(), cluster.namespace());
    let cluster = cluster.clone();
    let reap = async move { Ok(reap_now(&cluster).await?.len()) };
    sandbox_shell::reap_once(place, "pods", reap);
}

async fn find(cluster: &Cluster) -> Result<Vec<Leftover>> {
    let (objects, _) = pods::list_now(cluster, pods::SANDBOXES).await?;
    let is_gone = labels::judge();
    let leftover = |object| judge(object, |pod| is_gone(&pod.annotations));
    Ok(objects.into_iter().filter_map(leftover).collect())
}

/// Returns a pod as a leftover if the process in its annotations is certainly gone.
fn judge(object: Object, is_gone: impl Fn(&Pod) -> bool) -> Option<Leftover> {
    if !labels::is_ours(&object.metadata) {
        return None;
    }
    let image = labels::container(&object).and_then(|container| container.image.clone());
    let pod = Pod::of(object)?;
    let disposal = Disposal::of(pod.annotations.get(labels::DISPOSAL));
    let is_leftover = !pod.deleting && disposal == Disposal::Remove && is_gone(&pod);
    is_leftover.then(|| Leftover {
        name: pod.name.clone(),
        image: image.unwrap_or_default(),
        created: pod.created,
        pod,
    })
}

async fn reap_now(cluster: &Cluster) -> Result<Vec<Leftover>> {
    let mut reaped = Vec::new();
    let mut failed: Option<Error> = None;
    for leftover in find(cluster).await? {
        // One that changed meanwhile is in use, or another process reaps it.
        match pods::delete(cluster, &leftover.pod, GRACE, Version::Read).await {
            Ok(true) => reaped.push(leftover),
            Ok(false) => {}
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if reaped.is_empty() => Err(error),
        _ => Ok(reaped),
    }
}

#[cfg(test)]
mod tests;
