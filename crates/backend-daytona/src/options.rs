//! Small option and result types.

use serde::Deserialize;

use crate::secret::Secret;

/// The network access of a sandbox, which the service enforces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Network {
    /// None.
    #[default]
    None,
    /// Everything that the organization may reach.
    Open,
    /// Only these.
    Allow {
        /// Networks, such as `192.0.2.0/24`.
        #[serde(default)]
        addresses: Vec<String>,
        /// Domains, such as `pypi.org` or `*.example.com`.
        #[serde(default)]
        domains: Vec<String>,
    },
}

/// A volume of the organization, mounted in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    pub(crate) volume: String,
    pub(crate) target: String,
    pub(crate) subpath: Option<String>,
}

impl Volume {
    /// Mounts the volume with this id, which must exist, at `target`. It outlives the
    /// sandbox.
    ///
    /// ```
    /// use backend_daytona::Volume;
    /// let files = Volume::new("vol-1", "/data").subpath("alice");
    /// # let _ = files;
    /// ```
    pub fn new(volume: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            volume: volume.into(),
            target: target.into(),
            subpath: None,
        }
    }

    backend_core::setters! {
        /// Mounts only this directory of the volume.
        fn subpath(self, subpath: impl Into<String>) { self.subpath = Some(subpath.into()) }
    }
}

/// The way into a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Connection {
    /// The agent, through the toolbox's proxy to a port.
    Proxy,
    /// The agent, through the preview of a port.
    Preview,
    /// The image's own tools, through sessions of the toolbox.
    Sessions,
}

/// The address under which a port of a sandbox can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreviewUrl {
    /// The address.
    pub url: String,
    /// Its token, which a request sends as the header `X-Daytona-Preview-Token`, unless
    /// the sandbox is public.
    pub token: Secret,
}
