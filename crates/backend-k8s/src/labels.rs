//! The labels and annotations that identify sandboxes, and the process that owns one.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sandbox_wire::owner::{self, Owner};

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

/// The pid namespace of processes that are in no container.
const NO_CONTAINER: &str = "4026531836";

/// Returns a function that tells from a pod's annotations whether its owner is certainly
/// gone. Nothing is certain about processes of other hosts and pid namespaces.
///
/// A cluster has processes of many hosts, and those in containers get the names of their
/// hosts from an image and options: several hosts have the same. So the processes of an
/// earlier boot are only judged if they were in no container.
pub(crate) fn judge() -> impl Fn(&BTreeMap<String, String>) -> bool {
    let (here, host) = (Owner::current(), owner::host());
    move |annotations| {
        let owner = annotations.get(OWNER).and_then(|text| Owner::parse(text));
        let same_host = !host.is_empty() && annotations.get(HOST) == Some(&host);
        let both = owner.zip(here.as_ref());
        both.is_some_and(|(owner, here)| {
            let is_known = [&owner, here]
                .iter()
                .all(|one| one.pid_namespace == NO_CONTAINER);
            owner.is_gone(here, same_host && is_known)
        })
    }
}

#[cfg(test)]
mod tests {
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
        let mut earlier = here.clone();
        earlier.boot = "earlier".into();
        let judged = |owner: &str, host: &str| {
            let annotations = [(OWNER, owner), (HOST, host)];
            let owned = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
            judge()(&owned.into())
        };
        let host = owner::host();
        assert!(!judged(&here.label(), &host), "it lives");
        assert!(judged(&gone.label(), "elsewhere"), "the boot id is ours");
        let is_known = !host.is_empty() && here.pid_namespace == NO_CONTAINER;
        assert_eq!(judged(&earlier.label(), &host), is_known);
        assert!(!judged(&earlier.label(), "elsewhere"), "another host");
        // The name and the machine id of a container are those of its image and its
        // options, so they are the same on many hosts.
        earlier.pid_namespace = "1".into();
        assert!(!judged(&earlier.label(), &host), "a container");
        assert!(!judged("nonsense", &host));
        assert!(!judge()(&BTreeMap::new()));
    }
}
