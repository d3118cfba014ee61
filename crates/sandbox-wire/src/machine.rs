//! [`Machine`]: the operations that a container, a pod or a remote computer
//! must provide to become a complete backend.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Error, Result, VPath};
use bytes::Bytes;
use futures::future::{self, BoxFuture};
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::io::ReaderStream;

#[cfg(test)]
pub(crate) mod fake;

/// The size of the pieces in which a stream is read.
const STREAM_BYTES: usize = 64 * 1024;

/// An environment that can be started and that can run a program with attached
/// standard streams.
///
/// Every method is called on [the engine's runtime](crate::engine), not on the
/// runtime of the backend's caller. A dropped call is dropped there.
///
/// # Signatures
///
/// The async methods, as they are written under `#[async_trait]`:
///
/// ```text
/// async fn start(&self) -> Result<()>;
/// async fn stop(&self, mode: StopMode) -> Result<()>;
/// async fn is_alive(&self) -> Result<bool>;
/// async fn agent(&self) -> Result<Vec<String>>;
/// async fn spawn(&self, program: Spawn) -> Result<Process>;
/// async fn diagnose(&self) -> Option<Error>;
/// ```
#[async_trait]
pub trait Machine: fmt::Debug + Send + Sync + 'static {
    /// Returns the backend's name in messages, such as `docker`. No I/O.
    fn name(&self) -> Cow<'static, str>;

    /// Returns an identifier that is stable for the machine's lifetime. No I/O.
    fn id(&self) -> String;

    /// Returns the directory that relative paths and commands start from. No
    /// I/O.
    fn working_dir(&self) -> VPath;

    /// Starts the machine. Succeeds if it already runs.
    ///
    /// # Errors
    ///
    /// `Unavailable` with the next step if it cannot be started.
    async fn start(&self) -> Result<()>;

    /// Stops the machine. With [`StopMode::Purge`] nothing of it stays.
    /// Stopping twice succeeds.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the service that runs the machine cannot be reached.
    async fn stop(&self, mode: StopMode) -> Result<()>;

    /// Whether the machine runs. Never starts it.
    ///
    /// # Errors
    ///
    /// `Unavailable` if that cannot be determined.
    async fn is_alive(&self) -> Result<bool>;

    /// Places the agent in the started machine, unless it is already there, and
    /// returns the program and its arguments. By default there is none.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the machine takes no agent; `Unavailable` if it cannot be
    /// placed.
    async fn agent(&self) -> Result<Vec<String>> {
        Err(Error::unsupported(
            "this machine takes no agent; use it in the portable mode",
        ))
    }

    /// Starts a program in the started machine.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the machine is gone, is paused, or cannot be reached.
    async fn spawn(&self, program: Spawn) -> Result<Process>;

    /// Returns the number of bytes of a program's output after which another one
    /// should be started in its place, if streams wear out: where something
    /// keeps what they carried. By default they do not. No I/O.
    fn stream_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether each piece of input takes long to reach a program, so that it
    /// pays to ask for more at once than is certainly needed. By default it does
    /// not. No I/O.
    fn is_distant(&self) -> bool {
        false
    }

    /// Returns the reason why the machine no longer answers, if known: it was
    /// removed, it is paused, it ran out of memory. Called when a channel was
    /// lost. By default nothing is known.
    async fn diagnose(&self) -> Option<Error> {
        None
    }
}

/// A program to start in a [`Machine`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spawn {
    /// The program and its arguments. No shell interprets them.
    pub argv: Vec<String>,
    /// Variables in addition to the machine's own.
    pub environment: Vec<(String, String)>,
    /// Its directory. `None` is the working directory.
    pub directory: Option<VPath>,
    /// Whether its standard input is open. Otherwise it is empty.
    pub stdin: bool,
}

impl Spawn {
    /// Creates a program without input in the working directory.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    backend_core::setters! {
        /// Sets whether its standard input is open.
        stdin: bool,
        /// Sets its directory.
        directory: VPath,
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }
}

/// A program that runs in a [`Machine`].
///
/// Dropping it closes its streams. The program may keep running.
#[non_exhaustive]
pub struct Process {
    /// Its standard input, if it was asked for. Shutting it down ends the
    /// input; the program's output still arrives.
    pub stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// Its output, until it has closed both streams.
    pub output: BoxStream<'static, Result<OutputChunk>>,
    /// Its exit code, to be awaited after `output` has ended. 128 plus the
    /// signal if a signal ended it.
    pub exit: BoxFuture<'static, Result<i32>>,
}

impl Process {
    /// Creates a running program.
    pub fn new(
        stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
        output: BoxStream<'static, Result<OutputChunk>>,
        exit: BoxFuture<'static, Result<i32>>,
    ) -> Self {
        Self {
            stdin,
            output,
            exit,
        }
    }

    /// Creates a running program from a stream that carries its standard output
    /// and input. It has no standard error, and its exit code is 0.
    pub fn over(
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
    ) -> Self {
        let output = ReaderStream::with_capacity(reader, STREAM_BYTES).map(|piece| match piece {
            Ok(bytes) => Ok(OutputChunk::Stdout(bytes)),
            Err(error) => Err(Error::unavailable("the stream broke").with_source(error)),
        });
        let exit = future::ready(Ok(0));
        Self::new(Some(Box::pin(writer)), output.boxed(), exit.boxed())
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("stdin", &self.stdin.is_some())
            .finish_non_exhaustive()
    }
}

/// A piece of a program's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputChunk {
    /// From standard output.
    Stdout(Bytes),
    /// From standard error.
    Stderr(Bytes),
}
