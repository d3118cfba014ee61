//! [`StateBackend`]: a backend over a tree in memory.

mod builder;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::derived::{
    check_destination, edit_bytes, refuse_into_itself, refuse_working_dir,
};
use backend_core::limits::{PATH_BYTES, PATH_DEPTH};
use backend_core::ops::{
    Content, ContentHash, ContentHasher, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions,
    EditOutcome, Entry, FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing,
    LsOptions, ReadOptions, RenameOptions, ResolveOptions, Skipped, StatOptions, TextOptions,
    WatchQuery, WriteMode, WriteOptions, WriteOutcome,
};
use backend_core::sync::lock;
use backend_core::text::{Progress, TextWindow, WindowScanner};
use backend_core::{
    Backend, BackendInfo, Capabilities, Edit, Error, Operation, Result, Sandbox, VPath, WatchStream,
};
use bytes::Bytes;

use crate::search;
use crate::snapshot::Snapshot;
use crate::tree::{Directory, Extent, File, Node, Tree};
use crate::watch::Watchers;
use crate::yield_timer::YieldTimer;
use builder::Clock;
pub use builder::{FILE_BYTES, StateBuilder, TOTAL_BYTES};

/// Bytes processed before other tasks get a chance to run.
const CHUNK_BYTES: usize = 1024 * 1024;

/// Files and directories in memory.
///
/// Clones share one store. Reads never wait for a search: every operation works on
/// the state of the store when it began.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> backend_core::Result<()> {
/// use backend_core::BackendExt as _;
/// use backend_state::{Snapshot, StateBackend};
///
/// let backend = StateBackend::new();
/// backend.write_file("src/main.rs", "fn main() {}\n").await?;
/// let before = backend.snapshot();
/// backend.delete_tree("src").await?;
///
/// let json = before.to_json()?;
/// backend.restore(Snapshot::from_json(&json)?);
/// assert_eq!(backend.read_to_string("src/main.rs").await?, "fn main() {}\n");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct StateBackend {
    inner: Arc<Inner>,
}

struct Inner {
    /// Held for a few pointer operations at a time and never across an await, so a
    /// blocking lock is fine.
    tree: Mutex<Tree>,
    max_file_bytes: u64,
    max_total_bytes: u64,
    clock: Clock,
    watchers: Watchers,
}

impl Default for StateBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for StateBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tree = self.tree();
        f.debug_struct("StateBackend")
            .field("files", &tree.files())
            .field("bytes", &tree.bytes())
            .finish()
    }
}

impl StateBackend {
    /// Creates an empty store with the default limits.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder for a store.
    pub fn builder() -> StateBuilder {
        StateBuilder::new()
    }

