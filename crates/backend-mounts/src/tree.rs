//! [`MountTree`]: the opened mounts and their permissions.

use backend_composite::Composite;
use backend_core::Result;
use permissions::{Guarded, GuardedBuilder, Policy};

use crate::config::MountConfig;
use crate::derive::Derive;
use crate::narrow::narrowed;
use crate::scope::Scope;

/// Named host directories as one tree, with the permissions of each. Clones share the
/// same directories.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use backend_core::{BackendExt as _, ErrorKind};
/// use backend_mounts::{Derive, Mode, Mount, MountConfig, Opener};
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
/// // For a sub-agent: a part of the tree, with no additional permissions.
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

    /// Returns the files without a guard, for callers that add one, such as a toolset
    /// with [`policy`](Self::policy). Calls on it are not judged; only writes to
    /// read-only mounts are refused.
    pub fn unguarded(&self) -> &Composite {
        &self.tree
    }

    /// Returns the permissions.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns the permissions as a policy without rules.
    pub fn policy(&self) -> Policy {
        Policy::builder().layer(self.scope.clone()).build()
    }

    /// Returns the mounts with the host paths under which they were opened, absolute and
    /// without links.
    pub fn config(&self) -> MountConfig {
        MountConfig::new(self.scope.mounts().iter().cloned().collect())
    }

    /// Returns a builder for the files behind a guard. Set an approver: without one,
    /// every access that needs approval is refused.
    pub fn guard(&self) -> GuardedBuilder<Composite> {
        Guarded::builder(self.tree.clone()).policy(self.policy())
    }

    /// Returns a part of the tree, for a sub-agent. A part never has more permissions
    /// than the tree it is derived from, even after several steps. Modes, suffixes, sizes
    /// and approvals stay the same.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for an entry that is a file or contains `..`, `PermissionDenied`
    /// for one that this tree does not allow itself.
    pub async fn derive(&self, derive: Derive) -> Result<Self> {
        let scope = narrowed(&self.tree, &self.scope, derive).await?;
        Ok(Self::new(self.tree.clone(), scope))
    }
}
