//! One lock per path, which exists while a caller holds it or waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use backend_core::VPath;
use backend_core::sync::lock;
use futures_util::lock::{Mutex as AsyncMutex, OwnedMutexGuard};

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
