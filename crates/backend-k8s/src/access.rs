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
/// out: its API group, its name, its subresource and the verbs.
const RIGHTS: &[(&str, &str, &str, &[&str])] = &[
    (
        "",
        "pods",
        "",
        &["create", "delete", "get", "list", "watch"],
    ),
    ("", "pods", "exec", &["create", "get"]),
    (
        "networking.k8s.io",
        "networkpolicies",
        "",
        &["create", "get"],
    ),
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
        let cluster = self.clone();
        run(async move {
            let cluster = &cluster;
            let asked = RIGHTS.iter().flat_map(|(group, resource, part, verbs)| {
                let verbs = verbs.iter();
                verbs.map(move |verb| cluster.lacks(group, resource, part, verb))
            });
            let missing = try_join_all(asked).await?;
            Ok(missing.into_iter().flatten().collect())
        })
        .await
    }

    /// Returns a right if the user does not have it.
    async fn lacks(
        &self,
        group: &str,
        resource: &str,
        part: &str,
        verb: &str,
    ) -> Result<Option<String>> {
        let of = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: of(self.namespace()),
                    group: of(group),
                    resource: of(resource),
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
        if answer.status.is_some_and(|status| status.allowed) {
            return Ok(None);
        }
        Ok(Some(match part {
            "" => format!("{verb} {resource}"),
            part => format!("{verb} {resource}/{part}"),
        }))
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
