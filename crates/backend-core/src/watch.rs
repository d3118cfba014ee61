//! The queue between the place where changes are seen and the stream that tells them:
//! bounded, coalescing, without I/O and without a runtime.
//!
//! ```
//! use backend_core::VPath;
//! use backend_core::ops::{Change, WatchEvent};
//! use futures::{StreamExt as _, executor::block_on};
//!
//! let (sender, mut changes) = backend_core::watch::channel();
//! let path = VPath::parse("/notes.md")?;
//! sender.tell(Change::created(path.clone()));
//! sender.tell(Change::changed(path.clone()));
//! drop(sender);
//! let told = block_on(changes.next()).unwrap();
//! assert_eq!(told?, WatchEvent::Change(Change::created(path)));
//! assert!(block_on(changes.next()).is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use crate::error::{Error, Result};
use crate::limits::{WATCH_BYTES, WATCH_EVENTS};
use crate::ops::{Change, ChangeKind, WatchEvent};
use crate::path::VPath;
use crate::sync::lock;

/// Creates a queue with the limits of every watch.
pub fn channel() -> (ChangeSender, ChangeStream) {
    let shared = Arc::new(Mutex::new(Queue::default()));
    let sender = ChangeSender {
        shared: Arc::clone(&shared),
    };
    (sender, ChangeStream { shared })
}

/// The end into which changes are put. Dropping it ends the stream once all is read.
pub struct ChangeSender {
    shared: Arc<Mutex<Queue>>,
}

/// The end that is read. Dropping it tells the sender that it can stop.
pub struct ChangeStream {
    shared: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<WatchEvent>,
    /// Bytes of the paths in `events`.
    bytes: usize,
    /// Paths whose last unread event says that they are new or changed, so that another
    /// change of them is known when that event is read.
    fresh: HashSet<VPath>,
    /// Whether changes were lost since the last read of [`WatchEvent::Overflow`].
    overflowed: bool,
    /// Whether nothing more will be put in.
    ended: bool,
    /// The last item of the stream, if it is an error.
    error: Option<Error>,
    /// Whether the stream was dropped.
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Queue {
    fn push(&mut self, change: Change) {
        if self.overflowed || self.ended || self.closed {
            return;
        }
        if change.kind == ChangeKind::Changed && self.fresh.contains(&change.path) {
            return;
        }
        let bytes = size(&change);
        if self.events.len() >= WATCH_EVENTS || self.bytes + bytes > WATCH_BYTES {
            self.overflow();
            return;
        }
        match change.kind {
            ChangeKind::Created | ChangeKind::Changed => {
                self.fresh.insert(change.path.clone());
            }
            ChangeKind::Deleted => {
                self.fresh.remove(&change.path);
            }
            // Paths beneath it mean other files from here on.
            ChangeKind::Renamed { .. } => self.fresh.clear(),
        }
        self.bytes += bytes;
        self.events.push_back(WatchEvent::Change(change));
    }

    fn overflow(&mut self) {
        if !self.overflowed && !self.ended && !self.closed {
            self.overflowed = true;
            self.events.push_back(WatchEvent::Overflow);
        }
    }

    fn pop(&mut self) -> Option<WatchEvent> {
        let event = self.events.pop_front()?;
        match &event {
            WatchEvent::Change(change) => {
                self.bytes -= size(change);
                self.fresh.remove(&change.path);
            }
            WatchEvent::Overflow => self.overflowed = false,
        }
        Some(event)
    }

    fn end(&mut self) {
        self.ended = true;
        self.fresh = HashSet::new();
    }
}

fn size(change: &Change) -> usize {
    change.paths().map(|path| path.as_str().len()).sum()
}

impl ChangeSender {
    /// Changes the queue, then wakes the reader.
    fn update(&self, update: impl FnOnce(&mut Queue)) {
        let mut queue = lock(&self.shared);
        update(&mut queue);
        let ready = !queue.events.is_empty() || queue.ended;
        let reader = if ready { queue.reader.take() } else { None };
        drop(queue);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Tells a change.
    ///
    /// A change of a file of which an unread event says that it is new or changed is
    /// dropped: that event tells it. If the queue is full, [`WatchEvent::Overflow`] is
    /// put in, and everything is dropped until it is read.
    pub fn tell(&self, change: Change) {
        self.update(|queue| queue.push(change));
    }

    /// Says that changes were lost, unless that waits to be read already.
    pub fn overflow(&self) {
        self.update(Queue::overflow);
    }

    /// Whether changes are dropped now, because [`WatchEvent::Overflow`] waits to be read.
    pub fn is_overflowed(&self) -> bool {
        lock(&self.shared).overflowed
    }

    /// Tells that the watched directory is gone, even if the queue is full, and ends
    /// the stream.
    pub fn gone(&self, path: VPath) {
        self.update(|queue| {
            if !queue.ended && !queue.closed {
                let change = Change::deleted(path);
                queue.bytes += size(&change);
                queue.events.push_back(WatchEvent::Change(change));
                queue.end();
            }
        });
    }

    /// Ends the stream with an error.
    pub fn fail(&self, error: Error) {
        self.update(|queue| {
            if !queue.ended && !queue.closed {
                queue.error = Some(error);
                queue.end();
            }
        });
    }

    /// Whether nothing that is told will be read: the stream was dropped, or has ended.
    pub fn is_closed(&self) -> bool {
        let queue = lock(&self.shared);
        queue.closed || queue.ended
    }

    /// Waits until the stream is dropped or has ended. One call can wait at a time.
    pub async fn closed(&self) {
        poll_fn(|cx| {
            let mut queue = lock(&self.shared);
            if queue.closed || queue.ended {
                return Poll::Ready(());
            }
            queue.writer = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Drop for ChangeSender {
    fn drop(&mut self) {
        self.update(Queue::end);
    }
}

impl Stream for ChangeStream {
    type Item = Result<WatchEvent>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut queue = lock(&self.shared);
        if let Some(event) = queue.pop() {
            return Poll::Ready(Some(Ok(event)));
        }
        if queue.ended {
            return Poll::Ready(queue.error.take().map(Err));
        }
        queue.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for ChangeStream {
    fn drop(&mut self) {
        let mut queue = lock(&self.shared);
        let writer = queue.writer.take();
        *queue = Queue {
            closed: true,
            ..Queue::default()
        };
        drop(queue);
        if let Some(writer) = writer {
            writer.wake();
        }
    }
}

impl fmt::Debug for ChangeSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeSender").finish_non_exhaustive()
    }
}

impl fmt::Debug for ChangeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeStream").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
