//! Blocking code as a backend: the traits to implement, and the adapter.

mod adapter;
mod commands;
mod pool;
mod sync;

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use backend_core::ops::{
    Command, Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome,
    Entry, Event, ExecuteOutcome, FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing,
    LsOptions, ReadOptions, RenameOptions, ResolveOptions, ShellId, ShellInfo, ShellOutput,
    StatOptions, StopMode, TextOptions, WatchEvent, WatchQuery, WriteOptions, WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{BackendInfo, CommandPaths, Edit, Error, Result, TracedPath, VPath};
use bytes::Bytes;

pub use adapter::BlockingAdapter;
pub use pool::PoolSize;

use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::stream::SyncStream;

/// Storage for an agent's files, for implementations that block.
///
/// The methods, their contract and their errors are those of
/// [`Backend`](backend_core::Backend).
/// [`BlockingAdapter`] turns an implementation into a backend. It derives the
/// operations that are not here from these, as [`backend_core::derived`] does, unless
/// [`native`](Self::native) returns an implementation of them.
///
/// `info`, `working_dir`, `as_sandbox` and `native` are called on async threads and
/// must not block. The others run on threads of the adapter, several at a time.
pub trait BlockingBackend: Debug + Send + Sync + 'static {
    /// See [`Backend::info`](backend_core::Backend::info). No I/O.
    fn info(&self) -> BackendInfo;

    /// See [`Backend::working_dir`](backend_core::Backend::working_dir). No I/O.
    fn working_dir(&self) -> VPath {
        VPath::root()
    }

    /// See [`Backend::as_sandbox`](backend_core::Backend::as_sandbox). No I/O.
    fn as_sandbox(&self) -> Option<&dyn BlockingSandbox> {
        None
    }

    /// Blocking version of [`Backend::stat`](backend_core::Backend::stat).
    fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry>;

    /// Blocking version of [`Backend::ls`](backend_core::Backend::ls).
    fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing>;

    /// Blocking version of [`Backend::read`](backend_core::Backend::read).
    fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes>;

    /// Blocking version of [`Backend::write`](backend_core::Backend::write).
    fn write(
        &self,
        path: &VPath,
        content: BlockingContent,
        options: WriteOptions,
    ) -> Result<WriteOutcome>;

    /// Blocking version of [`Backend::create_dir`](backend_core::Backend::create_dir).
    fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()>;

    /// Blocking version of [`Backend::delete`](backend_core::Backend::delete).
    fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()>;

    /// Blocking version of [`Backend::watch`](backend_core::Backend::watch). The
    /// iterator waits for changes. It must end soon when `cancel` is cancelled, and it
    /// takes a thread of the adapter for commands until then. The default fails with
    /// `Unsupported`.
    fn watch(&self, query: WatchQuery, cancel: &Cancel) -> Result<Changes> {
        let _ = (query, cancel);
        Err(Error::no_watch())
    }

    /// Returns native implementations of the remaining operations, or `None` if they
    /// are to be derived. No I/O.
    fn native(&self) -> Option<&dyn BlockingNative> {
        None
    }
}

/// Operations that a [`BlockingBackend`] may do better than by listing, reading and
/// writing. There are no default methods that a wrapper could forget: implement all of
/// them or none.
pub trait BlockingNative: Debug + Send + Sync {
    /// Blocking version of [`Backend::resolve`](backend_core::Backend::resolve).
    fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath>;

    /// Blocking version of [`Backend::read_text`](backend_core::Backend::read_text).
    fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow>;

    /// Blocking version of [`Backend::edit`](backend_core::Backend::edit).
    fn edit(&self, path: &VPath, edits: &[Edit], options: EditOptions) -> Result<EditOutcome>;

    /// Blocking version of [`Backend::rename`](backend_core::Backend::rename).
    fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()>;

    /// Blocking version of [`Backend::copy`](backend_core::Backend::copy).
    fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()>;

    /// Blocking version of [`Backend::glob`](backend_core::Backend::glob).
    fn glob(&self, query: GlobQuery) -> Result<GlobResult>;

    /// Blocking version of [`Backend::grep`](backend_core::Backend::grep).
    fn grep(&self, query: GrepQuery) -> Result<GrepResult>;
}

