//! Locks by place, so that a file is read and replaced without another writer
//! of this backend in between.

use std::ffi::OsStr;
use std::hash::{BuildHasher as _, RandomState};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::fstat;

use backend_core::Result;

use crate::fs::errno;

/// How many places can be locked at once. Two places may share a lock, which
/// costs time and nothing else.
const SHARDS: usize = 64;

/// A fixed table of locks.
pub(crate) struct Locks {
    shards: [Mutex<()>; SHARDS],
    hasher: RandomState,
}

/// Holds the places it was made for.
#[must_use]
pub(crate) struct Held<'l> {
    _guards: Vec<MutexGuard<'l, ()>>,
}

impl Default for Locks {
    fn default() -> Self {
        Self {
            shards: [const { Mutex::new(()) }; SHARDS],
            hasher: RandomState::new(),
        }
    }
}

impl Locks {
    /// Waits for the names in these directories. Only to be called where waiting
    /// is allowed, and not while holding others.
    ///
    /// # Errors
    ///
    /// What the kernel says of a directory.
    pub(crate) fn hold(&self, places: &[(impl AsFd, &OsStr)]) -> Result<Held<'_>> {
        let mut wanted = Vec::with_capacity(places.len());
        for (directory, name) in places {
            let directory = fstat(directory).map_err(errno::error)?;
            let key = (directory.st_dev, directory.st_ino, *name);
            wanted.push(self.hasher.hash_one(key) as usize % SHARDS);
        }
        // One order for all: nobody waits for somebody who waits for them.
        wanted.sort_unstable();
        wanted.dedup();
        let shards = wanted
            .into_iter()
            .filter_map(|index| self.shards.get(index));
        // Nothing is kept under a lock that a panic could leave half-changed.
        let guards = shards.map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Held {
            _guards: guards.collect(),
        })
    }
}
