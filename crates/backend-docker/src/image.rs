//! Images: pulled or built once, when needed, and pruned when superseded.
//!
//! A runtime's image name contains a hash of everything that determines its content, so
//! a second start, or another process, finds it and builds nothing. Builds use the
//! daemon's plain API with an uploaded context: they need no program, no session and no
//! frontend from a registry.

mod build;
mod ca;
mod context;
mod http;
mod logins;
mod progress;
mod store;

use backend_core::{Error, Result};
use sandbox_wire::engine;
use sha2::{Digest, Sha256};

use crate::daemon::Daemon;
use crate::dockerfile::{self, Style};
use crate::runtime::{Runtime, config};

pub use build::{Build, BuildEvent};
pub use ca::CaBundle;
pub use logins::Logins;

/// The repository of images built by this crate.
const REPOSITORY: &str = "agentbox-runtime";

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

/// Returns the name of a runtime's image: the one it specifies, or one made of the
/// runtime's name and a hash of everything that determines the content of the build.
///
/// Neither the description, nor the builder, nor a [`CaBundle`] changes it.
///
/// ```
/// use backend_docker::{Runtime, image};
///
/// let web = Runtime::builtin("python-web")?;
/// assert!(image::name(&web)?.starts_with("agentbox-runtime:python-web-"));
/// assert_eq!(image::name(&Runtime::builtin("rust")?)?, "rust:1-slim");
/// # Ok::<(), backend_core::Error>(())
/// ```
///
/// # Errors
///
/// `Config` if the runtime is not valid.
pub fn name(runtime: &Runtime) -> Result<String> {
    let Some(text) = dockerfile::generate(runtime, Style::default())? else {
        return runtime.image.clone().ok_or_else(|| {
            config("a runtime has neither image nor base_image; write one of them".to_owned())
        });
    };
    let mut hex = String::with_capacity(12);
    for byte in Sha256::digest(text.as_bytes()).iter().take(6) {
        hex.push_str(&format!("{byte:02x}"));
    }
    Ok(format!("{REPOSITORY}:{}-{hex}", runtime.name))
}

/// Returns the Dockerfile that a runtime's image is built from, or `None` if its image
/// is used as it is. [`Builder::Auto`] shows BuildKit's.
///
/// # Errors
///
/// `Config` if the runtime is not valid.
pub fn dockerfile(runtime: &Runtime, builder: Builder) -> Result<Option<String>> {
    dockerfile::generate(
        runtime,
        Style {
            cache_mounts: builder != Builder::Classic,
            tools: false,
        },
    )
}

/// Ensures that the daemon has this runtime's image and returns its name.
///
/// Concurrent calls for the same image share one pull or build, which is cancelled when
/// the last of them is dropped.
///
/// # Errors
///
/// `Config` if the runtime is not valid or the registry has no such image;
/// `Unavailable` if the daemon or the registry cannot be reached, or, with the end
/// of its log, if the build fails; `Unsupported` for a [`CaBundle`] with the classic
/// builder.
pub async fn ensure(daemon: &Daemon, runtime: &Runtime, options: &BuildOptions) -> Result<String> {
    build(daemon, runtime, options)?.finish().await
}

/// Starts the work of [`ensure`], or joins it if it is already running, and reports the
/// progress.
///
/// ```no_run
/// use backend_docker::{Daemon, Runtime, image};
/// use futures::StreamExt;
///
/// # async fn example() -> backend_core::Result<()> {
/// let daemon = Daemon::from_env()?;
/// let runtime = Runtime::builtin("python-datascience")?;
/// let mut build = image::build(&daemon, &runtime, &image::BuildOptions::new())?;
/// while let Some(event) = build.next().await {
///     println!("{event}");
/// }
/// let image = build.finish().await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `Config` if the runtime is not valid; `Unavailable` if no thread can be started.
/// All others come from [`Build::finish`].
pub fn build(daemon: &Daemon, runtime: &Runtime, options: &BuildOptions) -> Result<Build> {
    let name = name(runtime)?;
    build::begin(daemon, runtime, options, name)
}

/// Removes the images that were built for this runtime's name and are superseded, and
/// returns their names. Images in use are kept.
///
/// # Errors
///
/// `Config` if the runtime is not valid; `Unavailable` if the daemon cannot be
/// reached.
pub async fn prune(daemon: &Daemon, runtime: &Runtime) -> Result<Vec<String>> {
    let current = name(runtime)?;
    let (daemon, label) = (daemon.clone(), runtime.name.clone());
    engine::run(async move { store::prune(&daemon, &label, Some(&current)).await }).await
}

/// The error for a daemon that cannot be reached, with the next step.
fn no_answer(daemon: &Daemon) -> Error {
    Error::unavailable(format!(
        "the Docker daemon at {} does not answer; start it, or give its address",
        daemon.address()
    ))
    .on("docker")
}
