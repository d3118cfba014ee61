//! A backend that was opened, and what becomes of it when the program ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backend_core::ops::StopMode;
use backend_core::{Backend, VPath};
use permissions::mounts::MountConfig;

/// A backend that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) backend: Arc<dyn Backend>,
    /// What may be done in it, if it is made of mounts.
    pub(crate) mounts: Option<MountConfig>,
    /// The same with somebody before it who judges that.
    guarded: Option<Arc<dyn Backend>>,
    /// The directories of this machine that it shows.
    shown: Vec<Shown>,
    /// The directories that confined commands can change, as a whole.
    confined: Vec<PathBuf>,
    ends: Ends,
}

/// A directory of this machine that a backend shows.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// The directory, without links.
    pub(super) host: PathBuf,
    /// Where it shows.
    pub(super) at: VPath,
    /// Whether commands know it by its name on this machine.
    pub(super) commands: bool,
}

impl Opened {
    /// A backend whose commands end with the program, and whose files stay.
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Self {
        Self::ending(backend, End::Stop(StopMode::Keep))
    }

    /// A backend with an end of its own.
    pub(super) fn ending(backend: Arc<dyn Backend>, end: End) -> Self {
        let ends = Ends(vec![(Arc::clone(&backend), end)]);
        Self {
            backend,
            mounts: None,
            guarded: None,
            shown: Vec::new(),
            confined: Vec::new(),
            ends,
        }
    }

    /// Files of mounts, and the same with a guard.
    pub(super) fn of_mounts(
        backend: Arc<dyn Backend>,
        mounts: MountConfig,
        guarded: Arc<dyn Backend>,
    ) -> Self {
        let shown = mounts.mounts.iter().filter_map(|mount| {
            Some(Shown {
                host: mount.host_path.canonicalize().ok()?,
                at: mount.mount_point.clone(),
                commands: false,
            })
        });
        Self {
            shown: shown.collect(),
            mounts: Some(mounts),
            guarded: Some(guarded),
            ..Self::new(backend)
        }
    }

    /// A backend that is made of others: each of them has its own end.
    pub(super) fn made_of(backend: Arc<dyn Backend>, parts: Vec<Ends>) -> Self {
        let ends = parts.into_iter().flat_map(|ends| ends.0);
        Self {
            backend,
            mounts: None,
            guarded: None,
            shown: Vec::new(),
            confined: Vec::new(),
            ends: Ends(ends.collect()),
        }
    }

    /// The backend as a part of another: what may be done in it is judged here, and
    /// nobody is asked.
    pub(super) fn guarded(&self) -> Arc<dyn Backend> {
        Arc::clone(self.guarded.as_ref().unwrap_or(&self.backend))
    }

    /// It shows these directories of this machine.
    pub(super) fn showing(mut self, shown: impl IntoIterator<Item = Shown>) -> Self {
        self.shown.extend(shown);
        self
    }

    /// Its commands are confined, and can change everything in these directories.
    pub(super) fn confined(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.confined.extend(directories);
        self
    }

    /// The directories that a part shows, translated by `place` into the paths of the
    /// whole tree, and those that its confined commands can change.
    pub(super) fn parts(
        &self,
        place: impl Fn(&Shown) -> Option<Shown>,
    ) -> (Vec<Shown>, &[PathBuf]) {
        (
            self.shown.iter().filter_map(place).collect(),
            &self.confined,
        )
    }

    /// The paths by which its tools and commands know a file of this machine.
    pub(crate) fn paths_of(&self, file: &Path) -> Vec<VPath> {
        let mut paths = Vec::new();
        for file in spellings(file) {
            for shown in &self.shown {
                let Ok(beneath) = file.strip_prefix(&shown.host) else {
                    continue;
                };
                let names = beneath.components().map(|name| name.as_os_str().to_str());
                let path = names
                    .into_iter()
                    .try_fold(shown.at.clone(), |path, name| path.child(name?).ok());
                let on_machine = file.to_str().filter(|_| shown.commands);
                let on_machine = on_machine.and_then(|file| VPath::parse(file).ok());
                paths.extend(path.into_iter().chain(on_machine));
            }
        }
        paths
    }

    /// The directory with this file that confined commands can change.
    pub(crate) fn confined_above(&self, file: &Path) -> Option<&Path> {
        let spellings = spellings(file);
        let mut directories = self.confined.iter().map(PathBuf::as_path);
        directories.find(|directory| spellings.iter().any(|file| file.starts_with(directory)))
    }

    /// The ends, for somebody who lets the backend go earlier than this.
    pub(crate) fn take_ends(&mut self) -> Ends {
        std::mem::take(&mut self.ends)
    }

    /// Ends every command and waits until they are gone.
    pub(crate) async fn stop(&self) {
        self.ends.stop().await;
    }
}

/// A file's paths on this machine: where its last link is, and where that leads.
fn spellings(file: &Path) -> Vec<PathBuf> {
    let Ok(file) = std::path::absolute(file) else {
        return Vec::new();
    };
    let parent = file.parent().and_then(|parent| parent.canonicalize().ok());
    let link = parent
        .zip(file.file_name())
        .map(|(parent, name)| parent.join(name));
    let mut all: Vec<PathBuf> = link.into_iter().chain(file.canonicalize()).collect();
    if all.is_empty() {
        // Neither is there yet, and it may be made.
        all.push(file);
    }
    all.dedup();
    all
}

/// What becomes of a sandbox when the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It is stopped.
    Stop(StopMode),
    /// It belongs to somebody else and goes on.
    Leave,
}

/// The ends of all parts of a backend. A part that is let go before is still
/// ended as it should be, which takes longer than a program has when it ends.
#[derive(Debug, Default)]
pub(crate) struct Ends(Vec<(Arc<dyn Backend>, End)>);

impl Ends {
    /// Whether somebody else still has any of them.
    pub(crate) fn is_used(&self) -> bool {
        let mut parts = self.0.iter();
        parts.any(|(backend, _)| Arc::strong_count(backend) > 1)
    }

    /// Ends all of them, at once.
    pub(crate) async fn stop(&self) {
        let left = self.0.iter().filter_map(|(backend, end)| match end {
            End::Stop(mode) => Some((backend, *mode)),
            End::Leave => None,
        });
        let stops = left.map(|(backend, mode)| async move {
            if let Some(sandbox) = backend.as_sandbox()
                && let Err(error) = sandbox.stop(mode).await
            {
                tracing::warn!(%error, "the sandbox could not be stopped");
            }
        });
        futures::future::join_all(stops).await;
    }
}
