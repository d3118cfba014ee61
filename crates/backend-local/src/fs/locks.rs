//! Locks by path, so that no other writer of this backend interferes while a
//! file is read and replaced.

use std::ffi::OsStr;
use std::hash::{BuildHasher as _, RandomState};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, TryLockError};

use backend_core::Result;
use backend_core::sync::lock;
use rustix::fs::fstat;

use crate::fs::errno;

/// The number of locks. Two paths may share one, which only costs time.
const SHARDS: usize = 64;

pub(crate) struct Locks {
    shards: [Mutex<()>; SHARDS],
    hasher: RandomState,
}

/// A guard for the paths it was created for.
#[must_use]
pub(crate) struct PathGuard<'l> {
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
    /// Locks the given names in their directories. Call this only where
    /// blocking is allowed, and not while holding another guard.
    pub(crate) fn hold(&self, places: &[(impl AsFd, &OsStr)]) -> Result<PathGuard<'_>> {
        let mut wanted = Vec::with_capacity(places.len());
        for (directory, name) in places {
            wanted.push(self.shard_of(directory, name)?);
        }
        // Locking in one global order avoids deadlocks.
        wanted.sort_unstable();
        wanted.dedup();
        let shards = wanted
            .into_iter()
            .filter_map(|index| self.shards.get(index));
        Ok(PathGuard {
            _guards: shards.map(lock).collect(),
        })
    }

    /// Locks the given name in its directory, if that takes no waiting.
    pub(crate) fn try_hold(&self, directory: impl AsFd, name: &OsStr) -> Option<PathGuard<'_>> {
        let shard = self.shards.get(self.shard_of(directory, name).ok()?)?;
        let guard = match shard.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(PathGuard {
            _guards: vec![guard],
        })
    }

    /// Returns the number of the lock of a name in a directory.
    fn shard_of(&self, directory: impl AsFd, name: &OsStr) -> Result<usize> {
        let directory = fstat(directory).map_err(errno::error)?;
        let key = (directory.st_dev, directory.st_ino, name);
        Ok(self.hasher.hash_one(key) as usize % SHARDS)
    }
}
