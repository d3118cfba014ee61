//! [`Snapshot`]: one state of all files, cheap to take, keep and compare.

use std::sync::Arc;
use std::time::SystemTime;

use backend_core::{Error, Result, VPath};
use bytes::Bytes;

use crate::document::{self, LoadLimits};
use crate::tree::{File, Leaves, Node, Tree};

/// The files and directories of a store at one moment.
///
/// A snapshot never changes. Cloning copies a pointer; successive states share the
/// parts they have in common.
///
/// ```
/// use backend_state::Snapshot;
/// let snapshot = Snapshot::from_files([("/a.txt", "one\n"), ("/b/c.txt", "two\n")])?;
/// let paths: Vec<_> = snapshot.iter().map(|file| file.path.to_string()).collect();
/// assert_eq!(paths, ["/a.txt", "/b/c.txt"]);
/// # Ok::<(), backend_core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub(crate) tree: Tree,
}

/// A file of a [`Snapshot`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotFile {
    /// Its path.
    pub path: VPath,
    /// Its content.
    pub content: Bytes,
    /// Time of the first write, if known.
    pub created: Option<SystemTime>,
    /// Time of the last write, if known.
    pub modified: Option<SystemTime>,
}

impl Snapshot {
    /// Creates a snapshot with these files, without times, and the directories they need.
    ///
    /// # Errors
    ///
    /// `InvalidPath` for an invalid path, `NotADirectory` or `IsADirectory` if the
    /// path of one file requires another file to be a directory.
    pub fn from_files<P, C>(files: impl IntoIterator<Item = (P, C)>) -> Result<Self>
    where
        P: AsRef<str>,
        C: Into<Bytes>,
    {
        let mut tree = Tree::default();
        for (path, content) in files {
            let path = VPath::parse(path.as_ref())?;
            tree.put_new(&path, File::new(content.into(), None, None))?;
        }
        Ok(Self { tree })
    }

    /// Reads a document written by [`to_json`](Self::to_json) or by
    /// pydantic-ai-backend, old or new.
    ///
    /// # Errors
    ///
    /// `InvalidInput` that names the problem and its position. Nothing is loaded in part.
    pub fn from_json(json: impl AsRef<[u8]>) -> Result<Self> {
        serde_json::from_slice(json.as_ref()).map_err(invalid_document)
    }

    /// Writes everything as one JSON document, which PostgreSQL's `jsonb` accepts.
    ///
    /// Text stays readable; other bytes, and text with a NUL, are base64 and marked
    /// as such. Loading the document restores the same bytes and times.
    ///
    /// # Errors
    ///
    /// `Internal` if a file's time lies outside the years that a document can express.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Error::internal("the document cannot be written").with_source(error))
    }

    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.tree.files()
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the content of the file at `path`, or `None` if there is no file.
    pub fn get(&self, path: &VPath) -> Option<Bytes> {
        match self.tree.get(path) {
            Ok(Node::File(file)) => Some(file.content.clone()),
            _ => None,
        }
    }

    /// Returns the files in byte order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = SnapshotFile> + use<> {
        Leaves::new(&self.tree).filter_map(|(path, file)| {
            let file = file?;
            Some(SnapshotFile {
                path,
                content: file.content.clone(),
                created: file.created,
                modified: file.modified,
            })
        })
    }
}

/// Returns the error for a document that cannot be loaded.
pub(crate) fn invalid_document(error: serde_json::Error) -> Error {
    Error::invalid_input(format!("the document cannot be loaded: {error}"))
}

/// Two snapshots are equal if they hold the same files with the same bytes and
/// times, and the same directories.
impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tree.root, &other.tree.root)
            || self.len() == other.len() && Leaves::new(&self.tree).eq(Leaves::new(&other.tree))
    }
}

impl Eq for Snapshot {}

impl serde::Serialize for Snapshot {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        document::serialize(&self.tree, serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Snapshot {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        document::deserialize(deserializer, LoadLimits::UNLIMITED).map(|tree| Self { tree })
    }
}
