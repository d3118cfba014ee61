//! The network policy of the namespace that denies all traffic to and from sandboxes
//! without a network. The cluster's network plugin enforces it, or does not.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Result};
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicySpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::Api;
use kube::api::PostParams;

use crate::cluster::{Cluster, status};
use crate::labels;
use crate::options::Network;

/// The name of the policy.
const NAME: &str = "agentbox-no-network";
/// The value of the label that it selects.
const NONE: &str = Network::None.label();

/// The time after which it is made sure again that the policy exists.
const FRESH: Duration = Duration::from_secs(60);

/// When the policy was last known to exist, by cluster and namespace. A cluster keeps its
/// number while it is held.
static KNOWN: Mutex<BTreeMap<(usize, String), (Cluster, Instant)>> = Mutex::new(BTreeMap::new());

/// Creates the policy, unless it exists.
///
/// # Errors
///
/// `PermissionDenied` if this user may neither create it nor see that it exists; `Config`
/// if one of its name allows traffic.
pub(crate) async fn ensure_policy(cluster: &Cluster) -> Result<()> {
    let key = (cluster.id(), cluster.namespace().to_owned());
    {
        let mut known = lock(&KNOWN);
        known.retain(|_, (_, at)| at.elapsed() < FRESH);
        if known.contains_key(&key) {
            return Ok(());
        }
    }
    let api: Api<NetworkPolicy> = cluster.api()?;
    if let Err(error) = api.create(&PostParams::default(), &policy()).await {
        // It exists, or it may exist, and this user may only look at it.
        let is_there = status(&error) == Some(409);
        let there = match status(&error) {
            Some(403 | 409) => cluster.found(api.get(NAME).await),
            _ => Ok(None),
        };
        match there {
            Ok(Some(there)) if denies_all(&there) => {}
            Ok(Some(_)) => return Err(allows(cluster.namespace())),
            Ok(None) if is_there => {
                let message = "the network policy for sandboxes was just deleted; try again";
                return Err(Error::unavailable(message));
            }
            Err(error) if is_there => return Err(cannot("read", &error)),
            _ => return Err(cannot("created", &cluster.error(error))),
        }
    }
    lock(&KNOWN).insert(key, (cluster.clone(), Instant::now()));
    Ok(())
}

/// Whether a policy selects all sandboxes without a network, and allows them nothing.
fn denies_all(policy: &NetworkPolicy) -> bool {
    let spec = policy.spec.clone().unwrap_or_default();
    let selector = spec.pod_selector.unwrap_or_default();
    let is_ours = |(key, value): (&String, &String)| key == labels::NETWORK && value == NONE;
    let types = spec.policy_types.unwrap_or_default();
    selector.match_labels.iter().flatten().all(is_ours)
        && selector.match_expressions.is_none_or(|all| all.is_empty())
        && ["Ingress", "Egress"]
            .iter()
            .all(|one| types.iter().any(|found| found == one))
        && spec.ingress.is_none_or(|rules| rules.is_empty())
        && spec.egress.is_none_or(|rules| rules.is_empty())
}

fn allows(namespace: &str) -> Error {
    let message = format!(
        "the network policy {NAME} of the namespace {namespace} does not deny all traffic of sandboxes; delete it, or use Network::Open"
    );
    Error::new(ErrorKind::Config, message)
}

fn cannot(what: &str, error: &Error) -> Error {
    let said = error.message();
    let message =
        format!("the network policy for sandboxes cannot be {what}: {said}, or use Network::Open");
    Error::new(error.kind(), message)
}

/// Selects the pods that are labelled so, and allows nothing.
fn policy() -> NetworkPolicy {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    NetworkPolicy {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            labels: Some([(labels::MANAGED_BY, labels::MANAGER)].map(owned).into()),
            ..ObjectMeta::default()
        },
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector {
                match_labels: Some([(labels::NETWORK, NONE)].map(owned).into()),
                ..LabelSelector::default()
            }),
            policy_types: Some(["Ingress", "Egress"].map(str::to_owned).into()),
            ..NetworkPolicySpec::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pods::tests::{Answer, cluster_of};

    /// Makes sure of the policy in a namespace that has one with this specification,
    /// which this user cannot create, for this reason.
    async fn ensured(spec: Value, refusal: u16) -> Result<()> {
        let (cluster, _) = cluster_of(move |asked| match (&*asked.method, &spec) {
            ("POST", _) => Answer::Refused(refusal),
            (_, Value::Null) => Answer::Refused(404),
            (_, Value::Number(code)) => Answer::Refused(code.as_u64().unwrap() as u16),
            _ => Answer::Json(json!({"metadata": {"name": NAME}, "spec": spec})),
        });
        ensure_policy(&cluster).await
    }

    #[tokio::test]
    async fn a_policy_of_the_name_must_deny_everything() {
        let ours = serde_json::to_value(policy().spec).unwrap();
        let both = json!(["Ingress", "Egress"]);
        for denying in [
            ours,
            json!({"podSelector": {}, "policyTypes": both}),
            json!({"podSelector": {}, "policyTypes": both, "ingress": [], "egress": []}),
        ] {
            ensured(denying.clone(), 409).await.unwrap();
            ensured(denying, 403).await.unwrap();
        }
        let selector = json!({"matchLabels": {(labels::NETWORK): "none"}});
        let other = json!({"matchLabels": {(labels::NETWORK): "open"}});
        let fewer = json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]});
        for allowing in [
            json!({"podSelector": selector, "policyTypes": both, "egress": [{}]}),
            json!({"podSelector": selector, "policyTypes": both, "ingress": [{}]}),
            json!({"podSelector": selector, "policyTypes": ["Ingress"]}),
            json!({"podSelector": other, "policyTypes": both}),
            json!({"podSelector": fewer, "policyTypes": both}),
            json!({"podSelector": {}}),
        ] {
            for refusal in [403, 409] {
                let error = ensured(allowing.clone(), refusal).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Config, "{allowing}");
            }
        }
        for (there, refusal, kind) in [
            (json!(null), 403, ErrorKind::PermissionDenied),
            (json!(403), 403, ErrorKind::PermissionDenied),
            (json!(403), 409, ErrorKind::PermissionDenied),
            (json!(null), 409, ErrorKind::Unavailable),
            (json!(500), 409, ErrorKind::Unavailable),
        ] {
            let error = ensured(there.clone(), refusal).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{there} {refusal}");
        }
    }

    #[test]
    fn nothing_is_allowed_to_those_it_selects() {
        let policy = serde_json::to_value(policy()).unwrap();
        assert_eq!(policy["metadata"]["name"], NAME);
        assert_eq!(
            policy["spec"],
            json!({
                "podSelector": {"matchLabels": {"agentbox.dev/network": "none"}},
                "policyTypes": ["Ingress", "Egress"],
            })
        );
    }
}
