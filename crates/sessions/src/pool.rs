//! [`Pool`]: things made ahead of time, because making one takes long.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::Result;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::sync::Semaphore;

/// The pause before an item that was taken is replaced.
const REFILL_PAUSE: Duration = Duration::from_millis(200);

/// Makes the items of a pool.
#[async_trait]
pub(crate) trait Source: fmt::Debug + Send + Sync + 'static {
    /// A thing that the pool holds.
    type Item: fmt::Debug + Send + 'static;

    /// Makes one item, ready to be used. A failure leaves nothing behind.
    async fn make(&self) -> Result<Self::Item>;

    /// Ends an item that was not used.
    async fn discard(&self, item: Self::Item);
}

/// A number of items that are ready. Clones share them.
///
/// Items are made one after the other, in a task of their own: a caller that is cancelled
/// neither stops the work nor loses what it made.
#[derive(Debug)]
pub(crate) struct Pool<S: Source>(Arc<Shared<S>>);

impl<S: Source> Clone for Pool<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Shared<S: Source> {
    source: S,
    size: usize,
    shelf: Mutex<Shelf<S::Item>>,
    /// Held while items are made.
    turn: Semaphore,
    /// Whether a task is about to fill the pool.
    refilling: AtomicBool,
}

#[derive(Debug)]
struct Shelf<T> {
    /// The oldest comes first.
    ready: VecDeque<T>,
    closed: bool,
}

impl<S: Source> Shared<S> {
    fn shelf(&self) -> MutexGuard<'_, Shelf<S::Item>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_short(&self) -> bool {
        let shelf = self.shelf();
        !shelf.closed && shelf.ready.len() < self.size
    }

    /// Puts an item on the shelf, or returns it if there is no place.
    fn put(&self, item: S::Item) -> Option<S::Item> {
        let mut shelf = self.shelf();
        if shelf.closed || shelf.ready.len() >= self.size {
            return Some(item);
        }
        shelf.ready.push_back(item);
        None
    }
}

impl<S: Source> Pool<S> {
    /// Creates an empty pool for `size` items.
    pub(crate) fn new(source: S, size: usize) -> Self {
        Self(Arc::new(Shared {
            source,
            size,
            shelf: Mutex::new(Shelf {
                ready: VecDeque::with_capacity(size),
                closed: false,
            }),
            turn: Semaphore::new(1),
            refilling: AtomicBool::new(false),
        }))
    }

    /// Takes an item, if one is ready, and replaces it in the background.
    pub(crate) fn take(&self) -> Option<S::Item> {
        let item = self.0.shelf().ready.pop_front();
        self.refill();
        item
    }

    /// Puts an item back that was not used after all.
    pub(crate) async fn give_back(&self, item: S::Item) {
        if let Some(item) = self.0.put(item) {
            self.0.source.discard(item).await;
        }
    }

    /// Ends an item that turned out to be of no use.
    pub(crate) async fn discard(&self, item: S::Item) {
        self.0.source.discard(item).await;
    }

    /// Fills the pool in the background. A failure is logged, and the next call tries
    /// again.
    pub(crate) fn refill(&self) {
        if !self.0.is_short() || self.0.refilling.swap(true, Ordering::AcqRel) {
            return;
        }
        let pool = self.clone();
        let refill = async move {
            // Making an item would slow down the use of the one that was just taken.
            tokio::time::sleep(REFILL_PAUSE).await;
            let filled = pool.fill_now().await;
            pool.0.refilling.store(false, Ordering::Release);
            match filled {
                // One may have been taken just before the flag was cleared.
                Ok(()) => pool.refill(),
                Err(error) => {
                    tracing::warn!("a pool of sandboxes is not full: {}", error.chain());
                }
            }
        };
        tokio::spawn(refill.boxed());
    }

    /// Fills the pool.
    ///
    /// # Errors
    ///
    /// Any of making an item; those made before stay.
    pub(crate) async fn fill(&self) -> Result<()> {
        let pool = self.clone();
        let filled = tokio::spawn(async move { pool.fill_now().await }.boxed()).await;
        filled.unwrap_or_else(|_| Err(backend_core::Error::unavailable("the program is ending")))
    }

    async fn fill_now(&self) -> Result<()> {
        let _turn = self.0.turn.acquire().await;
        while self.0.is_short() {
            let item = self.0.source.make().await?;
            self.give_back(item).await;
        }
        Ok(())
    }

    /// Ends all items, also one that is being made, and makes no more.
    pub(crate) async fn close(&self) {
        let ready = {
            let mut shelf = self.0.shelf();
            shelf.closed = true;
            std::mem::take(&mut shelf.ready)
        };
        join_all(ready.into_iter().map(|item| self.discard(item))).await;
        // An item in the making is discarded when it is put on the closed shelf.
        drop(self.0.turn.acquire().await);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use backend_core::Error;

    use super::*;

    /// Makes numbers, and counts those that exist.
    #[derive(Debug, Default)]
    struct Numbers {
        made: AtomicUsize,
        discarded: Arc<AtomicUsize>,
        fails: Arc<AtomicBool>,
    }

    #[async_trait]
    impl Source for Numbers {
        type Item = usize;

        async fn make(&self) -> Result<usize> {
            tokio::task::yield_now().await;
            if self.fails.load(Ordering::SeqCst) {
                return Err(Error::unavailable("no more numbers"));
            }
            Ok(self.made.fetch_add(1, Ordering::SeqCst))
        }

        async fn discard(&self, _: usize) {
            self.discarded.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Waits until a pool holds as many items as it can.
    async fn full(pool: &Pool<Numbers>) {
        while pool.0.is_short() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_is_taken_is_replaced_and_the_oldest_comes_first() {
        let pool = Pool::new(Numbers::default(), 2);
        assert_eq!(pool.take(), None, "nothing was made yet");
        full(&pool).await;
        assert_eq!(pool.take(), Some(0));
        full(&pool).await;
        assert_eq!((pool.take(), pool.take()), (Some(1), Some(2)));
    }

    #[tokio::test]
    async fn a_closed_pool_leaves_nothing() {
        let numbers = Numbers::default();
        let discarded = Arc::clone(&numbers.discarded);
        let pool = Pool::new(numbers, 3);
        pool.fill().await.unwrap();
        let item = pool.take().unwrap();
        pool.close().await;
        pool.give_back(item).await;
        let made = pool.0.source.made.load(Ordering::SeqCst);
        assert_eq!(discarded.load(Ordering::SeqCst), made);
        pool.fill().await.unwrap();
        assert_eq!(pool.take(), None);
    }

    #[tokio::test]
    async fn a_failure_is_reported_and_tried_again_later() {
        let numbers = Numbers::default();
        let fails = Arc::clone(&numbers.fails);
        let pool = Pool::new(numbers, 1);
        fails.store(true, Ordering::SeqCst);
        let error = pool.fill().await.unwrap_err();
        assert_eq!(error.message(), "no more numbers");
        fails.store(false, Ordering::SeqCst);
        pool.refill();
        full(&pool).await;
        assert_eq!(pool.take(), Some(0));
    }
}
