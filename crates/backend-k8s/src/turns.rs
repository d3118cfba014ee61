//! Turns: how many programs may be starting in one pod at a time.
//!
//! A container runtime that is asked to start many programs in one container at once can
//! stall all of them. So they are started a few at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use backend_core::sync::lock;
use backend_core::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Programs that may be starting in one pod at a time.
const STARTS: usize = 4;

/// The turns of all pods in which a program is starting.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<BTreeMap<String, Weak<Semaphore>>>);

/// The right to start a program. Dropping it gives it to the next one.
#[derive(Debug)]
pub(crate) struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl Turns {
    /// Waits for a turn in a pod, in the order of the calls.
    pub(crate) async fn take(&self, pod: &str) -> Result<Turn> {
        let permit = self.of(pod).acquire_owned().await;
        let permit = permit.map_err(|_| Error::internal("the turns of a pod were closed"))?;
        Ok(Turn { _permit: permit })
    }

    fn of(&self, pod: &str) -> Arc<Semaphore> {
        let mut pods = lock(&self.0);
        if let Some(turns) = pods.get(pod).and_then(Weak::upgrade) {
            return turns;
        }
        // Every permit holds its semaphore, so the others are not in use.
        pods.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::new(Semaphore::new(STARTS));
        pods.insert(pod.to_owned(), Arc::downgrade(&turns));
        turns
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_few_at_a_time_in_each_pod() {
        let turns = Turns::default();
        let mut held = Vec::new();
        for _ in 0..STARTS {
            held.push(turns.take("a").await.unwrap());
        }
        let mut next = Box::pin(turns.take("a"));
        assert!((&mut next).now_or_never().is_none());
        turns.take("b").await.unwrap();
        held.pop();
        next.await.unwrap();
    }

    #[tokio::test]
    async fn pods_that_are_done_are_forgotten() {
        let turns = Turns::default();
        for pod in 0..100 {
            drop(turns.take(&pod.to_string()).await.unwrap());
        }
        assert_eq!(lock(&turns.0).len(), 1);
    }
}
