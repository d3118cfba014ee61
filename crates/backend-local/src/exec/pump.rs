//! Moves a command's output from its pipes to a sink.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use backend_run::Sink;
use rustix::pipe::PipeFlags;
use tokio::net::unix::pipe;
use tokio::sync::watch;

/// The initial read size. Most commands print little, and allocating more would
/// cost as much as the rest of the work.
const FIRST_BYTES: usize = 4 * 1024;

/// The read size for commands that print more: the capacity of a pipe.
const PIECE_BYTES: usize = 64 * 1024;

/// The bytes read after the deadline for output: the most a pipe can hold. A
/// process that never stops printing must not delay the result.
const LAST_BYTES: usize = 1024 * 1024;

/// The host's ends of a command's pipes, or of its terminal.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: Option<pipe::Sender>,
    pub(crate) stdout: pipe::Receiver,
    /// `None` if standard output carries both.
    pub(crate) stderr: Option<pipe::Receiver>,
}

/// The command's ends, in the order in which a supervisor expects them.
#[derive(Debug)]
pub(crate) struct ChildEnds {
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: Option<OwnedFd>,
}

/// Creates the pipes of one command. Must run on the engine.
pub(crate) fn pipes(stdin: bool, merged: bool) -> io::Result<(Pipes, ChildEnds)> {
    let reading = || -> io::Result<_> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        Ok((pipe::Receiver::from_owned_fd(read)?, write))
    };
    let (stdout, end) = reading()?;
    let mut pipes = Pipes {
        stdin: None,
        stdout,
        stderr: None,
    };
    let mut ends = ChildEnds {
        stdin: None,
        stdout: end,
        stderr: None,
    };
    if !merged {
        let (stderr, end) = reading()?;
        (pipes.stderr, ends.stderr) = (Some(stderr), Some(end));
    }
    if stdin {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        (pipes.stdin, ends.stdin) = (Some(pipe::Sender::from_owned_fd(write)?), Some(read));
    }
    Ok((pipes, ends))
}

/// The command printed more than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverLimit;

/// Moves a stream until its end, until `finish` is set and the pipe is empty,
/// or until the bytes `left` for both streams are used up.
pub(crate) async fn pump(
    pipe: Option<pipe::Receiver>,
    sink: &mut Sink,
    left: &AtomicU64,
    mut finish: watch::Receiver<bool>,
) -> Result<(), OverLimit> {
    let Some(pipe) = pipe else {
        return Ok(());
    };
    let mut buffer = vec![0; FIRST_BYTES];
    let mut last = LAST_BYTES;
    loop {
        let finishing = *finish.borrow();
        if !finishing {
            tokio::select! {
                ready = pipe.readable() => if ready.is_err() { return Ok(()) },
                _ = finish.wait_for(|finish| *finish) => {}
            }
        }
        let read = if finishing {
            // Reads directly, because the event loop may not know about the
            // data yet.
            rustix::io::read(&pipe, &mut buffer[..]).map_err(io::Error::from)
        } else {
            pipe.try_read(&mut buffer)
        };
        let count = match read {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !finishing => continue,
            // The pipe is empty or broken.
            Err(_) => return Ok(()),
        };
        let allowed = take(left, count);
        let piece = buffer.get(..allowed).unwrap_or_default();
        if count == 0 || (allowed > 0 && !write(sink, piece).await) {
            return Ok(());
        }
        if allowed < count {
            return Err(OverLimit);
        }
        if !finishing {
            tokio::select! {
                () = sink.room() => {}
                _ = finish.wait_for(|finish| *finish) => {}
            }
        }
        if count == buffer.len() {
            buffer.resize(PIECE_BYTES, 0);
        }
        if finishing {
            last = last.saturating_sub(count);
            if last == 0 {
                return Ok(());
            }
        }
    }
}

/// Writes a piece of output, waiting for a slow reader. Returns whether the
/// reader is still there.
async fn write(sink: &mut Sink, piece: &[u8]) -> bool {
    match (sink.push(piece), sink.reader()) {
        (Some(event), Some(reader)) => reader.send(Ok(event)).await.is_ok(),
        _ => true,
    }
}

fn take(left: &AtomicU64, wanted: usize) -> usize {
    let before = left.load(Ordering::Relaxed);
    let taken = before.min(wanted as u64);
    // No race: both pumps of a command run on one task.
    left.store(before - taken, Ordering::Relaxed);
    taken.try_into().unwrap_or(wanted)
}
