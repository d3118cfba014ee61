//! The rights that sandboxes need in a namespace, and those that are missing.

use backend_core::Result;
use futures::future::try_join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use crate::cluster::{Cluster, run};

/// The rights by resource, as in `docs/kubernetes-rbac.yaml` without those that can be left
/// out: its API group, its name and the verbs.
const RIGHTS: &[(&str, &str, &[&str])] = &[
    ("", "pods", &["create", "delete", "get", "list", "watch"]),
    ("", "pods/exec", &["create", "get"]),
    ("networking.k8s.io", "networkpolicies", &["create", "get"]),
];

impl Cluster {
    /// Asks the cluster which of the rights that sandboxes need its user does not have in
    /// the namespace, and returns them, such as `create pods/exec`. Nothing is created.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the cluster does not answer; `Auth` if it does not accept the
    /// credentials.
    pub async fn missing_rights(&self) -> Result<Vec<String>> {
        let asked = RIGHTS
            .iter()
            .map(|&(group, resource, verbs)| self.missing_verbs(group, resource, verbs));
        Ok(try_join_all(asked).await?.concat())
    }

    /// Asks the same for verbs on one resource, such as `pods/exec`, of an API group, which
    /// is `""` for pods.
    ///
    /// # Errors
    ///
    /// As [`missing_rights`](Self::missing_rights).
    pub async fn missing_verbs(
        &self,
        group: &str,
        resource: &str,
        verbs: &[&str],
    ) -> Result<Vec<String>> {
        let cluster = self.clone();
        let (group, resource) = (group.to_owned(), resource.to_owned());
        let verbs: Vec<_> = verbs.iter().map(|&verb| verb.to_owned()).collect();
        run(async move {
            let asked = verbs
                .iter()
                .map(|verb| cluster.lacks(&group, &resource, verb));
            let missing = try_join_all(asked).await?;
            Ok(missing.into_iter().flatten().collect())
        })
        .await
    }

    /// Returns a right if the user does not have it.
    async fn lacks(&self, group: &str, resource: &str, verb: &str) -> Result<Option<String>> {
        let (whole, part) = resource.split_once('/').unwrap_or((resource, ""));
        let of = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: of(self.namespace()),
                    group: of(group),
                    resource: of(whole),
                    subresource: of(part),
                    verb: of(verb),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client().clone());
        let answer = reviews.create(&PostParams::default(), &review).await;
        let answer = answer.map_err(|error| self.error(error))?;
        let is_allowed = answer.status.is_some_and(|status| status.allowed);
        Ok((!is_allowed).then(|| format!("{verb} {resource}")))
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// Answers reviews: rights on pods are granted, other ones are not.
    async fn review(request: Request<Body>) -> kube::Result<Response<Body>> {
        let asked = request.into_body().collect_bytes().await?;
        let mut review: Value = serde_json::from_slice(&asked).unwrap();
        let wanted = &review["spec"]["resourceAttributes"];
        assert_eq!(wanted["namespace"], "agents");
        let is_allowed = wanted["resource"] == "pods" && wanted["subresource"] != "exec";
        review["status"] = json!({"allowed": is_allowed});
        Ok(Response::new(Body::from(review.to_string().into_bytes())))
    }

    #[tokio::test]
    async fn what_is_not_granted_is_named() {
        let client = Client::new(tower::service_fn(review), "default");
        let cluster = Cluster::from_client(client, "agents");
        let missing = cluster.missing_rights().await.unwrap();
        let wanted = [
            "create pods/exec",
            "get pods/exec",
            "create networkpolicies",
            "get networkpolicies",
        ];
        assert_eq!(missing, wanted);
    }
}
