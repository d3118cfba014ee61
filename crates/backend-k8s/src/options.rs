//! Small option types of the builder.

use serde::Deserialize;

/// The network access of a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Network {
    /// A network policy of the namespace denies all traffic to and from the pod. The
    /// cluster's network plugin must enforce such policies: some do not.
    #[default]
    None,
    /// The cluster's network, as far as its other policies allow.
    Open,
}

impl Network {
    /// Returns the value of the label of pods with this access.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Open => "open",
        }
    }
}

/// A part of the hardening that is given up. Each must be requested by name. There is
/// none for a privileged container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Relaxation {
    /// Allows root: the user of the options, or without one the user of the image.
    Root,
    /// Makes the root file system writable. A container that is restarted loses what was
    /// written there.
    WritableRoot,
    /// Lets programs such as `sudo` gain privileges.
    PrivilegeEscalation,
    /// Disables the system call filter.
    UnconfinedSeccomp,
}

/// The way the agent gets into a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Delivery {
    /// [`Exec`](Self::Exec), or for an image without a shell an init container, if there
    /// is an [agent image](crate::K8sBuilder::agent_image).
    #[default]
    Auto,
    /// Over the stream of one exec. The image needs `sh`.
    Exec,
    /// By an init container of this image, which has the agent as its program. The
    /// sandbox's image needs no shell.
    Init {
        /// The reference of the agent image.
        image: String,
    },
}

/// When a node pulls the image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PullPolicy {
    /// If the node does not have it.
    #[default]
    IfNotPresent,
    /// For every pod.
    Always,
    /// Never: the node must have it.
    Never,
}

impl PullPolicy {
    /// Returns the policy as Kubernetes writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::IfNotPresent => "IfNotPresent",
            Self::Always => "Always",
            Self::Never => "Never",
        }
    }
}

/// A volume of the pod, mounted in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    pub(crate) source: Source,
    pub(crate) target: String,
    pub(crate) read_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// An empty directory on the node, which ends with the pod.
    EmptyDir { size: Option<u64>, in_memory: bool },
    /// A persistent volume claim of the namespace.
    Claim(String),
}

impl Volume {
    /// Mounts an empty directory at `target`. It ends with the pod. A pod that writes
    /// more than `size` bytes to it is evicted after a while.
    pub fn empty_dir(target: impl Into<String>, size: Option<u64>) -> Self {
        let in_memory = false;
        Self::new(Source::EmptyDir { size, in_memory }, target.into())
    }

    /// Mounts a directory in memory at `target`, which counts as memory of the sandbox.
    /// Writes beyond `size` bytes fail.
    pub fn memory(target: impl Into<String>, size: u64) -> Self {
        let source = Source::EmptyDir {
            size: Some(size),
            in_memory: true,
        };
        Self::new(source, target.into())
    }

    /// Mounts the persistent volume claim `claim`, which must exist, at `target`. It
    /// outlives the pod.
    ///
    /// ```
    /// use backend_k8s::Volume;
    /// let files = Volume::claim("files-of-alice", "/workspace");
    /// # let _ = files;
    /// ```
    pub fn claim(claim: impl Into<String>, target: impl Into<String>) -> Self {
        Self::new(Source::Claim(claim.into()), target.into())
    }

    fn new(source: Source, target: String) -> Self {
        Self {
            source,
            target,
            read_only: false,
        }
    }

    backend_core::setters! {
        /// Sets whether the mount is read-only.
        read_only: bool,
    }
}
