//! Standard input and output without threads in between.
//!
//! Tokio's own types do each read and write on another thread, which costs two
//! hops per message. Pipes and sockets, which a sandbox gives a program, can be
//! driven by the event loop itself. Other kinds, such as a file, still work.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;

use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};

/// A stream to read from.
pub(crate) type Input = Box<dyn AsyncRead + Send + Unpin>;
/// A stream to write to.
pub(crate) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Returns standard input. Must be called in a runtime.
pub(crate) fn input() -> Input {
    let direct = || -> io::Result<Input> {
        match Stream::of(io::stdin())? {
            Stream::Pipe(pipe) => Ok(Box::new(Receiver::from_owned_fd(pipe)?)),
            Stream::Socket(socket) => Ok(Box::new(socket)),
        }
    };
    direct().unwrap_or_else(|_| Box::new(tokio::io::stdin()))
}

/// Returns standard output. Must be called in a runtime.
pub(crate) fn output() -> Output {
    let direct = || -> io::Result<Output> {
        match Stream::of(io::stdout())? {
            Stream::Pipe(pipe) => Ok(Box::new(Sender::from_owned_fd(pipe)?)),
            Stream::Socket(socket) => Ok(Box::new(socket)),
        }
    };
    direct().unwrap_or_else(|_| Box::new(tokio::io::stdout()))
}

/// A stream that supports readiness. It is close-on-exec.
enum Stream {
    Pipe(OwnedFd),
    Socket(UnixStream),
}

impl Stream {
    fn of(stream: impl AsFd) -> io::Result<Self> {
        let stream = stream.as_fd().try_clone_to_owned()?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&stream)?.st_mode);
        match kind {
            FileType::Fifo => Ok(Self::Pipe(stream)),
            FileType::Socket => {
                let stream = StdStream::from(stream);
                stream.set_nonblocking(true)?;
                Ok(Self::Socket(UnixStream::from_std(stream)?))
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}
