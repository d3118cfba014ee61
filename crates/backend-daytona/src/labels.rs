//! The labels that identify sandboxes, and the process that owns one.

use std::collections::BTreeMap;

use sandbox_wire::owner;

/// The prefix of all our labels.
pub(crate) const PREFIX: &str = "agentbox.dev/";
/// The program that created it.
pub(crate) const MANAGED_BY: &str = "agentbox.dev/managed-by";
/// The value of [`MANAGED_BY`].
pub(crate) const MANAGER: &str = "agentbox";
/// The sandbox's own name. On a fork of a sandbox it is that of the other one.
pub(crate) const SANDBOX: &str = "agentbox.dev/sandbox";
/// The process that created it.
pub(crate) const OWNER: &str = "agentbox.dev/owner";
/// The host of that process.
pub(crate) const HOST: &str = "agentbox.dev/host";
/// The action to take when its owner is gone.
pub(crate) const DISPOSAL: &str = "agentbox.dev/disposal";
/// A fingerprint of its configuration: equal options give equal values.
pub(crate) const CONFIG: &str = "agentbox.dev/config";
/// A random number of the object that created it.
pub(crate) const CREATION: &str = "agentbox.dev/creation";
/// The image that it was built from.
pub(crate) const IMAGE: &str = "agentbox.dev/image";
/// The directory that relative paths and commands start from.
pub(crate) const WORKING_DIR: &str = "agentbox.dev/working-dir";

/// Whether a sandbox with this name and these labels was created by this crate, and is no
/// copy.
pub(crate) fn is_ours(name: &str, labels: &BTreeMap<String, String>) -> bool {
    let label = |key: &str| labels.get(key).map(String::as_str);
    label(MANAGED_BY) == Some(MANAGER) && label(SANDBOX) == Some(name)
}

/// Returns a function that tells from a sandbox's labels whether its owner is certainly
/// gone.
pub(crate) fn judge() -> impl Fn(&BTreeMap<String, String>) -> bool {
    let is_gone = owner::judge();
    move |labels| is_gone(labels.get(OWNER), labels.get(HOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_no_sandbox_of_ours() {
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let ours = BTreeMap::from([label(MANAGED_BY, MANAGER), label(SANDBOX, "box")]);
        assert!(is_ours("box", &ours));
        assert!(!is_ours("fork-of-box", &ours));
        assert!(!is_ours("box", &BTreeMap::from([label(SANDBOX, "box")])));
        assert!(!is_ours("box", &BTreeMap::new()));
        assert!(!judge()(&ours), "no process is named");
    }
}
