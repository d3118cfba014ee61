//! Blocking code as a backend: what it implements, and the adapter around it.

mod adapter;
mod commands;
mod content;
mod pool;
mod sync;

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use backend_core::ops::{
    Command, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry, Event,
    ExecuteOutcome, FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions,
    ReadOptions, RenameOptions, ResolveOptions, ShellId, ShellInfo, ShellOutput, StatOptions,
    StopMode, TextOptions, WriteOptions, WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{BackendInfo, CommandNames, Edit, Reached, Result, VPath};
use bytes::Bytes;

use crate::Cancel;

pub use adapter::BlockingAdapter;
pub use content::BlockingContent;
pub use pool::PoolSize;

/// A place where an agent's files live, for implementations that block.
///
/// The methods are those of [`Backend`](backend_core::Backend), and so is what they
/// promise. [`BlockingAdapter`] makes a backend of it. The operations that are not
/// here it derives from these, as [`backend_core::derived`] does, unless
/// [`native`](Self::native) names an implementation of them.
///
/// `info`, `working_dir`, `as_sandbox` and `native` are called on async threads and
/// must not block. The others run on a thread of the adapter, several at a time.
pub trait BlockingBackend: Debug + Send + Sync + 'static {
    /// As [`Backend::info`](backend_core::Backend::info). No I/O.
    fn info(&self) -> BackendInfo;

    /// As [`Backend::working_dir`](backend_core::Backend::working_dir). No I/O.
    fn working_dir(&self) -> VPath {
        VPath::root()
    }

    /// As [`Backend::as_sandbox`](backend_core::Backend::as_sandbox). No I/O.
    fn as_sandbox(&self) -> Option<&dyn BlockingSandbox> {
        None
    }

    /// As [`Backend::stat`](backend_core::Backend::stat).
    ///
    /// # Errors
    ///
    /// As there.
    fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry>;

    /// As [`Backend::ls`](backend_core::Backend::ls).
    ///
    /// # Errors
    ///
    /// As there.
    fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing>;

    /// As [`Backend::read`](backend_core::Backend::read).
    ///
    /// # Errors
    ///
    /// As there.
    fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes>;

    /// As [`Backend::write`](backend_core::Backend::write).
    ///
    /// # Errors
    ///
    /// As there.
    fn write(
        &self,
        path: &VPath,
        content: BlockingContent,
        options: WriteOptions,
    ) -> Result<WriteOutcome>;

    /// As [`Backend::create_dir`](backend_core::Backend::create_dir).
    ///
    /// # Errors
    ///
    /// As there.
    fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()>;

    /// As [`Backend::delete`](backend_core::Backend::delete).
    ///
    /// # Errors
    ///
    /// As there.
    fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()>;

    /// What the implementation does itself of the rest; `None` for what is to be
    /// derived. No I/O.
    fn native(&self) -> Option<&dyn BlockingNative> {
        None
    }
}

/// What a [`BlockingBackend`] may do better than by listing, reading and writing.
/// All of it or nothing: there are no defaults that a wrapper could forget.
pub trait BlockingNative: Debug + Send + Sync {
    /// As [`Backend::resolve`](backend_core::Backend::resolve).
    ///
    /// # Errors
    ///
    /// As there.
    fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath>;

    /// As [`Backend::read_text`](backend_core::Backend::read_text).
    ///
    /// # Errors
    ///
    /// As there.
    fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow>;

    /// As [`Backend::edit`](backend_core::Backend::edit).
    ///
    /// # Errors
    ///
    /// As there.
    fn edit(&self, path: &VPath, edits: &[Edit], options: EditOptions) -> Result<EditOutcome>;

    /// As [`Backend::rename`](backend_core::Backend::rename).
    ///
    /// # Errors
    ///
    /// As there.
    fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()>;

    /// As [`Backend::copy`](backend_core::Backend::copy).
    ///
    /// # Errors
    ///
    /// As there.
    fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()>;

