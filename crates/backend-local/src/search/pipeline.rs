//! Shares a search out to threads, and puts what they find in order.
//!
//! Every thread does the same: it takes the next batch of files from the walk,
//! looks at them, and hands over what it found. One thread at a time walks while
//! the others look. Batches are numbered as they are taken, and what was found
//! in them reaches the collector in that order, so the answer is that of a
//! search by a single thread, and everything stops when the collector is full.
//!
//! # Bounds
//!
//! A thread works on one batch at a time. What is found in a batch waits for the
//! batches before it; once more than [`HELD_BYTES`] wait, no thread goes on
//! until the slowest has caught up. That one never waits: all batches before its
//! own have been collected.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backend_core::ops::Skipped;
use backend_core::{Error, ErrorKind, Result};

use super::Stop;
use super::walker::{Target, Walker};
use crate::engine;

/// Threads that work on one search, and that help in all searches together.
const THREADS: usize = 8;

/// What was found and cannot be collected yet, in bytes.
const HELD_BYTES: usize = 4 * 1024 * 1024;

/// Files that one thread looks at before others are asked to help, unless this
/// takes longer than [`ALONE_TIME`].
const ALONE_FILES: usize = 48;
const ALONE_TIME: Duration = Duration::from_micros(500);

/// What is done with each file that is found.
pub(super) trait Task: Send + Sync + 'static {
    /// Files in a batch.
    const BATCH: usize;
    /// What one thread needs for its work.
    type Worker<'a>;
    /// What there is to tell about one file.
    type Found: Send;
    /// What puts this together, given in path order.
    type Collector: Send;

    fn worker(&self) -> Self::Worker<'_>;

    /// Looks at a file; `None` if there is nothing to tell. An error ends the
    /// search. Once told to stop, an answer soon is all that counts.
    fn look(
        &self,
        worker: &mut Self::Worker<'_>,
        file: Target,
        stop: &Stop,
    ) -> Result<Option<Self::Found>>;

    /// About how many bytes this takes up.
    fn size(found: &Self::Found) -> usize;

    /// Breaks when nothing more can change the result.
    fn collect(collector: &mut Self::Collector, found: Self::Found) -> ControlFlow<()>;
}

/// Searches with as many threads as are worth it. Returns the collector and what
/// the walk had passed over when the search ended.
pub(super) fn run<T: Task>(
    task: T,
    collector: T::Collector,
    walker: Walker,
    stop: Stop,
) -> Result<(T::Collector, Skipped)> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    run_on(threads.min(THREADS), task, collector, walker, stop)
}

fn run_on<T: Task>(
    threads: usize,
    task: T,
    collector: T::Collector,
    walker: Walker,
    stop: Stop,
) -> Result<(T::Collector, Skipped)> {
    let pipeline = Arc::new(Pipeline {
        task,
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
        None => lock(&pipeline.walker).skipped(),
    };
    let collector = merge.collector.take();
    let collector = collector.ok_or_else(|| Error::internal("a search ended twice"))?;
    Ok((collector, skipped))
}

struct Pipeline<T: Task> {
    task: T,
    walker: Mutex<Walker>,
    merge: Mutex<Merge<T>>,
    /// Told whenever a batch was collected or a thread left.
    moved: Condvar,
    stop: Stop,
}

/// What was found in a batch, with what the walk had passed over by then.
type Findings<T> = Vec<(Skipped, <T as Task>::Found)>;

struct Merge<T: Task> {
    /// There until the end.
    collector: Option<T::Collector>,
    /// The batch to be collected next.
    next: u64,
    /// Batches that others must come before, with their sizes.
    waiting: BTreeMap<u64, (usize, Findings<T>)>,
    /// The sizes of these together.
    held: usize,
    /// Threads at work.
    threads: usize,
    /// Whether it is too late to begin.
    closed: bool,
    /// What had been passed over when the collector was full.
    full: Option<Skipped>,
    /// Why there is no answer.
    error: Option<Error>,
}

impl<T: Task> Merge<T> {
    fn collect(&mut self, findings: Findings<T>, stop: &Stop) {
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

    /// Takes the batch to be collected next, if it is waiting.
    fn pop_next(&mut self) -> Option<(usize, Findings<T>)> {
        self.waiting.remove(&self.next)
    }

    fn fail(&mut self, error: Error, stop: &Stop) {
        self.error.get_or_insert(error);
        stop.set();
    }
}

impl<T: Task> Pipeline<T> {
    /// Works until the end, alone at first: small trees are not worth a thread.
    fn lead(self: &Arc<Self>, threads: usize) {
        let _leaving = Leaving(self);
        let begun = Instant::now();
        let mut worker = self.task.worker();
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
        let Ok(engine) = engine::handle() else {
            return;
        };
        for _ in 0..most {
            let Some(place) = Place::take() else {
                return;
            };
            let this = Arc::clone(self);
            engine.spawn_blocking(move || {
                let _place = place;
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
        let mut worker = self.task.worker();
        while self.turn(&mut worker, T::BATCH) {}
    }

    /// Does one batch. Returns whether there may be another.
    fn turn(&self, worker: &mut T::Worker<'_>, most: usize) -> bool {
        match self.look_at_batch(worker, most) {
            Ok(goes_on) => goes_on,
            Err(error) => {
                lock(&self.merge).fail(error, &self.stop);
                false
            }
        }
    }

    fn look_at_batch(&self, worker: &mut T::Worker<'_>, most: usize) -> Result<bool> {
        let batch = lock(&self.walker).next_batch(most, &self.stop)?;
        let Some(batch) = batch else {
            return Ok(false);
        };
        let mut findings = Vec::new();
        let mut size = 0;
        for (skipped, file) in batch.files {
            if self.stop.is_set() {
                return Ok(false);
            }
            if let Some(found) = self.task.look(worker, file, &self.stop)? {
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

    /// Hands over the beginning of a batch once it is its turn.
    fn hand_over_part(&self, number: u64, findings: Findings<T>) {
        let mut merge = self.wait_while(lock(&self.merge), |merge| merge.next < number);
        if merge.next == number {
            merge.collect(findings, &self.stop);
        }
    }

    /// Hands over a batch, and what waited for it.
    fn hand_over(&self, number: u64, findings: Findings<T>, size: usize) {
        // What a batch takes up in which nothing was found.
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

    /// Waits while `condition` holds and nobody said stop.
    ///
    /// Whoever says stop need not wake anybody: the threads that are not waiting
    /// leave soon, and that does.
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

    /// Lets nobody begin any more and waits for those who have.
    fn close(&self) -> MutexGuard<'_, Merge<T>> {
        let mut merge = lock(&self.merge);
        merge.closed = true;
        self.moved
            .wait_while(merge, |merge| merge.threads > 0)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody panicked while holding a lock: the search has failed and will say
/// so, and nothing here is left half done in a way that could harm.
fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the others when a thread leaves, whatever the reason.
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

/// The right to help in a search. There are few, so that searches leave threads
/// of the engine to other work.
struct Place;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

impl Place {
    fn take() -> Option<Self> {
        let more = |taken| (taken < THREADS).then_some(taken + 1);
        TAKEN
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()
            .map(|_| Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        TAKEN.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "pipeline_tests.rs"]
mod tests;
