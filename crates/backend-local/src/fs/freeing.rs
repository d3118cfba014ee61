//! Frees the blocks of replaced files on another thread.
//!
//! The kernel frees a file's blocks when its last name and its last handle are gone, and the
//! call that removes the last one waits. Where each freed block is discarded on the disk at
//! once, as ext4 without a journal does it, that takes longer than all the rest of a small
//! write. So a handle of the old file is kept over the rename and closed elsewhere.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use backend_core::sync::lock;
use rustix::io::Errno;

use crate::fs::read::size_of;

/// The most files that wait to be freed. More are freed by those who replace them.
const FILES: usize = 16;
/// The size up to which files wait: what comes next may need the space of larger ones.
const FILE_BYTES: u64 = 1024 * 1024;
/// The time to wait for files that are being closed, on a disk that may not answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The files that are to be closed.
#[derive(Debug)]
struct Queue {
    files: VecDeque<OwnedFd>,
    /// The number of threads that are closing some.
    closing: usize,
    /// There is a thread.
    is_served: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    files: VecDeque::new(),
    closing: 0,
    is_served: false,
});
/// Told when a file was added, and when some were closed.
static CHANGED: Condvar = Condvar::new();

/// Closes a handle of a replaced file on another thread, if the file is small and there is
/// room; else at once.
pub(crate) fn close_later(file: OwnedFd) {
    static START: Once = Once::new();
    let is_small = rustix::fs::fstat(&file).is_ok_and(|stat| size_of(&stat) <= FILE_BYTES);
    if !is_small {
        return;
    }
    START.call_once(|| {
        let thread = thread::Builder::new().name("local-freeing".into());
        lock(&QUEUE).is_served = thread.spawn(run).is_ok();
    });
    let mut queue = lock(&QUEUE);
    if queue.is_served && queue.files.len() < FILES {
        queue.files.push_back(file);
        CHANGED.notify_all();
    }
}

/// Closes files as they come.
fn run() {
    loop {
        let idle = |queue: &mut Queue| queue.files.is_empty();
        let waited = CHANGED.wait_while(lock(&QUEUE), idle);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
        let file = queue.files.pop_front();
        close(queue, file);
    }
}

/// Closes files that were taken from the queue.
fn close<T>(mut queue: MutexGuard<'_, Queue>, files: T) {
    queue.closing += 1;
    drop(queue);
    drop(files);
    lock(&QUEUE).closing -= 1;
    CHANGED.notify_all();
}

/// Does `work` again if the disk is full, when the files that waited are freed.
pub(crate) fn retry_when_freed<T>(
    mut work: impl FnMut() -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    match work() {
        Err(Errno::NOSPC | Errno::DQUOT) => {
            let mut queue = lock(&QUEUE);
            let files = std::mem::take(&mut queue.files);
            close(queue, files);
            let closing = |queue: &mut Queue| queue.closing > 0;
            drop(CHANGED.wait_timeout_while(lock(&QUEUE), TIMEOUT, closing));
            work()
        }
        done => done,
    }
}
