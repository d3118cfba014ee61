//! Standard input and output without threads in between.
//!
//! Tokio's own do each read and write on another thread, which costs two hops a
//! message. Pipes and sockets, which is what a sandbox gives a program, can be
//! driven by the event loop itself. Whatever else they are, a file for example,
//! still works.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;

use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};

/// Standard input. Must be called in a runtime.
pub(crate) fn input() -> Box<dyn AsyncRead + Send + Unpin> {
    let direct = || -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
        match Stream::of(io::stdin())? {
            Stream::Pipe(pipe) => Ok(Box::new(Receiver::from_owned_fd(pipe)?)),
            Stream::Socket(socket) => Ok(Box::new(socket)),
        }
    };
    direct().unwrap_or_else(|_| Box::new(tokio::io::stdin()))
}

/// Standard output. Must be called in a runtime.
pub(crate) fn output() -> Box<dyn AsyncWrite + Send + Unpin> {
    let direct = || -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
        match Stream::of(io::stdout())? {
            Stream::Pipe(pipe) => Ok(Box::new(Sender::from_owned_fd(pipe)?)),
            Stream::Socket(socket) => Ok(Box::new(socket)),
        }
    };
    direct().unwrap_or_else(|_| Box::new(tokio::io::stdout()))
}

/// A stream that can say when it is ready. Closed when a program is started.
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
