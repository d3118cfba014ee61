//! Options and results of the [`Backend`](crate::Backend) and
//! [`Sandbox`](crate::Sandbox) operations.
//!
//! Every option struct has a `Default` for the common case, setters that take and
//! return it by value, and public fields for implementers to read. They are plain
//! data: nothing in them refers to the process that made them, so a call can be
//! sent to an agent inside a container and answered there.

mod exec;
mod level;
mod links;
mod list;
mod matches;
mod read;
mod search;
mod terminal;
mod view;
mod watch;
mod write;

pub use exec::{
    Command, CommandStatus, Event, ExecuteOutcome, Output, OutputBuffer, ShellId, ShellInfo,
    ShellOutput, ShellState, StopMode, Streams,
};
pub use level::LevelTooLow;
pub use links::Links;
pub use list::{Entry, FileKind, Listing, LsOptions, Skipped, StatOptions};
pub(crate) use matches::RawLine;
pub use matches::{FileMatches, GrepLine, GrepResult, LineKind};
pub use read::{ByteRange, FileBytes, ReadOptions, ResolveOptions, TextOptions};
pub use search::{Case, GlobOrder, GlobQuery, GlobResult, GrepQuery};
pub use terminal::{Signal, TerminalSize};
pub use view::{HardLinks, View};
pub use watch::{Change, ChangeKind, WatchEvent, WatchQuery};
pub use write::{
    Content, ContentHash, ContentHashError, ContentHasher, CopyOptions, CreateDirOptions,
    DeleteOptions, EditOptions, EditOutcome, RenameOptions, WriteMode, WriteOptions, WriteOutcome,
};
