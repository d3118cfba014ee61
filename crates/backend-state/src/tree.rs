//! The tree of files and directories. It is a persistent structure: taking a
//! snapshot copies a pointer, and a change copies only the nodes on its path.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use backend_core::ops::Entry;
use backend_core::text::LineIndex;
use backend_core::{Error, ErrorKind, Operation, Result, VPath};
use bytes::Bytes;
use imbl::OrdMap;

use crate::yield_timer::YieldTimer;

/// Cost of a file or directory on top of its content, in bytes. It bounds the
/// number of empty files.
pub(crate) const ENTRY_BYTES: u64 = 256;

/// A file's bytes and times. Never changed in place.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) content: Bytes,
    pub(crate) created: Option<SystemTime>,
    pub(crate) modified: Option<SystemTime>,
    /// Index of the lines, built when a window deep inside the file is first read.
    lines: OnceLock<LineIndex>,
}

impl File {
    pub(crate) fn new(
        content: Bytes,
        created: Option<SystemTime>,
        modified: Option<SystemTime>,
    ) -> Self {
        Self {
            content,
            created,
            modified,
            lines: OnceLock::new(),
        }
    }

    pub(crate) async fn line_index(&self) -> &LineIndex {
        if let Some(index) = self.lines.get() {
            return index;
        }
        let mut index = LineIndex::default();
        let mut yields = YieldTimer::new();
        for block in self.content.chunks(LineIndex::BLOCK_BYTES) {
            index.push(block);
            yields.tick().await;
        }
        self.lines.get_or_init(|| index)
    }
}

impl PartialEq for File {
    fn eq(&self, other: &Self) -> bool {
        let facts = |file: &Self| (file.created, file.modified);
        facts(self) == facts(other) && self.content == other.content
    }
}

impl Eq for File {}

#[derive(Debug, Clone)]
pub(crate) enum Node {
    File(Arc<File>),
    Directory(Arc<Directory>),
}

/// Two nodes are equal if they are the same one.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(one), Self::File(two)) => Arc::ptr_eq(one, two),
            (Self::Directory(one), Self::Directory(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }
}

impl Node {
    /// Describes the node as the entry at `path`.
    pub(crate) fn entry(&self, path: VPath) -> Entry {
        match self {
            Self::Directory(_) => Entry::directory(path),
            Self::File(file) => {
                Entry::file(path, file.content.len() as u64).with_modified(file.modified)
            }
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Directory {
    pub(crate) entries: OrdMap<Arc<str>, Node>,
}

/// One state of the whole store. Cloning copies a pointer and two numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    pub(crate) root: Arc<Directory>,
    files: usize,
    bytes: u64,
}

impl Tree {
    /// Returns the number of files.
    pub(crate) fn files(&self) -> usize {
        self.files
    }

    /// Returns the total cost: content plus [`ENTRY_BYTES`] per entry.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the node at `path`.
    ///
    /// Fails with `NotFound` or `NotADirectory` according to the contract.
    pub(crate) fn get(&self, path: &VPath) -> Result<Node> {
        let mut directory = &self.root;
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            match directory.entries.get(name) {
                None => return Err(Error::not_found()),
                Some(node) if names.peek().is_none() => return Ok(node.clone()),
                Some(Node::Directory(next)) => directory = next,
                Some(Node::File(_)) => return Err(Error::not_a_directory()),
            }
        }
        Ok(Node::Directory(Arc::clone(&self.root)))
    }

    /// As [`get`](Self::get), with a missing path as `None`.
    pub(crate) fn find(&self, path: &VPath) -> Result<Option<Node>> {
        Error::none_if_missing(self.get(path))
    }

    /// Puts `node` at `path`, replacing any existing node and creating missing
    /// parent directories.
    ///
    /// Fails with `NotADirectory` if a parent is a file; then nothing has changed.
    pub(crate) fn put(&mut self, path: &VPath, node: Node) -> Result<()> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Error::is_a_directory());
        };
        let added = Measure::of(&node);
        let directory = self.directory(&parent)?;
        let replaced = directory.entries.insert(Arc::from(name), node);
        self.count(added, replaced.as_ref());
        Ok(())
    }

    /// Adds a file at a path where nothing exists. A duplicate path is an error in the
    /// input and must not replace the first file.
    pub(crate) fn put_new(&mut self, path: &VPath, file: File) -> Result<()> {
        let put = match self.find(path) {
            Ok(None) => self.put(path, Node::File(Arc::new(file))),
            Ok(Some(Node::Directory(_))) => Err(Error::is_a_directory()),
            Ok(Some(Node::File(_))) => Err(Error::new(
                ErrorKind::AlreadyExists,
                "the path is given twice",
            )),
            Err(error) => Err(error),
        };
        put.map_err(|error| error.at(Operation::Write, path))
    }

    /// Removes and returns the node at `path`, which is not the root.
    pub(crate) fn remove(&mut self, path: &VPath) -> Result<Node> {
        // Looked up first, because `directory` would create missing directories.
        self.get(path)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Error::is_a_directory());
        };
        let removed = self.directory(&parent)?.entries.remove(name);
        let removed = removed.ok_or_else(Error::not_found)?;
        self.count(Measure::default(), Some(&removed));
        Ok(removed)
    }

    /// Returns the directory at `path` for modification. Creates it and its parents
    /// if they are missing.
    pub(crate) fn directory(&mut self, path: &VPath) -> Result<&mut Directory> {
        let mut directory = Arc::make_mut(&mut self.root);
        for name in path.components() {
            if !directory.entries.contains_key(name) {
                let empty = Node::Directory(Arc::default());
                directory.entries.insert(Arc::from(name), empty);
                self.bytes += ENTRY_BYTES;
            }
            match directory.entries.get_mut(name) {
                Some(Node::Directory(next)) => directory = Arc::make_mut(next),
                _ => return Err(Error::not_a_directory()),
            }
        }
        Ok(directory)
    }

    fn count(&mut self, added: Measure, replaced: Option<&Node>) {
        let gone = replaced.map(Measure::of).unwrap_or_default();
        self.files = self.files + added.files - gone.files;
        self.bytes = self.bytes + added.bytes - gone.bytes;
    }
}