    /// Returns the current state of all files. Copies one pointer, whatever the
    /// size of the store.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { tree: self.tree() }
    }

    /// Resets the store to the state of a snapshot and returns the state it
    /// replaces. Operations in progress finish on the state they began with.
    pub fn restore(&self, snapshot: Snapshot) -> Snapshot {
        let mut current = lock(&self.inner.tree);
        self.inner.watchers.tell(&current, &snapshot.tree, None);
        let tree = std::mem::replace(&mut *current, snapshot.tree);
        Snapshot { tree }
    }

    /// Creates a separate store with the same files, limits and clock. Copies a few pointers.
    pub fn fork(&self) -> Self {
        Self {
            inner: Arc::new(Inner {
                tree: Mutex::new(self.tree()),
                max_file_bytes: self.inner.max_file_bytes,
                max_total_bytes: self.inner.max_total_bytes,
                clock: Arc::clone(&self.inner.clock),
                watchers: Watchers::default(),
            }),
        }
    }

    /// Returns the state that an operation works on.
    fn tree(&self) -> Tree {
        lock(&self.inner.tree).clone()
    }

    fn now(&self) -> SystemTime {
        (self.inner.clock)()
    }

    fn file(&self, path: &VPath) -> Result<Arc<File>> {
        match self.tree().get(path)? {
            Node::File(file) => Ok(file),
            Node::Directory(_) => Err(Error::is_a_directory()),
        }
    }

    /// Applies `change` to the tree. Nothing changes if it fails or if the result
    /// would exceed the size limit of the store.
    fn change<T>(&self, change: impl FnOnce(&mut Tree) -> Result<T>) -> Result<T> {
        self.change_or_move(None, change)
    }

    /// [`change`](Self::change), where `moved` is the move that it is, if it is one.
    fn change_or_move<T>(
        &self,
        moved: Option<(&VPath, &VPath)>,
        change: impl FnOnce(&mut Tree) -> Result<T>,
    ) -> Result<T> {
        let mut current = lock(&self.inner.tree);
        let mut tree = current.clone();
        let changed = change(&mut tree)?;
        let limit = self.inner.max_total_bytes;
        if tree.bytes() > limit && tree.bytes() > current.bytes() {
            return Err(Error::too_large(format!(
                "the store would take {} bytes, more than its limit of {limit}; delete something first",
                tree.bytes()
            )));
        }
        self.inner.watchers.tell(&current, &tree, moved);
        let before = std::mem::replace(&mut *current, tree);
        // Freeing the old tree can take time after a large change; other callers
        // need not wait for that.
        drop(current);
        drop(before);
        Ok(changed)
    }

    /// Writes a file if the current one is still `expected`.
    ///
    /// Returns whether the file is new, or `None` if the current file is a
    /// different one by now.
    fn replace(
        &self,
        path: &VPath,
        content: Bytes,
        expected: Option<&Arc<File>>,
    ) -> Result<Option<bool>> {
        let now = self.now();
        self.change(|tree| {
            let current = match tree.find(path)? {
                Some(Node::Directory(_)) => return Err(Error::is_a_directory()),
                Some(Node::File(file)) => Some(file),
                None => None,
            };
            if expected.is_some_and(|expected| {
                !current
                    .as_ref()
                    .is_some_and(|current| Arc::ptr_eq(current, expected))
            }) {
                return Ok(None);
            }
            let created = current.as_ref().map_or(Some(now), |file| file.created);
            let file = File::new(content, created, Some(now));
            tree.put(path, Node::File(Arc::new(file)))?;
            Ok(Some(current.is_none()))
        })
    }

    async fn write_bytes(
        &self,
        path: &VPath,
        content: Bytes,
        mode: WriteMode,
    ) -> Result<WriteOutcome> {
        let size = content.len() as u64;
        let hash = hash(&content).await;
        let created = match mode {
            WriteMode::CreateNew => {
                let now = Some(self.now());
                self.change(|tree| {
                    if tree.find(path)?.is_some() {
                        return Err(Error::already_exists());
                    }
                    let file = File::new(content, now, now);
                    tree.put(path, Node::File(Arc::new(file)))?;
                    Ok(Some(true))
                })?
            }
            WriteMode::IfUnchanged(expected) => {
                let before = match self.file(path) {
                    Err(error) if error.is_not_found() => return Err(Error::conflict()),
                    before => before?,
                };
                if self::hash(&before.content).await != expected {
                    return Err(Error::conflict());
                }
                self.replace(path, content, Some(&before))?
            }
            WriteMode::Overwrite => self.replace(path, content, None)?,
        };
        let created = created.ok_or_else(Error::conflict)?;
        Ok(WriteOutcome::new(created, size, hash))
    }

    fn edit_file(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: &EditOptions,
    ) -> Result<EditOutcome> {
        // Each retry means that another writer succeeded, so some writer always
        // makes progress.
        loop {
            let before = self.file(path)?;
            let (after, outcome) = edit_bytes(&before.content, edits, options)?;
            self.check_file_size(after.len() as u64)?;
            if self.replace(path, after, Some(&before))?.is_some() {
                return Ok(outcome);
            }
        }
    }

    fn check_file_size(&self, size: u64) -> Result<()> {
        let limit = self.inner.max_file_bytes;
        if size > limit {
            return Err(Error::too_large(format!(
                "the file would have {size} bytes, more than the {limit} that a file may have here"
            )));
        }
        Ok(())
    }

    async fn window(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        let mut scanner = WindowScanner::new(options)?;
        let file = self.file(path)?;
        if options.offset > 0 && file.content.len() > CHUNK_BYTES {
            let index = file.line_index().await;
            return Ok(index.window(&file.content, options)?);
        }
        let mut yields = YieldTimer::new();
        for chunk in file.content.chunks(CHUNK_BYTES) {
            if matches!(scanner.push(chunk), Progress::Done) {
                break;
            }
            yields.tick().await;
        }
        Ok(scanner.finish()?)
    }
}

async fn hash(content: &Bytes) -> ContentHash {
    let mut hasher = ContentHasher::new();
    let mut yields = YieldTimer::new();
    for chunk in content.chunks(CHUNK_BYTES) {
        hasher.update(chunk);
        yields.tick().await;
    }
    hasher.finish()
}

fn list(tree: &Tree, path: &VPath, options: &LsOptions) -> Result<Listing> {
    let node = tree.get(path)?;
    let entries = match &node {
        Node::File(_) => vec![node.entry(path.clone())],
        Node::Directory(directory) => directory
            .entries
            .iter()
            // Names come from paths, so they always form a path again.
            .filter_map(|(name, node)| Some(node.entry(path.child(name).ok()?)))
            .collect(),
    };
    options.listing(entries, Skipped::default())
}

/// Returns a copy as a separate file with a new time.
fn copied(node: &Node, now: SystemTime) -> Node {
    match node {
        Node::File(file) => {
            let content = file.content.clone();
            Node::File(Arc::new(File::new(content, Some(now), Some(now))))
        }
        Node::Directory(directory) => {
            let entries = directory.entries.iter();
            let entries = entries.map(|(name, node)| (Arc::clone(name), copied(node, now)));
            Node::Directory(Arc::new(Directory {
                entries: entries.collect(),
            }))
        }
    }
}

