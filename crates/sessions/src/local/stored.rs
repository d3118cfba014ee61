//! Reading what sessions have stored, without starting anything.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend_core::{Backend, Result, delegate};
use backend_local::LocalBackend;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use super::archive::archive;
use super::blocking::blocking;
use super::root::Root;
use super::tree::{Tree, TreeOptions, tree};
use crate::id::SessionId;
use crate::record::Record;

/// The stored files of all sessions beneath one directory, `ROOT/ID/workspace` each.
///
/// It reads what a session holds whether it runs or not, and starts nothing. It fits every
/// engine that keeps files in such directories.
#[derive(Debug, Clone)]
pub struct StoredSessions {
    root: Root,
}

impl StoredSessions {
    /// Opens a directory of sessions, which must exist.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotADirectory`, `PermissionDenied`.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        Root::open(root.as_ref()).map(Self::new)
    }

    pub(super) fn new(root: Root) -> Self {
        Self { root }
    }

    /// Lists the sessions that have files, in order of ids. Of those of other engines only
    /// the time of the last change is known; whether they run, the engine knows.
    ///
    /// # Errors
    ///
    /// `PermissionDenied`, `Unavailable`.
    pub async fn list(&self) -> Result<Vec<Record>> {
        let root = self.root.clone();
        blocking(move || root.stored()).await
    }

    /// Opens the files of one session for reading.
    ///
    /// # Errors
    ///
    /// `NotFound` if none are stored; `PermissionDenied`.
    pub async fn files(&self, id: &SessionId) -> Result<StoredFiles> {
        let place = self.root.place(id);
        let files = blocking(move || {
            place.with_files(|path| LocalBackend::builder(path).read_only(true).open())
        });
        Ok(StoredFiles {
            files: files.await?,
        })
    }

    /// Returns how many bytes the files of one session have.
    ///
    /// # Errors
    ///
    /// `NotFound` if none are stored; `PermissionDenied` and `TooLarge` if there are
    /// directories that cannot be measured.
    pub async fn bytes(&self, id: &SessionId) -> Result<u64> {
        let (root, id) = (self.root.clone(), id.clone());
        blocking(move || root.stored_bytes(&id)).await
    }

    /// Returns how many bytes the files of all sessions have, without those in directories
    /// that cannot be measured.
    ///
    /// # Errors
    ///
    /// `PermissionDenied`, `Unavailable`.
    pub async fn total_bytes(&self) -> Result<u64> {
        let root = self.root.clone();
        blocking(move || root.total_bytes()).await
    }

    /// Deletes the sessions of a [`LocalEngine`](crate::LocalEngine) that no process uses
    /// and that were last used more than `time_to_live` before `now`. Returns their ids.
    ///
    /// # Errors
    ///
    /// `Config` if the directory holds the sessions of another engine;
    /// `PermissionDenied`, `Unavailable`. It can be repeated.
    pub async fn remove_expired(
        &self,
        time_to_live: Duration,
        now: SystemTime,
    ) -> Result<Vec<SessionId>> {
        let root = self.root.clone();
        blocking(move || root.remove_expired(time_to_live, now)).await
    }
}

/// The stored files of one session: a backend that can be read and searched, and never
/// written.
///
/// `/` is the session's directory. As with every local directory, no link leads out of it,
/// and not into another session either.
///
/// ```
/// use backend_core::{BackendExt as _, Result};
/// use sessions::{SessionId, StoredSessions, TreeOptions};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # std::fs::create_dir_all(directory.path().join("alice/workspace/src")).unwrap();
/// # std::fs::write(directory.path().join("alice/workspace/src/main.rs"), "").unwrap();
/// let stored = StoredSessions::open(directory.path())?;
/// let files = stored.files(&SessionId::new("alice")?).await?;
/// let tree = files.tree(TreeOptions::default()).await?;
/// assert_eq!(tree.to_string(), "src/\n  main.rs\n");
/// assert!(files.write_file("new.txt", "").await.is_err());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct StoredFiles {
    files: LocalBackend,
}

impl StoredFiles {
    /// Returns the files beneath a directory as a tree.
    ///
    /// # Errors
    ///
    /// As `ls` for the directory; `InvalidInput` for a depth or number of entries of zero.
    pub async fn tree(&self, options: TreeOptions) -> Result<Tree> {
        tree(&self.files, options).await
    }

    /// Returns all files as a tar archive, piece by piece.
    ///
    /// A link to a file is packed as that file. Left out are links to directories, links
    /// that lead outside or nowhere, and what is neither file nor directory.
    ///
    /// # Errors
    ///
    /// The stream ends with an error if a file cannot be read or changes meanwhile, and
    /// with `TooLarge` if there are more than
    /// [`ARCHIVE_ENTRIES`](crate::ARCHIVE_ENTRIES).
    pub fn archive(&self) -> BoxStream<'static, Result<Bytes>> {
        archive(Arc::new(self.files.clone()))
    }
}

impl Backend for StoredFiles {
    delegate! {
        |self| self.files => info, working_dir, as_sandbox, resolve, stat, ls, read, read_text,
        write, edit, create_dir, delete, rename, copy, glob, grep, watch
    }
}