    /// As [`Backend::glob`](backend_core::Backend::glob).
    ///
    /// # Errors
    ///
    /// As there.
    fn glob(&self, query: GlobQuery) -> Result<GlobResult>;

    /// As [`Backend::grep`](backend_core::Backend::grep).
    ///
    /// # Errors
    ///
    /// As there.
    fn grep(&self, query: GrepQuery) -> Result<GrepResult>;
}

/// What a running command tells, as an iterator that waits.
pub type Events = Box<dyn Iterator<Item = Result<Event>> + Send>;

/// A blocking backend that runs commands where its files are.
///
/// The methods are those of [`Sandbox`](backend_core::Sandbox), and so is what they
/// promise. Those that may wait for long are given a [`Cancel`]: when the call is
/// dropped it says so, and then they have to return soon, with the command ended.
/// What they return no longer matters.
pub trait BlockingSandbox: BlockingBackend {
    /// As [`Sandbox::id`](backend_core::Sandbox::id). No I/O.
    fn id(&self) -> String;

    /// As [`Sandbox::start`](backend_core::Sandbox::start).
    ///
    /// # Errors
    ///
    /// As there.
    fn start(&self) -> Result<()>;

    /// As [`Sandbox::stop`](backend_core::Sandbox::stop).
    ///
    /// # Errors
    ///
    /// As there.
    fn stop(&self, mode: StopMode) -> Result<()>;

    /// As [`Sandbox::is_alive`](backend_core::Sandbox::is_alive).
    ///
    /// # Errors
    ///
    /// As there.
    fn is_alive(&self) -> Result<bool>;

    /// As [`Sandbox::command_names`](backend_core::Sandbox::command_names). No I/O.
    fn command_names(&self, directory: &VPath) -> CommandNames {
        let _ = directory;
        CommandNames::default()
    }

    /// As [`Sandbox::trace`](backend_core::Sandbox::trace). Unless it is implemented,
    /// nothing is known about where links lead.
    ///
    /// # Errors
    ///
    /// As there.
    fn trace(&self, directory: &VPath, paths: &[String]) -> Result<Vec<Reached>> {
        let _ = directory;
        Ok(vec![Reached::Unknown; paths.len()])
    }

    /// As [`Sandbox::last_activity`](backend_core::Sandbox::last_activity). No I/O.
    fn last_activity(&self) -> SystemTime;

    /// As [`Sandbox::execute`](backend_core::Sandbox::execute).
    ///
    /// # Errors
    ///
    /// As there.
    fn execute(&self, command: Command, cancel: &Cancel) -> Result<ExecuteOutcome>;

    /// As [`Sandbox::stream`](backend_core::Sandbox::stream). The iterator is
    /// dropped when nobody wants more, and ends the command then.
    ///
    /// # Errors
    ///
    /// As there.
    fn stream(&self, command: Command, cancel: &Cancel) -> Result<Events>;

    /// As [`Sandbox::shell_start`](backend_core::Sandbox::shell_start).
    ///
    /// # Errors
    ///
    /// As there.
    fn shell_start(&self, command: Command) -> Result<ShellInfo>;

    /// As [`Sandbox::shell_read`](backend_core::Sandbox::shell_read). Takes nothing
    /// if it is cancelled.
    ///
    /// # Errors
    ///
    /// As there.
    fn shell_read(&self, id: &ShellId, wait: Duration, cancel: &Cancel) -> Result<ShellOutput>;

    /// As [`Sandbox::shell_write`](backend_core::Sandbox::shell_write).
    ///
    /// # Errors
    ///
    /// As there.
    fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()>;

    /// As [`Sandbox::shell_kill`](backend_core::Sandbox::shell_kill).
    ///
    /// # Errors
    ///
    /// As there.
    fn shell_kill(&self, id: &ShellId) -> Result<bool>;

    /// As [`Sandbox::shell_list`](backend_core::Sandbox::shell_list).
    ///
    /// # Errors
    ///
    /// As there.
    fn shell_list(&self) -> Result<Vec<ShellInfo>>;
}
