//! One lock per path, which exists while a caller holds it or waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backend_core::VPath;
use futures_util::lock::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The locks that are held or waited for.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    table: Mutex<HashMap<VPath, Arc<AsyncMutex<()>>>>,
}

/// A guard that holds the lock of a path.
#[derive(Debug)]
pub(crate) struct PathLock<'a> {
    guard: Option<OwnedMutexGuard<()>>,
    claim: Claim<'a>,
}

/// Keeps a lock in the table, whether or not it is held. A call that is dropped while
/// it waits leaves nothing behind.
#[derive(Debug)]
struct Claim<'a> {
    locks: &'a Locks,
    path: VPath,
    lock: Option<Arc<AsyncMutex<()>>>,
}

impl Locks {
    pub(crate) async fn lock(&self, path: &VPath) -> PathLock<'_> {
        let lock = Arc::clone(self.table().entry(path.clone()).or_default());
        let claim = Claim {
            locks: self,
            path: path.clone(),
            lock: Some(Arc::clone(&lock)),
        };
        let guard = Some(lock.lock_owned().await);
        PathLock { guard, claim }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<VPath, Arc<AsyncMutex<()>>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of locks.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.table().len()
    }
}

impl Drop for PathLock<'_> {
    fn drop(&mut self) {
        // The guard holds a reference to the lock, so it is dropped before the claim.
        self.guard = None;
        self.claim.release();
    }
}

impl Claim<'_> {
    /// Releases the claim. The last one removes the lock from the table. Claims are
    /// created under the table's lock, so none can appear meanwhile.
    fn release(&mut self) {
        let Some(lock) = self.lock.take() else {
            return;
        };
        let mut table = self.locks.table();
        drop(lock);
        if table
            .get(&self.path)
            .is_some_and(|lock| Arc::strong_count(lock) == 1)
        {
            table.remove(&self.path);
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.release();
    }
}
