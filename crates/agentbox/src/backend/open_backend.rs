//! An open backend, and the actions that end it with the program.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Backend, Error, Result, VPath};
use backend_mounts::MountConfig;

use crate::output;

#[derive(Debug)]
pub(crate) struct OpenBackend {
    pub(crate) backend: Arc<dyn Backend>,
    /// The mounts with their permissions, if it consists of mounts.
    pub(crate) mounts: Option<MountConfig>,
    /// The same backend behind a guard that enforces the mounts' permissions.
    pub(super) guarded: Option<Arc<dyn Backend>>,
    pub(super) host_dirs: Vec<HostDir>,
    /// The directories in which confined commands can change everything.
    pub(super) confined: Vec<PathBuf>,
    pub(super) stop_actions: StopActions,
}

/// A host directory that a backend shows.
#[derive(Debug, Clone)]
pub(super) struct HostDir {
    /// The directory, with links resolved.
    pub(super) host: PathBuf,
    /// Its path in the backend.
    pub(super) at: VPath,
    /// Whether commands can also use its host path.
    pub(super) commands: bool,
}

impl OpenBackend {
    /// Wraps a backend. `stop` tells how the program's end stops it; `None` leaves it.
    pub(crate) fn new(backend: Arc<dyn Backend>, stop: Option<StopMode>) -> Self {
        let stop_action = StopAction {
            backend: Arc::clone(&backend),
            mode: stop,
            outliving: None,
        };
        Self {
            stop_actions: StopActions(vec![stop_action]),
            backend,
            mounts: None,
            guarded: None,
            host_dirs: Vec::new(),
            confined: Vec::new(),
        }
    }

    /// Has the user told of a sandbox that is still there when the program has ended.
    #[cfg(feature = "daytona")]
    pub(super) fn outliving(mut self, sandbox: impl Outliving + 'static) -> Self {
        if let Some(action) = self.stop_actions.0.first_mut() {
            action.outliving = Some(Box::new(sandbox));
        }
        self
    }

    /// Returns the backend for use as a part, which enforces its mounts without asking.
    pub(super) fn guarded(&self) -> Arc<dyn Backend> {
        Arc::clone(self.guarded.as_ref().unwrap_or(&self.backend))
    }

    /// Returns the paths by which its tools and commands know a host file.
    pub(crate) fn paths_of(&self, file: &Path) -> Vec<VPath> {
        let mut paths = Vec::new();
        for file in host_paths(file) {
            for dir in &self.host_dirs {
                let Ok(beneath) = file.strip_prefix(&dir.host) else {
                    continue;
                };
                let mut names = beneath.components().map(|name| name.as_os_str().to_str());
                let path = names.try_fold(dir.at.clone(), |path, name| path.child(name?).ok());
                let on_machine = file.to_str().filter(|_| dir.commands);
                let on_machine = on_machine.and_then(|file| VPath::parse(file).ok());
                paths.extend(path.into_iter().chain(on_machine));
            }
        }
        paths
    }

    /// Returns the directory above this file that confined commands can change.
    pub(crate) fn confined_directory_of(&self, file: &Path) -> Option<&Path> {
        let paths = host_paths(file);
        let mut directories = self.confined.iter().map(PathBuf::as_path);
        directories.find(|directory| paths.iter().any(|path| path.starts_with(directory)))
    }

    /// Takes the stop actions, for a caller that drops the backend earlier than this.
    pub(crate) fn take_stop_actions(&mut self) -> StopActions {
        std::mem::take(&mut self.stop_actions)
    }

    /// Stops every command and waits until they are gone.
    pub(crate) async fn stop(&self) {
        self.stop_actions.stop().await;
    }
}

/// Returns a file's host paths: that of the last link, and that of its target.
pub(crate) fn host_paths(file: &Path) -> Vec<PathBuf> {
    let Ok(file) = std::path::absolute(file) else {
        return Vec::new();
    };
    let parent = file.parent().and_then(|parent| parent.canonicalize().ok());
    let link = parent
        .zip(file.file_name())
        .map(|(parent, name)| parent.join(name));
    let mut all: Vec<PathBuf> = link.into_iter().chain(file.canonicalize()).collect();
    if all.is_empty() {
        // Neither exists yet, but the file may be created.
        all.push(file);
    }
    all.dedup();
    all
}

/// The stop actions of all parts of a backend. A part that is only dropped is ended too,
/// but in the background, and the program may exit before that is done.
#[derive(Debug, Default)]
pub(crate) struct StopActions(Vec<StopAction>);

#[derive(Debug)]
struct StopAction {
    backend: Arc<dyn Backend>,
    mode: Option<StopMode>,
    outliving: Option<Box<dyn Outliving>>,
}

/// A sandbox that can outlive the program, where the user does not see it.
#[async_trait]
pub(super) trait Outliving: fmt::Debug + Send + Sync {
    /// Returns the message for a stop that failed; `None` if nothing was left.
    fn left(&self, error: &Error) -> Option<String>;

    /// Returns the message for a stop that succeeded, if the sandbox was kept.
    fn kept(&self) -> Option<String>;

    /// Takes away what was started in a sandbox that is not stopped.
    async fn leave(&self) -> Result<()> {
        Ok(())
    }
}

impl StopActions {
    pub(super) fn extend(&mut self, part: Self) {
        self.0.extend(part.0);
    }

    /// Returns `true` if any of them is still in use elsewhere.
    pub(crate) fn is_used(&self) -> bool {
        let mut parts = self.0.iter();
        parts.any(|part| Arc::strong_count(&part.backend) > 1)
    }

    /// Runs all of them concurrently.
    pub(crate) async fn stop(&self) {
        let stops = self.0.iter().map(|part| part.stop());
        futures::future::join_all(stops).await;
    }
}

impl StopAction {
    async fn stop(&self) {
        let Some(mode) = self.mode else {
            if let Some(outliving) = &self.outliving
                && let Err(error) = outliving.leave().await
            {
                tracing::warn!(%error, "a program was left in the sandbox");
            }
            return;
        };
        let Some(sandbox) = self.backend.as_sandbox() else {
            return;
        };
        match (sandbox.stop(mode).await, &self.outliving) {
            (Ok(()), None) => {}
            (Ok(()), Some(outliving)) => {
                if let Some(message) = outliving.kept() {
                    output::note(&format!("agentbox: {message}"));
                }
            }
            (Err(error), None) => {
                tracing::warn!(%error, "the sandbox could not be stopped");
            }
            (Err(error), Some(outliving)) => {
                if let Some(message) = outliving.left(&error) {
                    tracing::warn!(%error, "{message}");
                }
            }
        }
    }
}
