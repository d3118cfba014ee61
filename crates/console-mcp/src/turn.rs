//! [`Turn`]: a call's place among those that run at the same time.
//!
//! A call that waits for somebody's answer runs nothing, so it gives its place to
//! others meanwhile.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

tokio::task_local! {
    static TURN: Arc<Turn>;
}

/// A call's place among those that run.
#[derive(Debug)]
pub(crate) struct Turn {
    places: Arc<Semaphore>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Turn {
    /// Does `work` when there is a place, which is left to the caller then.
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

    /// Waits for something that is no work, without the place of the call that
    /// this is part of.
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
        // It is never closed.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        drop(self.hold(place));
    }

    fn hold(&self, place: Option<OwnedSemaphorePermit>) -> Option<OwnedSemaphorePermit> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut held, place)
    }
}
