//! [`MountTree`]: the opened mounts, and what may be done in them.

use std::path::PathBuf;

use backend_composite::Composite;
use backend_core::{Error, Result};
use permissions::mounts::{Derive, Mode, Mount, MountConfig, Scope};
use permissions::{Guarded, GuardedBuilder, Policy};

use crate::Opener;

/// Where [`MountTree::create_default`] puts its directory.
const DEFAULT_POINT: &str = "/data";

/// Named host directories as one tree, and what may be done in each. Clones share
/// one place.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use backend_core::{BackendExt as _, ErrorKind};
/// use mounts::{Derive, Mode, Mount, MountConfig, Opener};
///
/// # let directory = tempfile::tempdir()?;
/// # let (notes, docs) = (directory.path().join("notes"), directory.path().join("docs"));
/// # std::fs::create_dir(&docs)?;
/// let config = MountConfig::new(vec![
///     Mount::new(docs, "/docs")?,
///     Mount::new(notes, "/notes")?.mode(Mode::Rw).write_approval(false),
/// ]);
/// let tree = Opener::new(config).open()?;
/// let files = tree.guard().build();
/// files.write_file("/notes/a.md", "hello\n").await?;
/// let error = files.write_file("/docs/a.md", "hello\n").await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::PermissionDenied);
///
/// // For a sub-agent: a part of it, and nothing that was not there before.
/// let part = tree.derive(Derive::new().read(["/notes"])).await?;
/// let files = part.guard().build();
/// assert_eq!(files.read_to_string("/notes/a.md").await?, "hello\n");
/// assert!(files.write_file("/notes/a.md", "more").await.is_err());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct MountTree {
    tree: Composite,
    scope: Scope,
}

impl MountTree {
    pub(crate) fn new(tree: Composite, scope: Scope) -> Self {
        Self { tree, scope }
    }

    /// One host directory at `/data`, with the defaults of a mount: every file, of
    /// any size; reading asks nobody, and writing asks if it is possible at all.
    ///
    /// # Errors
    ///
    /// As [`Opener::open`].
    pub fn create_default(directory: impl Into<PathBuf>, mode: Mode) -> Result<Self> {
        let mount = Mount::new(directory, DEFAULT_POINT).map_err(crate::opener::config)?;
        Opener::new(MountConfig::new(vec![mount.mode(mode)])).open()
    }

    /// The files without a guard, for whoever puts one in front: a toolset does,
    /// with [`policy`](Self::policy). Whatever is done with it, nobody judges but
    /// that what is `ro` is not written.
    pub fn unguarded(&self) -> &Composite {
        &self.tree
    }

    /// What may be done.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// What may be done, as a policy without rules of its own.
    pub fn policy(&self) -> Policy {
        Policy::builder().scope(self.scope.clone()).build()
    }

    /// The mounts by the paths under which they were opened: absolute, and without
    /// links.
    pub fn config(&self) -> MountConfig {
        MountConfig::new(self.scope.mounts().iter().cloned().collect())
    }

    /// The files with a guard in front. Give it an approver: without one, what must
    /// be asked is refused.
    pub fn guard(&self) -> GuardedBuilder<Composite> {
        Guarded::builder(self.tree.clone()).policy(self.policy())
    }

    /// A part of this, for a sub-agent. It can only be less, also along a whole
    /// chain of parts; modes, suffixes, sizes and approvals stay.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for an entry that is a file or has `..` in it;
    /// `PermissionDenied` for one that this does not allow itself.
    pub async fn derive(&self, derive: Derive) -> Result<Self> {
        let guard = self.guard().build().derive(derive).await?;
        let scope = guard.policy().scope();
        let lost = || Error::internal("a scope was lost; please report this");
        Ok(Self::new(
            self.tree.clone(),
            scope.cloned().ok_or_else(lost)?,
        ))
    }
}
