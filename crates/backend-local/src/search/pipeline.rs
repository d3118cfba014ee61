//! Distributes a search over threads, and merges their results in order.
//!
//! Every thread does the same: it takes the next batch of files from the walk,
//! examines them, and hands over its results. One thread at a time walks while
//! the others examine files, or list the directories that come [next](super::ahead).
//! Batches are numbered as they are taken, and their
//! results reach the collector in that order. So the result is the same as with
//! a single thread, and everything stops when the collector is full.
//!
//! # Bounds
//!
//! A thread works on one batch at a time. The results of a batch wait for the
//! batches before it. Once more than [`HELD_BYTES`] wait, no thread goes on
//! until the slowest has caught up. The slowest never waits, because all
//! batches before its own have been collected.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backend_core::ops::Skipped;
use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Result};
use tokio::sync::Semaphore;

use super::ahead::Ahead;
use super::listing::{ListingBuffer, list_beneath};
use super::walker::{Batch, Candidate, Walker};
use crate::cancel::CancelFlag;
use crate::engine;

/// The number of threads for one search, and of helper threads for all searches
/// together.
const THREADS: usize = 8;

/// Permits for helper threads, so that searches leave threads of the engine to
/// other work.
static HELPERS: Semaphore = Semaphore::const_new(THREADS);

/// The size of results that may wait to be collected, in bytes.
const HELD_BYTES: usize = 4 * 1024 * 1024;

/// The number of files that one thread examines before others are asked to
/// help, unless this takes longer than [`ALONE_TIME`].
const ALONE_FILES: usize = 48;
const ALONE_TIME: Duration = Duration::from_micros(500);

/// The work that is done for each file.
pub(super) trait Task: Send + Sync + 'static {
    /// The number of files in a batch.
    const BATCH: usize;
    /// The state of one thread.
    type Worker<'a>;
    /// The result for one file.
    type Found: Send;
    /// Combines the results, which it gets in path order.
    type Collector: Send;

    fn worker(&self) -> Self::Worker<'_>;

    /// Examines a file. Returns `None` if there is no result for it. An error
    /// ends the search. After `stop` is set, only a quick return matters.
    fn examine(
        &self,
        worker: &mut Self::Worker<'_>,
        file: Candidate,
        stop: &CancelFlag,
    ) -> Result<Option<Self::Found>>;

    /// Returns the approximate size of a result in bytes.
    fn size(found: &Self::Found) -> usize;

    /// Breaks when nothing more can change the result.
    fn collect(collector: &mut Self::Collector, found: Self::Found) -> ControlFlow<()>;
}

/// Searches with as many threads as are useful. Returns the collector, and the
/// entries that the walk had skipped when the search ended.
pub(super) fn run<T: Task>(
    task: T,
    collector: T::Collector,
    walker: Walker,
    stop: CancelFlag,
) -> Result<(T::Collector, Skipped)> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    run_on(threads.min(THREADS), task, collector, walker, stop)
}

fn run_on<T: Task>(
    threads: usize,
    task: T,
    collector: T::Collector,
    walker: Walker,
    stop: CancelFlag,
) -> Result<(T::Collector, Skipped)> {
    let pipeline = Arc::new(Pipeline {
        task,
        ahead: Arc::clone(&walker.ahead),
        walker: Mutex::new(walker),
        merge: Mutex::new(Merge {
            collector: Some(collector),
            next: 0,
            waiting: BTreeMap::new(),
            held: 0,
            threads: 1,
            closed: false,
            full: None,
            error: None,
        }),
        moved: Condvar::new(),
        stop,
    });
    pipeline.lead(threads);
    let mut merge = pipeline.close();
    if let Some(error) = merge.error.take() {
        return Err(error);
    }
    let skipped = match merge.full {
        Some(skipped) => skipped,
        None if pipeline.stop.is_set() => {
            return Err(Error::new(ErrorKind::Cancelled, "the search was dropped"));
        }
        None => lock(&pipeline.walker).walk.skipped(),
    };
    let collector = merge.collector.take();
    let collector = collector.ok_or_else(|| Error::internal("a search ended twice"))?;
    Ok((collector, skipped))
}

/// After a panic under one of its locks the search fails, whatever state is left.
struct Pipeline<T: Task> {
    task: T,
    /// Decides which thread may lock the walker.
    ahead: Arc<Ahead>,
    walker: Mutex<Walker>,
    merge: Mutex<Merge<T>>,
    /// Notified whenever a batch was collected or a thread left.
    moved: Condvar,
    stop: CancelFlag,
}

/// The results of a batch, each with the entries skipped by then.
type Findings<T> = Vec<(Skipped, <T as Task>::Found)>;

struct Merge<T: Task> {
    /// `Some` until the end.
    collector: Option<T::Collector>,
    /// The number of the next batch to collect.
    next: u64,
    /// Batches that wait for earlier ones, with their sizes.
    waiting: BTreeMap<u64, (usize, Findings<T>)>,
    held: usize,
    threads: usize,
    /// Whether helper threads may no longer start.
    closed: bool,
    /// The entries skipped by the time the collector was full.
    full: Option<Skipped>,
    error: Option<Error>,
}

impl<T: Task> Merge<T> {
    fn collect(&mut self, findings: Findings<T>, stop: &CancelFlag) {
        let Some(collector) = self.collector.as_mut().filter(|_| self.full.is_none()) else {
            return;
        };
        for (skipped, found) in findings {
            if T::collect(collector, found).is_break() {
                self.full = Some(skipped);
                return stop.set();
            }
        }
    }

