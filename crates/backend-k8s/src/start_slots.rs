//! [`StartSlots`]: how many programs may be starting in one pod at a time.
//!
//! A container runtime that is asked to start many programs in one container at once can
//! stall all of them. So they are started a few at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use backend_core::sync::lock;
use backend_core::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Programs that may be starting in one pod at a time.
const SLOTS: usize = 4;

/// The slots of all pods in which a program is starting.
#[derive(Debug, Default)]
pub(crate) struct StartSlots(Mutex<BTreeMap<String, Weak<Semaphore>>>);

/// The right to start a program. Dropping it gives it to the next one.
#[derive(Debug)]
pub(crate) struct StartSlot {
    _permit: OwnedSemaphorePermit,
}

impl StartSlots {
    /// Waits for a slot in a pod, in the order of the calls.
    pub(crate) async fn take(&self, pod: &str) -> Result<StartSlot> {
        let permit = self.of(pod).acquire_owned().await;
        let permit = permit.map_err(|_| Error::internal("the slots of a pod were closed"))?;
        Ok(StartSlot { _permit: permit })
    }

    fn of(&self, pod: &str) -> Arc<Semaphore> {
        let mut pods = lock(&self.0);
        if let Some(slots) = pods.get(pod).and_then(Weak::upgrade) {
            return slots;
        }
        // Every permit holds its semaphore, so the others are not in use.
        pods.retain(|_, slots| slots.strong_count() > 0);
        let slots = Arc::new(Semaphore::new(SLOTS));
        pods.insert(pod.to_owned(), Arc::downgrade(&slots));
        slots
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_few_at_a_time_in_each_pod() {
        let slots = StartSlots::default();
        let mut held = Vec::new();
        for _ in 0..SLOTS {
            held.push(slots.take("a").await.unwrap());
        }
        let mut next = Box::pin(slots.take("a"));
        assert!((&mut next).now_or_never().is_none());
        slots.take("b").await.unwrap();
        held.pop();
        next.await.unwrap();
    }

    #[tokio::test]
    async fn pods_that_are_done_are_forgotten() {
        let slots = StartSlots::default();
        for pod in 0..100 {
            drop(slots.take(&pod.to_string()).await.unwrap());
        }
        assert_eq!(lock(&slots.0).len(), 1);
    }
}
