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
    ("coordination.k8s.io", "leases", &["delete", "get", "list"]),
    ("", "secrets", &["create", "delete", "get", "patch"]),
];
const WITH_POOL: Rights = ("coordination.k8s.io", "leases", &["create", "patch"]);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use backend_k8s::{Cluster, Runtime};
    use http::{Request, Response};
    use kube::client::{Body, Client};
    use serde_json::{Value, json};

    use super::*;
    use crate::K8sEngineBuilder;

    /// Answers reviews: nothing is granted but changes of pods.
    async fn review(request: Request<Body>) -> kube::Result<Response<Body>> {
        let asked = request.into_body().collect_bytes().await?;
        let mut review: Value = serde_json::from_slice(&asked).unwrap();
        let wanted = &review["spec"]["resourceAttributes"];
        assert_eq!(wanted["namespace"], "agents");
        let is_allowed = wanted["resource"] == "pods";
        review["status"] = json!({"allowed": is_allowed});
        Ok(Response::new(Body::from(review.to_string().into_bytes())))
    }

    fn builder() -> K8sEngineBuilder {
        let client = Client::new(tower::service_fn(review), "default");
        K8sEngine::builder(Cluster::from_client(client, "agents"))
    }

    #[tokio::test]
    async fn only_those_of_its_options_are_needed() {
        let engine = builder().build().unwrap();
        let missing = engine.missing_rights().await.unwrap();
        let wanted = [
            "delete leases",
            "get leases",
            "list leases",
            "create secrets",
            "delete secrets",
            "get secrets",
            "patch secrets",
        ];
        assert_eq!(missing, wanted);
        let runtime = Runtime::from_image("image", "image:1");
        let engine = builder().volumes(1024).pool(runtime, 1).build().unwrap();
        let missing = engine.missing_rights().await.unwrap();
        let missing: BTreeSet<_> = missing.iter().map(String::as_str).collect();
        assert!(missing.is_superset(&wanted.into()));
        assert!(missing.contains("create leases") && missing.contains("patch leases"));
        let claims = missing.iter().filter(|right| right.ends_with("claims"));
        assert_eq!(claims.count(), 5, "{missing:?}");
    }
}
