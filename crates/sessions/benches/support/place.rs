//! A namespace of the cluster for a benchmark.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

/// The pause between two looks at a state that nothing announces.
const LOOK: Duration = Duration::from_millis(50);
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(300);

/// A namespace, with a client as kube makes it.
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Place {
    pub(crate) async fn new() -> Self {
        let place = Self {
            client: Client::try_default().await.unwrap(),
            namespace: format!("agentbox-bench-{:016x}", fastrand::u64(..)),
        };
        let made = json!({"metadata": {"name": place.namespace}});
        let made: Namespace = serde_json::from_value(made).unwrap();
        let namespaces = place.namespaces();
        namespaces
            .create(&PostParams::default(), &made)
            .await
            .unwrap();
        let accounts: Api<ServiceAccount> = Api::namespaced(place.client.clone(), &place.namespace);
        // The server refuses pods until it exists.
        until(async || accounts.get_opt("default").await.unwrap().is_some()).await;
        place
    }

    fn namespaces(&self) -> Api<Namespace> {
        Api::all(self.client.clone())
    }

    /// Deletes the namespace with everything in it.
    pub(crate) async fn end(self) {
        let namespaces = self.namespaces();
        let at_once = DeleteParams::default().grace_period(0);
        namespaces.delete(&self.namespace, &at_once).await.unwrap();
        until(async || matches!(namespaces.get_opt(&self.namespace).await, Ok(None))).await;
    }
}

/// Polls until a condition holds.
pub(crate) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let holding = async {
        while !holds().await {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, holding).await.unwrap();
}
