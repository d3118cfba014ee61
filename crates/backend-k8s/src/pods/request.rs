//! The parts of requests that pods and other objects have in common.

use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backend_core::{Error, Result};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{ListParams, Preconditions};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// Objects that one request for a list asks for.
const PAGE: u32 = 500;
/// The most objects that are listed.
const LISTED: usize = 100_000;

/// Lists the objects that a label selector matches, with the version that a watch can begin
/// at.
pub(super) async fn list_all<K>(
    cluster: &Cluster,
    api: &Api<K>,
    selector: &str,
) -> Result<(Vec<K>, String)>
where
    K: Clone + Debug + DeserializeOwned,
{
    let mut parameters = ListParams::default().labels(selector).limit(PAGE);
    let mut objects = Vec::new();
    loop {
        let page = api.list(&parameters).await;
        let page = page.map_err(|error| cluster.error(error))?;
        objects.extend(page.items);
        if objects.len() > LISTED {
            return Err(Error::too_large(format!(
                "there are more than {LISTED} of them in the namespace; select fewer by a label"
            )));
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok((objects, page.metadata.resource_version.unwrap_or_default())),
        }
    }
}

/// Makes a change one for the version that was read.
pub(super) fn conditional(mut change: Value, uid: &str, resource_version: &str) -> Value {
    if let Some(change) = change.as_object_mut() {
        let metadata = change.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("uid".to_owned(), json!(uid));
            metadata.insert("resourceVersion".to_owned(), json!(resource_version));
        }
    }
    change
}

/// The versions of a pod or an object that may be deleted. Another one of its name never is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Any version, also one that changed after it was read.
    Any,
    /// The one that was read.
    Read,
}

impl Version {
    pub(super) fn preconditions(self, uid: &str, resource_version: &str) -> Preconditions {
        let is_version = self == Self::Read;
        Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: is_version.then(|| resource_version.to_owned()),
        }
    }
}

/// Returns a time of the cluster, which has whole seconds.
pub(super) fn moment(time: Option<Time>) -> SystemTime {
    let seconds = time.and_then(|time| u64::try_from(time.0.as_second()).ok());
    UNIX_EPOCH + Duration::from_secs(seconds.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_for_one_version() {
        let change = json!({"metadata": {"labels": {"a": null}}, "spec": {}});
        let change = conditional(change, "u", "7");
        let metadata = json!({"labels": {"a": null}, "uid": "u", "resourceVersion": "7"});
        assert_eq!(change, json!({"metadata": metadata, "spec": {}}));
        let change = conditional(json!({}), "u", "7");
        assert_eq!(change["metadata"]["resourceVersion"], "7");
    }
}
