//! [`Machine`]: what a container, a pod or a remote computer must be able to do
//! for this crate to make a whole backend of it.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Error, Result, VPath};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::io::AsyncWrite;

/// Bytes as they come.
pub type ByteStream = BoxStream<'static, Result<Bytes>>;

/// A place that can be started, in which one program with attached standard
/// streams can be run, and into and out of which archives can be carried.
///
/// Every method is called on [the engine's runtime](crate::engine), whatever
/// runtime the caller of the backend has. A call that is dropped is dropped there.
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
/// async fn put(&self, directory: &VPath, archive: ByteStream) -> Result<()>;
/// async fn get(&self, path: &VPath) -> Result<ByteStream>;
/// async fn diagnose(&self) -> Option<Error>;
/// ```
#[async_trait]
pub trait Machine: fmt::Debug + Send + Sync + 'static {
    /// The backend's name in messages: `docker`. No I/O.
    fn name(&self) -> Cow<'static, str>;

    /// Names this machine; stable for its life. No I/O.
    fn id(&self) -> String;

    /// Where relative paths and commands start. No I/O.
    fn working_dir(&self) -> VPath;

    /// Makes the machine ready. One that runs is a success.
    ///
    /// # Errors
    ///
    /// `Unavailable` with the next step if it cannot be started.
    async fn start(&self) -> Result<()>;

    /// Ends the machine; with [`StopMode::Purge`] nothing of it stays. Stopping
    /// twice is a success.
    ///
    /// # Errors
    ///
    /// `Unavailable` if whoever runs the machine cannot be reached.
    async fn stop(&self, mode: StopMode) -> Result<()>;

    /// Whether the machine runs. Never starts it.
    ///
    /// # Errors
    ///
    /// `Unavailable` if that cannot be known.
    async fn is_alive(&self) -> Result<bool>;

    /// Places the agent in the machine, which is started, unless it is there
    /// already, and returns the program and its arguments.
    ///
    /// # Errors
    ///
    /// `Unavailable` if it cannot be placed.
    async fn agent(&self) -> Result<Vec<String>>;

    /// Starts a program in the machine, which is started.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the machine is gone, is paused, or cannot be reached.
    async fn spawn(&self, program: Spawn) -> Result<Process>;

    /// Unpacks a tar archive into a directory that exists. Owners, bits and
    /// times are those of the archive.
    ///
    /// # Errors
    ///
    /// `NotFound`, `Unavailable`, and what the file system says.
    async fn put(&self, directory: &VPath, archive: ByteStream) -> Result<()>;

    /// Packs what stands at a path as a tar archive; a link is packed as a link.
    ///
    /// # Errors
    ///
    /// `NotFound`, `Unavailable`.
    async fn get(&self, path: &VPath) -> Result<ByteStream>;

    /// Why the machine no longer answers, if that can be told: it was removed,
    /// it is paused, it ran out of memory. Asked when a channel was lost.
    async fn diagnose(&self) -> Option<Error>;
}

/// A program to start in a [`Machine`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spawn {
    /// The program and its arguments. Never read by a shell.
    pub argv: Vec<String>,
    /// Variables on top of those the machine has.
    pub environment: Vec<(String, String)>,
    /// Where it starts, if not in the working directory.
    pub directory: Option<VPath>,
    /// Whether its standard input is open; else it is at its end.
    pub stdin: bool,
}

impl Spawn {
    /// A program without input in the working directory.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Opens its standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: bool) -> Self {
        self.stdin = stdin;
        self
    }

    /// Starts it somewhere else.
    #[must_use]
    pub fn directory(mut self, directory: VPath) -> Self {
        self.directory = Some(directory);
        self
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
/// Dropping it closes its streams; what becomes of the program then is up to it.
#[non_exhaustive]
pub struct Process {
    /// Its standard input, if it was asked for. Shutting it down is the end of
    /// the input, and what the program prints still arrives.
    pub stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// What it prints, until it has closed both streams.
    pub output: BoxStream<'static, Result<Piece>>,
    /// Its exit code, to be asked for when `output` has ended; 128 and the signal
    /// if one ended it.
    pub exit: BoxFuture<'static, Result<i32>>,
}

impl Process {
    /// A running program.
    pub fn new(
        stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
        output: BoxStream<'static, Result<Piece>>,
        exit: BoxFuture<'static, Result<i32>>,
    ) -> Self {
        Self {
            stdin,
            output,
            exit,
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("stdin", &self.stdin.is_some())
            .finish_non_exhaustive()
    }
}

/// Something that a program printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// On standard output.
    Stdout(Bytes),
    /// On standard error.
    Stderr(Bytes),
}
