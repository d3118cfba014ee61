//! [`CallSlot`]: a call's slot among the calls that run at the same time.
//!
//! A call that waits for the user's answer runs nothing, so it gives up its slot
//! meanwhile.

use std::sync::{Arc, Mutex};

use backend_core::sync::lock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

tokio::task_local! {
    static CURRENT: Arc<CallSlot>;
}

#[derive(Debug)]
pub(crate) struct CallSlot {
    slots: Arc<Semaphore>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
}

impl CallSlot {
    /// Runs `work` in a free slot. Returns the slot, to be released by the caller.
    pub(crate) async fn run<T>(
        slots: &Arc<Semaphore>,
        work: impl Future<Output = T>,
    ) -> (T, Option<OwnedSemaphorePermit>) {
        let slot = Arc::new(Self {
            slots: Arc::clone(slots),
            held: Mutex::default(),
        });
        slot.acquire().await;
        let done = CURRENT.scope(Arc::clone(&slot), work).await;
        (done, slot.replace(None))
    }

    /// Awaits something that is not work, without holding the slot of the current call.
    pub(crate) async fn release_during<T>(wait: impl Future<Output = T>) -> T {
        let slot = CURRENT.try_with(Arc::clone).ok();
        if let Some(slot) = &slot {
            drop(slot.replace(None));
        }
        let done = wait.await;
        if let Some(slot) = &slot {
            slot.acquire().await;
        }
        done
    }

    async fn acquire(&self) {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.slots).acquire_owned().await.ok();
        drop(self.replace(permit));
    }

    fn replace(&self, permit: Option<OwnedSemaphorePermit>) -> Option<OwnedSemaphorePermit> {
        std::mem::replace(&mut *lock(&self.held), permit)
    }
}
