//! The places, names and addresses of the cluster.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::images::hex;
use crate::workspace::Workspace;

/// The name of the only node.
pub(super) const NODE: &str = "node1";

/// The node's interface, to which the pods are connected, and its address. The kubelet
/// refuses an address of the loopback interface.
pub(super) const BRIDGE: &str = "pods0";
pub(super) const NODE_IP: &str = "10.88.0.1";

/// The hardware address of that interface. A bridge without one takes that of a pod, and changes
/// it as pods come and go: the others would lose the node until they ask for it again.
pub(super) const BRIDGE_MAC: &str = "02:00:0a:58:00:01";

/// The addresses of pods. The first ones are left to the node.
pub(super) const POD_NETWORK: &str = "10.88.0.0/16";
pub(super) const FIRST_POD: &str = "10.88.1.0";

/// The addresses of services, and the one at which pods find the API server. It is the
/// node's too, so that this works without a proxy for services.
pub(super) const SERVICE_NETWORK: &str = "10.96.0.0/16";
pub(super) const SERVICE_IP: &str = "10.96.0.1";

/// The port of the API server, which is also that of its service.
pub(super) const API_PORT: &str = "443";

/// The address of the API server in the cluster's network namespace.
pub(super) const API: &str = "https://127.0.0.1:443";

/// Beginning of the name of a cluster's control group. Supervisors of commands remove
/// groups whose names begin with `agentbox-`.
const GROUP: &str = "k8s-agentbox-";

/// The longest directory of a cluster. Sockets below it have names of up to 40
/// characters, and the system allows 107.
const MAX_LEN: usize = 64;

/// The directories of a cluster. Their names need no quoting in a shell or a
/// configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    top: String,
}

impl Layout {
    pub(super) fn new(workspace: &Workspace) -> Result<Self> {
        Self::at(&workspace.cache("cluster"))
    }

    /// Fails if the name of the directory is too long or would need quoting.
    pub(super) fn at(top: &Path) -> Result<Self> {
        let text = top.to_str().unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        ensure!(
            text.chars().all(is_plain) && (1..=MAX_LEN).contains(&text.len()),
            "a cluster cannot be in {}: set XTASK_CACHE to a directory whose name has only ASCII \
             letters, digits, `.`, `_` and `-`, and at most {} bytes",
            top.display(),
            MAX_LEN - "/cluster".len()
        );
        Ok(Self {
            top: text.to_owned(),
        })
    }

    /// Returns a path outside the directory of the running cluster.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        Path::new(&self.top).join(name)
    }

    /// Returns the directory of containerd's images, which outlives the cluster: they are
    /// ten thousand files, which take longer to write and to remove than all else.
    pub(super) fn store(&self) -> String {
        format!("{}/store", self.top)
    }

    /// Returns the directory of the running cluster, which is removed with it.
    pub(crate) fn directory(&self) -> String {
        format!("{}/run", self.top)
    }

    /// Returns a path in the directory of the running cluster.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/run/{name}", self.top)
    }

    /// Returns the configuration for clients that may do everything.
    pub(crate) fn kubeconfig(&self) -> String {
        self.path("kubeconfig")
    }

    /// Returns the script that is `kubectl` for this cluster.
    pub(super) fn kubectl(&self) -> String {
        self.path("kubectl")
    }

    /// Returns the socket of containerd.
    pub(super) fn socket(&self) -> String {
        self.path("containerd.sock")
    }

    /// Returns what a daemon prints. It outlives the cluster, until the next one starts.
    pub(super) fn log(&self, daemon: &str) -> String {
        format!("{}/log/{daemon}.log", self.top)
    }

    /// Returns the file with the process number of a daemon.
    pub(super) fn pid(&self, daemon: &str) -> String {
        self.path(&format!("pids/{daemon}"))
    }

    /// Returns the script that starts a daemon.
    pub(super) fn start(&self, daemon: &str) -> String {
        self.path(&format!("start/{daemon}"))
    }

    /// Returns the path of a certificate or key, without its extension.
    pub(super) fn certificate(&self, name: &str) -> String {
        self.path(&format!("certificates/{name}"))
    }

    /// Returns the control group of all pods. Clusters of two caches have two.
    pub(super) fn control_group(&self) -> String {
        let digest = Sha256::digest(&self.top);
        format!("{GROUP}{}", hex(&digest[..4]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_needs_quoting_or_is_too_long_is_refused() {
        let fine = Layout::at(Path::new("/home/some-one/.cache/agentbox/cluster")).unwrap();
        let socket = "/home/some-one/.cache/agentbox/cluster/run/containerd.sock";
        assert_eq!(fine.socket(), socket);
        for bad in ["/home/some one", "/it's", "/a$b", "", &"/x".repeat(40)] {
            let error = Layout::at(Path::new(bad)).unwrap_err().to_string();
            assert!(error.contains("XTASK_CACHE"), "{error}");
        }
    }

    #[test]
    fn two_caches_have_two_control_groups() {
        let group = |top: &str| Layout::at(Path::new(top)).unwrap().control_group();
        assert_ne!(group("/a"), group("/b"));
        assert_eq!(group("/a"), group("/a"));
        assert_eq!(group("/a").len(), GROUP.len() + 8);
    }
}
