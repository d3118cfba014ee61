//! Tracks which files a conversation has read, and their contents.
//!
//! Invariants: the entry of a path describes what the conversation last read from it or
//! wrote to it. Memory is bounded, whatever is read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use backend_core::VPath;
use backend_core::ops::{ContentHash, Entry};
use backend_core::sync::lock;
use bytes::Bytes;
use futures_util::lock::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Largest file that is tracked by its content. A larger one is tracked by its size and
/// modification time, so a window can be read without reading the whole file.
pub(crate) const HASHED_BYTES: u64 = 4 * 1024 * 1024;

/// Largest file whose content is kept, to show later changes.
const KEPT_BYTES: usize = 256 * 1024;

/// Maximum total size of the kept contents, in bytes.
const KEPT_TOTAL_BYTES: usize = 8 * 1024 * 1024;

/// Maximum number of tracked files. The least recently seen is evicted first.
const FILES: usize = 4_096;

/// The identity of a file's content at the time it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// The hash of its bytes.
    Hash(ContentHash),
    /// Its bytes, which are kept. They are hashed when a change needs the hash: most files
    /// are only read.
    Content,
    /// The size and, if the backend knows it, the modification time.
    Stat {
        size: u64,
        modified: Option<SystemTime>,
    },
}

impl Stamp {
    pub(crate) fn of_entry(entry: &Entry) -> Self {
        Self::Stat {
            size: entry.size.unwrap_or_default(),
            modified: entry.modified,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct SeenFile {
    pub(crate) stamp: Stamp,
    /// The content, if it was small.
    pub(crate) content: Option<Bytes>,
    /// Number of lines, if they were counted.
    pub(crate) lines: Option<u64>,
    /// Position in the order in which files were seen.
    at: u64,
}

impl SeenFile {
    /// Creates the state of a file whose content is available.
    pub(crate) fn whole(content: &Bytes) -> Self {
        let is_kept = content.len() <= KEPT_BYTES;
        let stamp = is_kept.then_some(Stamp::Content);
        let hash = || Stamp::Hash(ContentHash::of(content));
        Self::with_content(content, stamp.unwrap_or_else(hash))
    }

    /// Creates the state of a file whose content is available, and its hash known.
    pub(crate) fn hashed(content: &Bytes, hash: ContentHash) -> Self {
        Self::with_content(content, Stamp::Hash(hash))
    }

    fn with_content(content: &Bytes, stamp: Stamp) -> Self {
        Self {
            // Copied, because the bytes may be a small part of a large buffer.
            content: (content.len() <= KEPT_BYTES).then(|| Bytes::copy_from_slice(content)),
            lines: Some(count_lines(content)),
            ..Self::stamped(stamp)
        }
    }

    /// Creates the state of a file of which only the stamp is known.
    pub(crate) fn stamped(stamp: Stamp) -> Self {
        Self {
            stamp,
            content: None,
            lines: None,
            at: 0,
        }
    }

    pub(crate) fn hash(&self) -> Option<ContentHash> {
        match self.stamp {
            Stamp::Hash(hash) => Some(hash),
            Stamp::Content => self.content.as_deref().map(ContentHash::of),
            Stamp::Stat { .. } => None,
        }
    }

    /// Returns the content as text, if it was kept.
    pub(crate) fn text(&self) -> Option<&str> {
        str::from_utf8(self.content.as_deref()?).ok()
    }

    fn kept(&self) -> usize {
        self.content.as_ref().map_or(0, Bytes::len)
    }
}

/// Counts the lines of `content`. A final line break does not start another line.
pub(crate) fn count_lines(content: &[u8]) -> u64 {
    let ends = content.iter().filter(|byte| **byte == b'\n').count() as u64;
    ends + u64::from(content.last().is_some_and(|byte| *byte != b'\n'))
}

#[derive(Debug, Default)]
pub(crate) struct Tracker {
    files: Mutex<Files>,
    locks: Locks,
}

#[derive(Debug, Clone, Default)]
struct Files {
    seen: HashMap<VPath, SeenFile>,
    clock: u64,
    kept: usize,
}

impl Tracker {
    /// Returns a separate copy of the entries, with new locks.
    pub(crate) fn for_preview(&self) -> Self {
        Self {
            files: Mutex::new(lock(&self.files).clone()),
            locks: Locks::default(),
        }
    }

    /// Waits until no other call of this conversation changes the file.
    pub(crate) async fn lock(&self, path: &VPath) -> PathLock<'_> {
        self.locks.lock(path).await
    }

    /// Locks two files, always in the same order, so that two calls cannot deadlock.
    pub(crate) async fn lock_both(
        &self,
        a: &VPath,
        b: &VPath,
    ) -> (PathLock<'_>, Option<PathLock<'_>>) {
        let (first, second) = if a <= b { (a, b) } else { (b, a) };
        let held = self.lock(first).await;
        if first == second {
            return (held, None);
        }
        (held, Some(self.lock(second).await))
    }

    /// Returns the current position in the order in which files are seen.
    pub(crate) fn now(&self) -> u64 {
        lock(&self.files).clock
    }

    pub(crate) fn seen(&self, path: &VPath) -> Option<SeenFile> {
        lock(&self.files).seen.get(path).cloned()
    }

    /// Records the result of a read that began at `since`. If the conversation has seen
    /// or changed the file in the meantime, the newer entry stays.
    pub(crate) fn read(&self, path: &VPath, since: u64, seen: SeenFile) {
        let mut files = lock(&self.files);
        if files.seen.get(path).is_none_or(|known| known.at <= since) {
            files.insert(path, seen);
        }
    }

    /// Records content that the conversation has just written.
    pub(crate) fn wrote(&self, path: &VPath, seen: SeenFile) {
        lock(&self.files).insert(path, seen);
    }

    /// Removes the entries of a file, or of a directory and everything beneath it.
    pub(crate) fn forget(&self, path: &VPath) {
        lock(&self.files).take(path);
    }

    /// Moves the entries at `from`, which no longer exists, to `to`.
    pub(crate) fn moved(&self, from: &VPath, to: &VPath) {
        let mut files = lock(&self.files);
        let known = files.take(from);
        files.take(to);
        for (path, seen) in known {
            if let Ok(path) = path.rebase(from, to) {
                files.insert(&path, seen);
            }
        }
    }
}

impl Files {
    fn insert(&mut self, path: &VPath, mut seen: SeenFile) {
        self.clock += 1;
        seen.at = self.clock;
        self.kept += seen.kept();
        if let Some(before) = self.seen.insert(path.clone(), seen) {
            self.kept -= before.kept();
        }
        while self.seen.len() > FILES {
            self.drop_oldest();
        }
        while self.kept > KEPT_TOTAL_BYTES {
            self.drop_oldest_content();
        }
    }

    fn drop_oldest(&mut self) {
        let oldest = self.seen.iter().min_by_key(|(_, seen)| seen.at);
        if let Some(path) = oldest.map(|(path, _)| path.clone())
            && let Some(seen) = self.seen.remove(&path)
        {
            self.kept -= seen.kept();
        }
    }

    fn drop_oldest_content(&mut self) {
        let holding = self.seen.values_mut().filter(|seen| seen.kept() > 0);
        match holding.min_by_key(|seen| seen.at) {
            Some(seen) => {
                self.kept -= seen.kept();
                if let Some(hash) = seen.hash() {
                    seen.stamp = Stamp::Hash(hash);
                }
                seen.content = None;
            }
            None => self.kept = 0,
        }
    }

    /// Removes and returns the entries of `path` and everything beneath it.
    fn take(&mut self, path: &VPath) -> Vec<(VPath, SeenFile)> {
        let beneath = self.seen.extract_if(|known, _| known.starts_with(path));
        let taken: Vec<_> = beneath.collect();
        self.kept -= taken.iter().map(|(_, seen)| seen.kept()).sum::<usize>();
        taken
    }
}

#[derive(Debug, Default)]
pub(crate) struct Locks {
    table: Mutex<HashMap<VPath, Arc<AsyncMutex<()>>>>,
}

/// A guard that holds the lock of a path.
#[derive(Debug)]
pub(crate) struct PathLock<'a> {
    // It holds a reference to the lock, so it is dropped before the claim.
    _guard: OwnedMutexGuard<()>,
    _claim: Claim<'a>,
}

/// Keeps a lock in the table while it is held or waited for. A call that is dropped while
/// it waits leaves nothing behind.
#[derive(Debug)]
struct Claim<'a> {
    locks: &'a Locks,
    path: VPath,
    lock: Option<Arc<AsyncMutex<()>>>,
}

impl Locks {
    pub(crate) async fn lock(&self, path: &VPath) -> PathLock<'_> {
        let of_path = Arc::clone(lock(&self.table).entry(path.clone()).or_default());
        let claim = Claim {
            locks: self,
            path: path.clone(),
            lock: Some(Arc::clone(&of_path)),
        };
        PathLock {
            _guard: of_path.lock_owned().await,
            _claim: claim,
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        lock(&self.table).len()
    }
}

impl Drop for Claim<'_> {
    /// The last claim removes the lock from the table. Claims are created under the
    /// table's lock, so none can appear meanwhile.
    fn drop(&mut self) {
        let mut table = lock(&self.locks.table);
        self.lock = None;
        let known = table.get(&self.path);
        if known.is_some_and(|lock| Arc::strong_count(lock) == 1) {
            table.remove(&self.path);
        }
    }
}

#[cfg(test)]
mod tests;
