//! Images: pulled or built once, when needed, and pruned when superseded.
//!
//! A runtime's image name contains a hash of everything that determines its content, so
//! a second start, or another process, finds it and builds nothing. Builds use the
//! daemon's plain API with an uploaded context: they need no program, no session and no
//! frontend from a registry.

mod build;
mod ca;
mod context;
mod event;
mod http;
mod logins;
mod options;
mod progress;
mod store;

use backend_core::Result;
use sandbox_wire::engine;
use sha2::{Digest, Sha256};

use crate::daemon::Daemon;
use crate::dockerfile::{self, Style};
use crate::runtime::{Runtime, config};

pub use build::Build;
pub use ca::CaBundle;
pub use event::BuildEvent;
pub use logins::Logins;
pub use options::{BuildOptions, Builder};

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
    Ok(format!("{}:{}-{hex}", store::REPOSITORY, runtime.name))
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
