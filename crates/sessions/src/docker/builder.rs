//! [`DockerEngineBuilder`]: the options of a [`DockerEngine`](super::DockerEngine).

use std::path::PathBuf;
use std::time::Duration;

use backend_core::{Error, ErrorKind, Result};
use backend_docker::image::BuildOptions;
use backend_docker::{Daemon, DockerBuilder};
use sandbox_runtime::Runtime;

use super::files::Files;
use super::names::Names;

/// The space of sessions, unless another one is named.
const DEFAULT_SPACE: &str = "default";

/// Options of a [`DockerEngine`](super::DockerEngine), from
/// [`DockerEngine::builder`](super::DockerEngine::builder), which has an example.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct DockerEngineBuilder {
    pub(super) daemon: Daemon,
    pub(super) template: DockerBuilder,
    pub(super) images: BuildOptions,
    pub(super) runtime: Option<Runtime>,
    pub(super) pools: Vec<(Runtime, usize)>,
    space: String,
    root: Option<PathBuf>,
    quota: Option<u64>,
    keep_for: Option<Duration>,
}

impl DockerEngineBuilder {
    pub(super) fn new(daemon: Daemon) -> Self {
        Self {
            daemon,
            template: DockerBuilder::default(),
            images: BuildOptions::new(),
            runtime: None,
            pools: Vec::new(),
            space: DEFAULT_SPACE.to_owned(),
            root: None,
            quota: None,
            keep_for: None,
        }
    }

    backend_core::setters! {
        /// Sets the options that every container is created with: limits, network, agent,
        /// environment. Its image, runtime, name, working directory, build options and daemon
        /// are set by the engine. Its root cannot be read-only, because the engine keeps
        /// small files there: the variables of a session, and without a
        /// [root](Self::workspace_root) all it knows.
        fn template(self, template: DockerBuilder) { self.template = template }

        /// Sets how images are built and pulled.
        fn images(self, images: BuildOptions) { self.images = images }

        /// Sets the runtime of sessions that are opened without one. For an image that is used
        /// as it is: `Runtime::from_image("python", "python:3.12-slim")`.
        fn runtime(self, runtime: Runtime) { self.runtime = Some(runtime) }

        /// Names the space of the sessions: small letters and digits. Processes that name the
        /// same space share its sessions; those of other spaces are never touched. `default`
        /// unless set.
        fn space(self, space: impl Into<String>) { self.space = space.into() }

        /// Keeps the files of each session in `{root}/{id}/workspace`, mounted at the runtime's
        /// working directory. They survive the container. All processes that share the space
        /// must see the same directory, and so must the daemon.
        ///
        /// Without a root, a session's files end with its container.
        fn workspace_root(self, root: impl Into<PathBuf>) { self.root = Some(root.into()) }

        /// Limits the bytes that all sessions store together. When they are used up, opening a
        /// session that has no container is `TooLarge`, with a
        /// [`QuotaError`](crate::QuotaError). Running sessions are not interrupted.
        fn quota(self, bytes: u64) { self.quota = Some(bytes) }

        /// Deletes a session that does not run, and its files, this long after its last use.
        /// They are kept until they are purged by default.
        fn keep_stored_for(self, time: Duration) { self.keep_for = Some(time) }

        /// Keeps this many containers of a runtime ready. A new session takes one, which is
        /// much faster than creating it; a session with stored files never does.
        fn pool(self, runtime: Runtime, size: usize) { self.pools.push((runtime, size)) }
    }

    /// Checks the options.
    pub(super) fn check(&self) -> Result<(Names, Option<Files>)> {
        let names = Names::new(&self.space)?;
        let runtimes = self.pools.iter().map(|(runtime, _)| runtime);
        for runtime in runtimes.chain(&self.runtime) {
            runtime.validate()?;
        }
        let Some(root) = &self.root else {
            if self.quota.is_some() || self.keep_for.is_some() {
                return Err(Error::new(
                    ErrorKind::Config,
                    "a quota or a time for stored files is given without a root for them; set `workspace_root`",
                ));
            }
            return Ok((names, None));
        };
        let mut files = Files::new(root)?;
        files.check_engine()?;
        files.quota = self.quota;
        files.keep_for = self.keep_for;
        Ok((names, Some(files)))
    }
}
