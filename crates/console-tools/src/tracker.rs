//! Which files a conversation has read, and what they held.
//!
//! Invariants: what is remembered of a path is what the conversation was last
//! shown of it or wrote to it itself; memory is bounded, whatever is read.

mod locks;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use backend_core::VPath;
use backend_core::ops::{ContentHash, Entry};
use bytes::Bytes;

use locks::Locks;
pub(crate) use locks::PathLock;

/// Largest file that is remembered by its content. A larger one is remembered by
/// its size and time, so that a window of it can be read without all of it.
pub(crate) const HASHED_BYTES: u64 = 4 * 1024 * 1024;

/// Largest file of which the content itself is kept, to show what changed.
const KEPT_BYTES: usize = 256 * 1024;

/// Most that is kept of all files together.
const KEPT_TOTAL_BYTES: usize = 8 * 1024 * 1024;

/// Most files remembered. The one that was seen longest ago is forgotten first.
const FILES: usize = 4_096;

/// What a file was when it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// The hash of its bytes.
    Hash(ContentHash),
    /// Its size and the time of its last change, as far as the backend knows it.
    Stat {
        size: u64,
        modified: Option<SystemTime>,
    },
}

impl Stamp {
    /// What a listing tells of a file.
    pub(crate) fn of_entry(entry: &Entry) -> Self {
        Self::Stat {
            size: entry.size.unwrap_or_default(),
            modified: entry.modified,
        }
    }
}

/// What is remembered of a file.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) stamp: Stamp,
    /// What it held, if that was little.
    pub(crate) content: Option<Bytes>,
    /// How many lines it had, where they were counted.
    pub(crate) lines: Option<u64>,
    /// When it was seen, in the order of all that was.
    at: u64,
}

impl Seen {
    /// A file whose bytes are at hand.
    pub(crate) fn whole(content: &Bytes) -> Self {
        Self {
            // A copy: the bytes may be a small part of a large buffer.
            content: (content.len() <= KEPT_BYTES).then(|| Bytes::copy_from_slice(content)),
            lines: Some(count_lines(content)),
            ..Self::stamped(Stamp::Hash(ContentHash::of(content)))
        }
    }

    /// A file of which only this is known.
    pub(crate) fn stamped(stamp: Stamp) -> Self {
        Self {
            stamp,
            content: None,
            lines: None,
            at: 0,
        }
    }

    /// The hash of the bytes that were seen, if they were hashed.
    pub(crate) fn hash(&self) -> Option<ContentHash> {
        match self.stamp {
            Stamp::Hash(hash) => Some(hash),
            Stamp::Stat { .. } => None,
        }
    }

    /// What it held as text, if that was kept.
    pub(crate) fn text(&self) -> Option<&str> {
        str::from_utf8(self.content.as_deref()?).ok()
    }

    fn kept(&self) -> usize {
        self.content.as_ref().map_or(0, Bytes::len)
    }
}

/// How many lines `content` has; a line end at its end begins no further one.
pub(crate) fn count_lines(content: &[u8]) -> u64 {
    let ends = content.iter().filter(|byte| **byte == b'\n').count() as u64;
    ends + u64::from(content.last().is_some_and(|byte| *byte != b'\n'))
}

/// A moment in the order of what was seen; taken before a file is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(u64);

/// Which files were read, and what they held.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    files: Mutex<Files>,
    locks: Locks,
}

#[derive(Debug, Clone, Default)]
struct Files {
    seen: HashMap<VPath, Seen>,
    clock: u64,
    kept: usize,
}

impl Tracker {
    /// The same memory apart from this one, with locks of its own.
    pub(crate) fn aside(&self) -> Self {
        Self {
            files: Mutex::new(self.files().clone()),
            locks: Locks::default(),
        }
    }

    /// Waits until no other call of this conversation changes the file.
    pub(crate) async fn lock(&self, path: &VPath) -> PathLock<'_> {
        self.locks.lock(path).await
    }

    /// The same for two files; each pair is locked in one order, so that two
    /// calls never wait for each other.
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

    /// The present moment.
    pub(crate) fn now(&self) -> Moment {
        Moment(self.files().clock)
    }

    /// What was last seen of a file.
    pub(crate) fn seen(&self, path: &VPath) -> Option<Seen> {
        self.files().seen.get(path).cloned()
    }

    /// Remembers what a read that began at `since` showed. If the conversation
    /// has seen or changed the file in the meantime, that is the newer knowledge.
    pub(crate) fn read(&self, path: &VPath, since: Moment, seen: Seen) {
        let mut files = self.files();
        if files.seen.get(path).is_none_or(|known| known.at <= since.0) {
            files.insert(path, seen);
        }
    }

    /// Remembers what the conversation has just written.
    pub(crate) fn wrote(&self, path: &VPath, seen: Seen) {
        self.files().insert(path, seen);
    }

    /// Forgets a file, or a directory and all beneath it.
    pub(crate) fn forget(&self, path: &VPath) {
        self.files().take(path);
    }

    /// Remembers at `to` what was known at `from`, which is there no more.
    pub(crate) fn moved(&self, from: &VPath, to: &VPath) {
        let mut files = self.files();
        let known = files.take(from);
        files.take(to);
        for (path, seen) in known {
            if let Ok(path) = path.rebase(from, to) {
                files.insert(&path, seen);
            }
        }
    }

    /// Nothing in here can be half changed, so a panic elsewhere does no harm.
    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    fn insert(&mut self, path: &VPath, mut seen: Seen) {
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
        let Some(path) = oldest.map(|(path, _)| path.clone()) else {
            return;
        };
        self.remove(&path);
    }

    fn drop_oldest_content(&mut self) {
        let holding = self.seen.values_mut().filter(|seen| seen.kept() > 0);
        match holding.min_by_key(|seen| seen.at) {
            Some(seen) => {
                self.kept -= seen.kept();
                seen.content = None;
            }
            None => self.kept = 0,
        }
    }

    fn remove(&mut self, path: &VPath) -> Option<Seen> {
        let seen = self.seen.remove(path)?;
        self.kept -= seen.kept();
        Some(seen)
    }

    /// Takes out what is known of `path` and all beneath it.
    fn take(&mut self, path: &VPath) -> Vec<(VPath, Seen)> {
        let beneath: Vec<VPath> = self
            .seen
            .keys()
            .filter(|known| known.starts_with(path))
            .cloned()
            .collect();
        let take = |path: VPath| self.remove(&path).map(|seen| (path, seen));
        beneath.into_iter().filter_map(take).collect()
    }
}

#[cfg(test)]
#[path = "tracker_tests.rs"]
mod tests;
