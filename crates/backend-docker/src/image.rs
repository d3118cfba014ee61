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

use std::path::{Path, PathBuf};

use backend_core::Result;
use sandbox_runtime::Runtime;
use sandbox_runtime::dockerfile::Style;
use sandbox_wire::engine;

use crate::daemon::{self, Daemon};

pub use build::Build;
pub use ca::CaBundle;
pub use event::BuildEvent;
pub use logins::Logins;
pub use options::{BuildOptions, Builder};

/// Returns the Dockerfile that a runtime's image is built from, or `None` if its image
/// is used as it is. [`Builder::Auto`] shows BuildKit's.
///
/// # Errors
///
/// `Config` if the runtime is not valid.
pub fn dockerfile(runtime: &Runtime, builder: Builder) -> Result<Option<String>> {
    let style = Style {
        cache_mounts: builder != Builder::Classic,
        tools: false,
    };
    let text = runtime.dockerfile(style);
    text.map_err(|error| error.on("docker"))
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
    build::begin(daemon, runtime, options, name(runtime)?)
}

/// Returns whether the daemon has an image, without fetching it.
///
/// # Errors
///
/// `Unavailable` if the daemon cannot be reached.
pub async fn is_present(daemon: &Daemon, image: &str) -> Result<bool> {
    let (daemon, image) = (daemon.clone(), image.to_owned());
    daemon::run(async move { store::is_present(&daemon, &image).await }).await
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

/// Gives an image of the daemon another name, such as that of a registry it is to be
/// pushed to. A name without a tag gets `latest`.
///
/// # Errors
///
/// `Config` for a name that is not valid; `NotFound` if the daemon has no such image;
/// `Unavailable` if the daemon cannot be reached.
pub async fn tag(daemon: &Daemon, image: &str, name: &str) -> Result<()> {
    let (daemon, image, name) = (daemon.clone(), image.to_owned(), name.to_owned());
    daemon::run(async move { store::tag(&daemon, &image, &name).await }).await
}

/// Writes an image of the daemon to a file, as the archive that `docker load` and
/// `ctr images import` read. A failure can leave a part of it.
///
/// # Errors
///
/// `NotFound` if the daemon has no such image; `Unavailable` if the daemon cannot be
/// reached, or the file cannot be written.
pub async fn save(daemon: &Daemon, image: &str, file: &Path) -> Result<()> {
    let (daemon, image, file) = (daemon.clone(), image.to_owned(), PathBuf::from(file));
    daemon::run(async move { store::save(&daemon, &image, &file).await }).await
}

fn name(runtime: &Runtime) -> Result<String> {
    runtime.image_name().map_err(|error| error.on("docker"))
}
