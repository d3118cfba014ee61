//! The destinations of a command's output.

use std::sync::Arc;

use backend_core::Result;
use backend_core::ops::{Event, Output, OutputBuffer};
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::log::WatchedLog;

/// One of a command's two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The destination of one output stream.
#[derive(Debug)]
pub struct Sink {
    stream: OutputStream,
    to: Destination,
}

#[derive(Debug)]
enum Destination {
    /// Memory, which keeps the beginning and the end.
    Buffer(OutputBuffer),
    /// A reader, which may be slow.
    Events(mpsc::Sender<Result<Event>>),
    /// A shell's log.
    Log(Arc<WatchedLog>),
}

impl Sink {
    /// Stores a piece of output, or returns the event to send to the
    /// [reader](Self::reader).
    pub fn push(&mut self, piece: &[u8]) -> Option<Event> {
        match (&mut self.to, self.stream) {
            (Destination::Buffer(buffer), _) => buffer.push(piece),
            (Destination::Log(log), OutputStream::Stdout) => {
                log.change(|log| log.push_stdout(piece));
            }
            (Destination::Log(log), OutputStream::Stderr) => {
                log.change(|log| log.push_stderr(piece));
            }
            (Destination::Events(_), OutputStream::Stdout) => {
                return Some(Event::Stdout(Bytes::copy_from_slice(piece)));
            }
            (Destination::Events(_), OutputStream::Stderr) => {
                return Some(Event::Stderr(Bytes::copy_from_slice(piece)));
            }
        }
        None
    }

    /// Returns the reader of the output, if it is read as a stream.
    pub fn reader(&self) -> Option<&mpsc::Sender<Result<Event>>> {
        match &self.to {
            Destination::Events(reader) => Some(reader),
            Destination::Buffer(_) | Destination::Log(_) => None,
        }
    }

    /// Waits until a connection that is attached to a shell has read enough of its log.
    pub async fn room(&self) {
        if let Destination::Log(log) = &self.to {
            log.room().await;
        }
    }

    fn output(self) -> Output {
        match self.to {
            Destination::Buffer(buffer) => buffer.finish(),
            Destination::Events(_) | Destination::Log(_) => Output::default(),
        }
    }
}

/// The destinations of both output streams.
#[derive(Debug)]
pub struct Sinks {
    /// The destination of standard output.
    pub stdout: Sink,
    /// The destination of standard error.
    pub stderr: Sink,
}

impl Sinks {
    fn new(to: impl Fn() -> Destination) -> Self {
        let sink = |stream| Sink { stream, to: to() };
        Self {
            stdout: sink(OutputStream::Stdout),
            stderr: sink(OutputStream::Stderr),
        }
    }

    /// Keeps at most `limit` bytes of each stream in memory.
    pub(crate) fn buffers(limit: usize) -> Self {
        Self::new(|| Destination::Buffer(OutputBuffer::new(limit)))
    }

    pub(crate) fn events(reader: &mpsc::Sender<Result<Event>>) -> Self {
        Self::new(|| Destination::Events(reader.clone()))
    }

    pub(crate) fn log(log: &Arc<WatchedLog>) -> Self {
        Self::new(|| Destination::Log(Arc::clone(log)))
    }

    /// Returns the output that was kept in memory.
    pub(crate) fn outputs(self) -> (Output, Output) {
        (self.stdout.output(), self.stderr.output())
    }

    /// Returns the destination of a stream.
    pub fn of(&mut self, stream: OutputStream) -> &mut Sink {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }
}
