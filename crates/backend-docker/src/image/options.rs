//! [`BuildOptions`]: how an image is built.

use super::ca::CaBundle;
use super::logins::Logins;

/// The builder to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Builder {
    /// BuildKit where the daemon has it, else the classic builder.
    #[default]
    Auto,
    /// BuildKit. It keeps downloads between builds and can use a [`CaBundle`].
    BuildKit,
    /// The classic builder of old daemons.
    Classic,
}

/// Options for building images.
///
/// ```
/// use backend_docker::image::{BuildOptions, Builder};
///
/// let options = BuildOptions::new()
///     .with_builder(Builder::BuildKit)
///     .with_network("host");
/// assert_eq!(options.builder, Builder::BuildKit);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct BuildOptions {
    /// The builder.
    pub builder: Builder,
    /// Certificates to trust during the build and never afterwards.
    pub ca_bundle: Option<CaBundle>,
    /// The network for commands that run during a build: `host`, `none` or, with the
    /// classic builder, a network's name. Defaults to the daemon's default.
    pub network: Option<String>,
    /// Runs every step again without the build cache, even if the image exists.
    pub no_cache: bool,
    /// Keeps older images of the same runtime after a build.
    pub keep_superseded: bool,
    /// Credentials for registries that require a login.
    pub logins: Logins,
}

impl BuildOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the builder.
    #[must_use]
    pub fn with_builder(mut self, builder: Builder) -> Self {
        self.builder = builder;
        self
    }

    /// Sets certificates to trust during the build.
    #[must_use]
    pub fn with_ca_bundle(mut self, bundle: CaBundle) -> Self {
        self.ca_bundle = Some(bundle);
        self
    }

    /// Sets the network for commands that run during a build.
    #[must_use]
    pub fn with_network(mut self, network: impl Into<String>) -> Self {
        self.network = Some(network.into());
        self
    }

    /// Sets whether every step is run again.
    #[must_use]
    pub fn with_no_cache(mut self, no_cache: bool) -> Self {
        self.no_cache = no_cache;
        self
    }

    /// Sets whether older images of the same runtime are kept.
    #[must_use]
    pub fn with_keep_superseded(mut self, keep: bool) -> Self {
        self.keep_superseded = keep;
        self
    }

    /// Sets the registry credentials.
    #[must_use]
    pub fn with_logins(mut self, logins: Logins) -> Self {
        self.logins = logins;
        self
    }
}
