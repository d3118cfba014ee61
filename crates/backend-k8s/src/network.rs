//! The network policy of the namespace that denies all traffic to and from sandboxes
//! without a network. The cluster's network plugin enforces it, or does not.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use backend_core::sync::lock;
use backend_core::{Error, Result};
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicySpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::Api;
use kube::api::PostParams;

use crate::cluster::{Cluster, status};
use crate::labels;

/// The name of the policy.
const NAME: &str = "agentbox-no-network";

/// The time after which it is made sure again that the policy exists.
const FRESH: Duration = Duration::from_secs(60);

/// When the policy was last known to exist, by cluster and namespace. A cluster keeps its
/// number while it is held.
static KNOWN: Mutex<BTreeMap<(usize, String), (Cluster, Instant)>> = Mutex::new(BTreeMap::new());

/// Creates the policy, unless it exists.
///
/// # Errors
///
/// `PermissionDenied` if it does not exist and this user may not create it.
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
        let exists = match status(&error) {
            Some(409) => true,
            // It may exist, and this user may only look at it.
            Some(403) => matches!(api.get_opt(NAME).await, Ok(Some(_))),
            _ => false,
        };
        if !exists {
            let error = cluster.error(error);
            let message = format!(
                "the network policy for sandboxes cannot be created: {}, or use Network::Open",
                error.message()
            );
            return Err(Error::new(error.kind(), message));
        }
    }
    lock(&KNOWN).insert(key, (cluster.clone(), Instant::now()));
    Ok(())
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
                match_labels: Some([(labels::NETWORK, "none")].map(owned).into()),
                ..LabelSelector::default()
            }),
            policy_types: Some(["Ingress", "Egress"].map(str::to_owned).into()),
            ..NetworkPolicySpec::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
