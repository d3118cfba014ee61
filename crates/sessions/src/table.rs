//! [`Table`]: the sessions of this process, in shards that do not wait for each other.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::SessionId;
use crate::slot::{Phase, Slot};

/// Number of shards.
const SHARDS: usize = 32;

type Shard = HashMap<SessionId, Arc<Slot>>;

/// The sessions of this process.
#[derive(Debug)]
pub(crate) struct Table {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
        }
    }

    fn shard(&self, id: &str) -> MutexGuard<'_, Shard> {
        let hash = self.hasher.hash_one(id);
        let index = usize::try_from(hash % SHARDS as u64).unwrap_or(0);
        lock(&self.shards[index])
    }

    /// Returns the slot of a session that is open or being opened.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Slot>> {
        self.shard(id).get(id).cloned()
    }

    /// Returns the slot of a session, which is a new one if there is none.
    pub(crate) fn get_or_insert(
        &self,
        id: &SessionId,
        new: impl FnOnce() -> Arc<Slot>,
    ) -> Arc<Slot> {
        let mut shard = self.shard(id.as_str());
        Arc::clone(shard.entry(id.clone()).or_insert_with(new))
    }

    /// Removes a slot, unless another one is in its place.
    pub(crate) fn remove(&self, slot: &Arc<Slot>) {
        let mut shard = self.shard(slot.id.as_str());
        if shard
            .get(&slot.id)
            .is_some_and(|found| Arc::ptr_eq(found, slot))
        {
            shard.remove(&slot.id);
        }
    }

    /// Returns all slots, in no order.
    pub(crate) fn slots(&self) -> Vec<Arc<Slot>> {
        let shards = self.shards.iter();
        shards
            .flat_map(|shard| lock(shard).values().cloned().collect::<Vec<_>>())
            .collect()
    }

    /// Returns the slots of sessions that are open: not those that are being opened.
    pub(crate) fn open(&self) -> Vec<Arc<Slot>> {
        let mut slots = self.slots();
        slots.retain(|slot| !matches!(slot.phase(), Phase::New | Phase::Ended));
        slots
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // A map is never left half-changed by a panic elsewhere.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
