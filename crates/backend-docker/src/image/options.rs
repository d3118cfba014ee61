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

    backend_core::setters! {
        /// Sets the builder.
        fn with_builder(self, builder: Builder) { self.builder = builder }

        /// Sets certificates to trust during the build.
        fn with_ca_bundle(self, bundle: CaBundle) { self.ca_bundle = Some(bundle) }

        /// Sets the network for commands that run during a build.
        fn with_network(self, network: impl Into<String>) { self.network = Some(network.into()) }

        /// Sets whether every step is run again.
        fn with_no_cache(self, no_cache: bool) { self.no_cache = no_cache }

        /// Sets whether older images of the same runtime are kept.
        fn with_keep_superseded(self, keep: bool) { self.keep_superseded = keep }

        /// Sets the registry credentials.
        fn with_logins(self, logins: Logins) { self.logins = logins }
    }
}