/// Checks a move or copy against the entries at both paths, and that everything
/// inside still has a valid path afterwards.
fn check_relocation(tree: &Tree, from: &VPath, to: &VPath, overwrite: bool) -> Result<Node> {
    let node = tree.get(from)?;
    let source = node.entry(from.clone());
    let existing = tree.find(to)?.map(|node| node.entry(to.clone()));
    check_destination(&source, existing.as_ref(), overwrite)?;
    let inside = Extent::of(&node);
    let levels = to.components().count() + inside.levels;
    if levels > PATH_DEPTH || to.as_str().len() + inside.bytes > PATH_BYTES {
        return Err(Error::too_deep_inside());
    }
    Ok(node)
}

#[async_trait]
impl Backend for StateBackend {
    fn info(&self) -> BackendInfo {
        BackendInfo::new(NAME, Capabilities::writable().with_times().with_watch())
    }

    fn working_dir(&self) -> VPath {
        VPath::root()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        None
    }

    async fn resolve(&self, path: &VPath, _: ResolveOptions) -> Result<VPath> {
        let found = self.tree().find(path).map(|_| path.clone());
        found.map_err(context(Operation::Resolve, path))
    }

    async fn stat(&self, path: &VPath, _: StatOptions) -> Result<Entry> {
        let found = self.tree().get(path).map(|node| node.entry(path.clone()));
        found.map_err(context(Operation::Stat, path))
    }

    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        list(&self.tree(), path, &options).map_err(context(Operation::Ls, path))
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        let read = self
            .file(path)
            .and_then(|file| options.slice(&file.content));
        read.map_err(context(Operation::Read, path))
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        let window = self.window(path, options).await;
        window.map_err(context(Operation::ReadText, path))
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        let written = match content.collect(self.inner.max_file_bytes).await {
            Ok(content) => self.write_bytes(path, content, options.mode).await,
            Err(error) => Err(error),
        };
        written.map_err(context(Operation::Write, path))
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        let edited = self.edit_file(path, edits, &options);
        edited.map_err(context(Operation::Edit, path))
    }

    async fn create_dir(&self, path: &VPath, _: CreateDirOptions) -> Result<()> {
        let created = self.change(|tree| match tree.find(path)? {
            Some(Node::Directory(_)) => Ok(()),
            Some(Node::File(_)) => Err(Error::exists_as_non_directory()),
            None => tree.directory(path).map(drop),
        });
        created.map_err(context(Operation::CreateDir, path))
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        let deleted = refuse_working_dir(path, &self.working_dir()).and_then(|()| {
            self.change(|tree| match tree.get(path)? {
                Node::Directory(_) if !options.recursive => Err(Error::needs_recursive_delete()),
                _ => tree.remove(path).map(drop),
            })
        });
        deleted.map_err(context(Operation::Delete, path))
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        let moved = refuse_into_itself(from, to)
            .and_then(|()| refuse_working_dir(from, &self.working_dir()))
            .and_then(|()| {
                self.change_or_move(Some((from, to)), |tree| {
                    check_relocation(tree, from, to, options.overwrite)?;
                    let node = tree.remove(from)?;
                    tree.put(to, node)
                })
            });
        moved.map_err(context(Operation::Rename, from))
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        let now = self.now();
        let copied = refuse_into_itself(from, to).and_then(|()| {
            self.change(|tree| {
                let node = tree.get(from)?;
                if matches!(node, Node::Directory(_)) && !options.recursive {
                    return Err(Error::needs_recursive_copy());
                }
                check_relocation(tree, from, to, options.overwrite)?;
                tree.put(to, copied(&node, now))
            })
        });
        copied.map_err(context(Operation::Copy, from))
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        let path = query.path.clone();
        let found = search::glob(&self.tree(), query).await;
        found.map_err(context(Operation::Glob, &path))
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        let path = query.path.clone();
        let found = search::grep(&self.tree(), query).await;
        found.map_err(context(Operation::Grep, &path))
    }

    async fn watch(&self, query: WatchQuery) -> Result<WatchStream> {
        let path = query.path.clone();
        // Held until the watch is added, so that it misses no change.
        let tree = lock(&self.inner.tree);
        let watched = match tree.get(&path) {
            Ok(Node::Directory(_)) => Ok(self.inner.watchers.add(query)),
            Ok(Node::File(_)) => Err(Error::not_a_directory()),
            Err(error) => Err(error),
        };
        drop(tree);
        let watched = watched.map_err(context(Operation::Watch, &path))?;
        Ok(Box::pin(watched))
    }
}

/// The backend's name in messages.
const NAME: &str = "state";

fn context(operation: Operation, path: &VPath) -> impl FnOnce(Error) -> Error {
    Error::context(NAME, operation, path)
}