    /// Removes the next batch to collect, if it is waiting.
    fn pop_next(&mut self) -> Option<(usize, Findings<T>)> {
        self.waiting.remove(&self.next)
    }

    fn fail(&mut self, error: Error, stop: &CancelFlag) {
        self.error.get_or_insert(error);
        stop.set();
    }
}

impl<T: Task> Pipeline<T> {
    /// Works until the end, alone at first: small trees are not worth more
    /// threads.
    fn lead(self: &Arc<Self>, threads: usize) {
        let _leaving = Leaving(self);
        let begun = Instant::now();
        let mut worker = (self.task.worker(), ListingBuffer::default());
        let mut files = 0;
        let mut most = 1;
        while files < ALONE_FILES && begun.elapsed() < ALONE_TIME {
            if !self.turn(&mut worker, most) {
                return;
            }
            files += most;
            most = (2 * most).min(T::BATCH);
        }
        self.call_helpers(threads - 1);
        while self.turn(&mut worker, T::BATCH) {}
    }

    fn call_helpers(self: &Arc<Self>, most: usize) {
        if most > 0 {
            self.ahead.share();
        }
        let Ok(engine) = engine::handle() else {
            return;
        };
        for _ in 0..most {
            let Ok(permit) = HELPERS.try_acquire() else {
                return;
            };
            let this = Arc::clone(self);
            engine.spawn_blocking(move || {
                let _permit = permit;
                this.help();
            });
        }
    }

    fn help(&self) {
        {
            let mut merge = lock(&self.merge);
            if merge.closed {
                return;
            }
            merge.threads += 1;
        }
        let _leaving = Leaving(self);
        let mut worker = (self.task.worker(), ListingBuffer::default());
        while self.turn(&mut worker, T::BATCH) {}
    }

    /// Processes one batch. Returns whether there may be another.
    fn turn(&self, worker: &mut (T::Worker<'_>, ListingBuffer), most: usize) -> bool {
        match self.examine_batch(worker, most) {
            Ok(goes_on) => goes_on,
            Err(error) => {
                lock(&self.merge).fail(error, &self.stop);
                false
            }
        }
    }

    fn next_batch(&self, buffer: &mut ListingBuffer, most: usize) -> Result<Option<Batch>> {
        let _turn = self.ahead.turn(|parent, name| {
            let listed = || list_beneath(parent, name, buffer, &self.stop).ok();
            (!self.stop.is_set()).then(listed).flatten()
        });
        lock(&self.walker).next_batch(most, &self.stop)
    }

    fn examine_batch(
        &self,
        (worker, buffer): &mut (T::Worker<'_>, ListingBuffer),
        most: usize,
    ) -> Result<bool> {
        let batch = self.next_batch(buffer, most)?;
        let Some(batch) = batch else {
            return Ok(false);
        };
        let mut findings = Vec::new();
        let mut size = 0;
        for (skipped, file) in batch.files {
            if self.stop.is_set() {
                return Ok(false);
            }
            if let Some(found) = self.task.examine(worker, file, &self.stop)? {
                size += size_of::<Skipped>() + T::size(&found);
                findings.push((skipped, found));
            }
            if size > HELD_BYTES {
                self.hand_over_part(batch.number, std::mem::take(&mut findings));
                size = 0;
            }
        }
        self.hand_over(batch.number, findings, size);
        Ok(!self.stop.is_set())
    }

    /// Hands over the first part of a batch when it is its turn.
    fn hand_over_part(&self, number: u64, findings: Findings<T>) {
        let mut merge = self.wait_while(lock(&self.merge), |merge| merge.next < number);
        if merge.next == number {
            merge.collect(findings, &self.stop);
        }
    }

    /// Hands over a batch, and those that waited for it.
    fn hand_over(&self, number: u64, findings: Findings<T>, size: usize) {
        // The size of a batch without results.
        const EMPTY: usize = 64;
        let mut merge = lock(&self.merge);
        if merge.next < number {
            let size = size + EMPTY;
            merge.held += size;
            merge.waiting.insert(number, (size, findings));
            drop(self.wait_while(merge, |merge| merge.held > HELD_BYTES));
            return;
        }
        merge.collect(findings, &self.stop);
        merge.next += 1;
        while let Some((size, findings)) = merge.pop_next() {
            merge.held -= size;
            merge.collect(findings, &self.stop);
            merge.next += 1;
        }
        self.moved.notify_all();
    }

    /// Waits while `condition` holds and `stop` is not set.
    ///
    /// Setting `stop` need not wake the waiting threads: the other threads
    /// leave soon, and leaving wakes them.
    fn wait_while<'m>(
        &self,
        merge: MutexGuard<'m, Merge<T>>,
        condition: impl Fn(&Merge<T>) -> bool,
    ) -> MutexGuard<'m, Merge<T>> {
        let waits = |merge: &mut Merge<T>| condition(merge) && !self.stop.is_set();
        self.moved
            .wait_while(merge, waits)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Prevents more threads from starting and waits for the running ones.
    fn close(&self) -> MutexGuard<'_, Merge<T>> {
        let mut merge = lock(&self.merge);
        merge.closed = true;
        self.moved
            .wait_while(merge, |merge| merge.threads > 0)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notifies the other threads when a thread leaves, for whatever reason.
struct Leaving<'p, T: Task>(&'p Pipeline<T>);

impl<T: Task> Drop for Leaving<'_, T> {
    fn drop(&mut self) {
        let mut merge = lock(&self.0.merge);
        merge.threads -= 1;
        if std::thread::panicking() {
            let error = Error::internal("a search panicked; please report this");
            merge.fail(error, &self.0.stop);
        }
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests;
