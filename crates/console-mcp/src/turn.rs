//! [`Turn`]: a call's slot among the calls that run at the same time.
//!
//! A call that waits for the user's answer runs nothing, so it gives up its slot
//! meanwhile.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

tokio::task_local! {
    static TURN: Arc<Turn>;
}

/// A call's slot among the running calls.
#[derive(Debug)]
pub(crate) struct Turn {
    places: Arc<Semaphore>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Turn {
    /// Runs `work` once there is a free slot. Returns the slot, to be released by the
    /// caller.
    pub(crate) async fn take<T>(
        places: &Arc<Semaphore>,
        work: impl Future<Output = T>,
    ) -> (T, Option<OwnedSemaphorePermit>) {
        let turn = Arc::new(Self {
            places: Arc::clone(places),
            held: Mutex::default(),
        });
        turn.begin().await;
        let done = TURN.scope(Arc::clone(&turn), work).await;
        (done, turn.hold(None))
    }

    /// Awaits something that is not work, without holding the slot of the current call.
    pub(crate) async fn step_aside<T>(wait: impl Future<Output = T>) -> T {
        let turn = TURN.try_with(Arc::clone).ok();
        if let Some(turn) = &turn {
            drop(turn.hold(None));
        }
        let done = wait.await;
        if let Some(turn) = &turn {
            turn.begin().await;
        }
        done
    }

    async fn begin(&self) {
        // The semaphore is never closed.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        drop(self.hold(place));
    }

    fn hold(&self, place: Option<OwnedSemaphorePermit>) -> Option<OwnedSemaphorePermit> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut held, place)
    }
}
