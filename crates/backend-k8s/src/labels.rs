//! The labels and annotations that identify sandboxes, and the process that owns one.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sandbox_wire::owner;

/// The container of a pod that is the sandbox.
pub(crate) const CONTAINER: &str = "sandbox";

/// The prefix of all our labels and annotations.
pub(crate) const PREFIX: &str = "agentbox.dev/";
/// Label: the pod's own name. On a pod that was made from the manifest of a sandbox it
/// is that of the other one.
pub(crate) const SANDBOX: &str = "agentbox.dev/sandbox";
/// Label: the network access, which the network policy selects by.
pub(crate) const NETWORK: &str = "agentbox.dev/network";
/// Label: the program that created it.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`].
pub(crate) const MANAGER: &str = "agentbox";

/// Annotation: the process that created it.
pub(crate) const OWNER: &str = "agentbox.dev/owner";
/// Annotation: the host of that process.
pub(crate) const HOST: &str = "agentbox.dev/host";
/// Annotation: the action to take when its owner is gone.
pub(crate) const DISPOSAL: &str = "agentbox.dev/disposal";
/// Annotation: a fingerprint of its configuration; equal options give equal values.
pub(crate) const CONFIG: &str = "agentbox.dev/config";
/// Annotation: a random number of the object that created it.
pub(crate) const CREATION: &str = "agentbox.dev/creation";
/// Annotation: seconds without activity after which it is stopped.
pub(crate) const IDLE: &str = "agentbox.dev/idle-timeout";

/// Whether an object with this metadata is a sandbox of this crate, and no copy.
pub(crate) fn is_ours(metadata: &ObjectMeta) -> bool {
    let label = |key: &str| metadata.labels.as_ref()?.get(key).map(String::as_str);
    label(MANAGED_BY) == Some(MANAGER)
        && label(SANDBOX).is_some()
        && label(SANDBOX) == metadata.name.as_deref()
}

/// Returns the container of a pod that is the sandbox.
pub(crate) fn container(pod: &Pod) -> Option<&Container> {
    let mut containers = pod.spec.as_ref()?.containers.iter();
    containers.find(|container| container.name == CONTAINER)
}

/// Returns a function that tells from a pod's annotations whether its owner is certainly
/// gone.
pub(crate) fn judge() -> impl Fn(&BTreeMap<String, String>) -> bool {
    let is_gone = owner::judge();
    move |annotations| is_gone(annotations.get(OWNER), annotations.get(HOST))
}

#[cfg(test)]
mod tests {
    use sandbox_wire::owner::Owner;

    use super::*;

    fn labelled(name: &str, labels: &[(&str, &str)]) -> ObjectMeta {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels.iter().map(owned).collect()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn a_copy_of_a_manifest_is_no_sandbox() {
        let ours = [(MANAGED_BY, MANAGER), (SANDBOX, "box")];
        assert!(is_ours(&labelled("box", &ours)));
        assert!(!is_ours(&labelled("copy", &ours)));
        assert!(!is_ours(&labelled("box", &ours[..1])));
        assert!(!is_ours(&labelled("box", &ours[1..])));
        assert!(!is_ours(&ObjectMeta::default()));
        let selector = format!("{MANAGED_BY}={MANAGER},{SANDBOX}");
        assert_eq!(crate::pods::SANDBOXES, selector);
    }

    #[test]
    fn only_the_pods_of_processes_that_are_gone_are_judged_so() {
        let here = Owner::current().unwrap();
        let mut gone = here.clone();
        gone.pid = u32::MAX - 9;
        let judged = |owner: &Owner| {
            let annotations = [(OWNER, owner.label()), (HOST, owner::host())];
            judge()(
                &annotations
                    .map(|(key, value)| (key.to_owned(), value))
                    .into(),
            )
        };
        assert!(!judged(&here), "it lives");
        assert!(judged(&gone));
        assert!(!judge()(&BTreeMap::new()));
    }
}