/// The changes of a tree, as a blocking iterator.
pub type Changes = Box<dyn Iterator<Item = Result<WatchEvent>> + Send>;

/// The events of a running command, as a blocking iterator.
pub type Events = Box<dyn Iterator<Item = Result<Event>> + Send>;

/// A blocking backend that runs commands where its files are.
///
/// The methods, their contract and their errors are those of
/// [`Sandbox`](backend_core::Sandbox).
/// Those that may take long get a [`Cancel`], which is cancelled when the call is
/// dropped. They must then end the command and return soon. Their result is ignored.
pub trait BlockingSandbox: BlockingBackend {
    /// See [`Sandbox::id`](backend_core::Sandbox::id). No I/O.
    fn id(&self) -> String;

    /// Blocking version of [`Sandbox::start`](backend_core::Sandbox::start).
    fn start(&self) -> Result<()>;

    /// Blocking version of [`Sandbox::stop`](backend_core::Sandbox::stop).
    fn stop(&self, mode: StopMode) -> Result<()>;

    /// Blocking version of [`Sandbox::is_alive`](backend_core::Sandbox::is_alive).
    fn is_alive(&self) -> Result<bool>;

    /// See [`Sandbox::command_names`](backend_core::Sandbox::command_names). No I/O.
    fn command_names(&self, directory: &VPath) -> CommandPaths {
        let _ = directory;
        CommandPaths::default()
    }

    /// Blocking version of [`Sandbox::trace`](backend_core::Sandbox::trace). The
    /// default knows nothing about the targets of links.
    fn trace(&self, directory: &VPath, paths: &[String]) -> Result<Vec<TracedPath>> {
        let _ = directory;
        Ok(vec![TracedPath::Unknown; paths.len()])
    }

    /// See [`Sandbox::last_activity`](backend_core::Sandbox::last_activity). No I/O.
    fn last_activity(&self) -> SystemTime;

    /// Blocking version of [`Sandbox::execute`](backend_core::Sandbox::execute).
    fn execute(&self, command: Command, cancel: &Cancel) -> Result<ExecuteOutcome>;

    /// Blocking version of [`Sandbox::stream`](backend_core::Sandbox::stream). The
    /// iterator is dropped when no more events are wanted, which must end the command.
    fn stream(&self, command: Command, cancel: &Cancel) -> Result<Events>;

    /// Blocking version of [`Sandbox::shell_start`](backend_core::Sandbox::shell_start).
    fn shell_start(&self, command: Command) -> Result<ShellInfo>;

    /// Blocking version of [`Sandbox::shell_read`](backend_core::Sandbox::shell_read).
    /// Consumes no output if it is cancelled.
    fn shell_read(&self, id: &ShellId, wait: Duration, cancel: &Cancel) -> Result<ShellOutput>;

    /// Blocking version of [`Sandbox::shell_write`](backend_core::Sandbox::shell_write).
    fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()>;

    /// Blocking version of [`Sandbox::shell_kill`](backend_core::Sandbox::shell_kill).
    fn shell_kill(&self, id: &ShellId) -> Result<bool>;

    /// Blocking version of [`Sandbox::shell_list`](backend_core::Sandbox::shell_list).
    fn shell_list(&self) -> Result<Vec<ShellInfo>>;
}

/// The content of a file to write: bytes in memory, or a blocking iterator.
#[derive(Debug)]
pub enum BlockingContent {
    /// The whole content.
    Bytes(Bytes),
    /// Pieces in order. An error among them fails the write and leaves the file
    /// unchanged. When the call is dropped, an error follows too.
    Pieces(SyncStream<Bytes>),
}

impl BlockingContent {
    /// Reads the whole content into memory, with the errors of [`Content::collect`].
    pub fn collect(self, max_bytes: u64) -> Result<Bytes> {
        let engine = match &self {
            Self::Bytes(_) => Engine::shared(),
            Self::Pieces(pieces) => pieces.engine().clone(),
        };
        engine.run(Content::from(self).collect(max_bytes)).flatten()
    }
}

impl From<BlockingContent> for Content {
    fn from(content: BlockingContent) -> Self {
        match content {
            BlockingContent::Bytes(bytes) => Self::Bytes(bytes),
            BlockingContent::Pieces(pieces) => Self::Stream(pieces.into_stream()),
        }
    }
}