/// The size of a subtree.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measure {
    pub(crate) files: usize,
    pub(crate) bytes: u64,
}

impl Measure {
    pub(crate) fn of(node: &Node) -> Self {
        match node {
            Node::File(file) => Self {
                files: 1,
                bytes: ENTRY_BYTES + file.content.len() as u64,
            },
            Node::Directory(directory) => directory.entries.values().map(Self::of).fold(
                Self {
                    files: 0,
                    bytes: ENTRY_BYTES,
                },
                |sum, one| Self {
                    files: sum.files + one.files,
                    bytes: sum.bytes + one.bytes,
                },
            ),
        }
    }
}

/// The depth and length of the longest paths inside a subtree, relative to its root.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extent {
    pub(crate) levels: usize,
    pub(crate) bytes: usize,
}

impl Extent {
    /// Measures a subtree. The recursion is no deeper than a path: every tree is
    /// made of paths, and moves are checked with this.
    pub(crate) fn of(node: &Node) -> Self {
        let Node::Directory(directory) = node else {
            return Self::default();
        };
        let children = directory.entries.iter().map(|(name, child)| {
            let inside = Self::of(child);
            Self {
                levels: 1 + inside.levels,
                bytes: 1 + name.len() + inside.bytes,
            }
        });
        children.fold(Self::default(), |most, one| Self {
            levels: most.levels.max(one.levels),
            bytes: most.bytes.max(one.bytes),
        })
    }
}

/// Iterates over files and empty directories in byte order of their paths, in a
/// tree that does not change.
#[derive(Debug)]
pub(crate) struct Leaves {
    /// The nodes still to visit, the next one last.
    pending: Vec<(VPath, Node)>,
}

impl Leaves {
    pub(crate) fn new(tree: &Tree) -> Self {
        let root = Node::Directory(Arc::clone(&tree.root));
        Self {
            pending: vec![(VPath::root(), root)],
        }
    }
}

impl Iterator for Leaves {
    type Item = (VPath, Option<Arc<File>>);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some((path, node)) = self.pending.pop() {
            let directory = match node {
                Node::File(file) => return Some((path, Some(file))),
                Node::Directory(directory) => directory,
            };
            if directory.entries.is_empty() {
                return Some((path, None));
            }
            let children = directory.entries.iter().filter_map(|(name, node)| {
                // Names come from paths, so they always form a path again.
                Some((path.child(name).ok()?, node.clone()))
            });
            let mut children: Vec<_> = children.collect();
            children.sort_by(path_order);
            self.pending.extend(children.into_iter().rev());
        }
        None
    }
}

/// Compares by the byte order of the paths beneath: a directory sorts as its name and `/`.
fn path_order((a, a_node): &(VPath, Node), (b, b_node): &(VPath, Node)) -> std::cmp::Ordering {
    let slash = |node: &Node| matches!(node, Node::Directory(_)).then_some(b'/');
    let a = a.as_str().bytes().chain(slash(a_node));
    a.cmp(b.as_str().bytes().chain(slash(b_node)))
}
