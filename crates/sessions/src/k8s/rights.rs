//! The rights that sessions need in a namespace, and those that are missing.

use backend_core::Result;
use futures_util::future::try_join_all;

use super::K8sEngine;

/// Rights on one resource, as in `docs/kubernetes-rbac.yaml`: its API group, its name and the
/// verbs.
type Rights = (&'static str, &'static str, &'static [&'static str]);

/// The rights that sessions with variables need.
const ALWAYS: &[Rights] = &[
    ("", "pods", &["patch"]),
    (
        "coordination.k8s.io",
        "leases",
        &["create", "delete", "get", "list"],
    ),
    ("", "secrets", &["create", "delete", "get", "patch"]),
];
const WITH_POOL: Rights = ("coordination.k8s.io", "leases", &["patch"]);
const WITH_VOLUMES: Rights = (
    "",
    "persistentvolumeclaims",
    &["create", "delete", "get", "list", "patch"],
);

impl K8sEngine {
    /// Asks the cluster which of the rights that these sessions need its user does not have
    /// in the namespace, beside [those of sandboxes](backend_k8s::Cluster::missing_rights).
    /// Returns them, such as `patch pods`. Nothing is created.
    ///
    /// Those about secrets are for variables: sessions without any do not need them.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the cluster does not answer; `Auth` if it does not accept the
    /// credentials.
    pub async fn missing_rights(&self) -> Result<Vec<String>> {
        let cluster = &self.0.pods.cluster;
        let mut needed = ALWAYS.to_vec();
        needed.extend((!self.0.pools.is_empty()).then_some(WITH_POOL));
        needed.extend(self.0.pods.volumes.as_ref().map(|_| WITH_VOLUMES));
        let asked = needed
            .into_iter()
            .map(|(group, resource, verbs)| cluster.missing_verbs(group, resource, verbs));
        Ok(try_join_all(asked).await?.concat())
    }
}
