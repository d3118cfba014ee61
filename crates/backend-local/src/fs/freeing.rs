//! Frees the blocks of replaced files on another thread.
//!
//! The kernel frees a file's blocks when its last name and its last handle are gone, and
//! whoever takes the last one away waits. Where each freed block is discarded on the disk,
//! that takes ten times as long as the write that replaces the file. So a handle of the old
//! file is kept over the rename and closed elsewhere.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use crate::fs::read::size_of;

/// The most files that wait to be freed. More are freed by those who replace them.
const FILES: usize = 16;
/// The size up to which files wait: what comes next may need the space of larger ones.
const FILE_BYTES: u64 = 1024 * 1024;
/// The time to wait for them, on a disk that may not answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A message to the thread.
enum Message {
    Close(OwnedFd),
    /// Asks for an answer when everything before it is done.
    Answer(SyncSender<()>),
}

/// The thread, if it was started.
static THREAD: OnceLock<SyncSender<Message>> = OnceLock::new();

/// Closes the last handle of a file, soon.
pub(crate) fn close_later(file: OwnedFd) {
    let is_small = rustix::fs::fstat(&file).is_ok_and(|stat| size_of(&stat) <= FILE_BYTES);
    if !is_small {
        return;
    }
    let thread = THREAD.get_or_init(|| {
        let (sender, messages) = sync_channel(FILES);
        // Without a thread nothing is received, and files are closed at once.
        let name = thread::Builder::new().name("local-freeing".into());
        let _ = name.spawn(move || run(&messages));
        sender
    });
    let _ = thread.try_send(Message::Close(file));
}

fn run(messages: &Receiver<Message>) {
    for message in messages {
        match message {
            Message::Close(file) => drop(file),
            Message::Answer(answer) => {
                let _ = answer.send(());
            }
        }
    }
}

/// Does `work` again if the disk is full, when the files that waited are freed.
pub(crate) fn retry_when_freed<T>(
    mut work: impl FnMut() -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    match work() {
        Err(Errno::NOSPC | Errno::DQUOT) => {
            let (answer, answered) = sync_channel(1);
            if let Some(thread) = THREAD.get()
                && thread.try_send(Message::Answer(answer)).is_ok()
            {
                let _ = answered.recv_timeout(TIMEOUT);
            }
            work()
        }
        done => done,
    }
}
