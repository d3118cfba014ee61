//! Options and results of the [`Backend`](crate::Backend) and
//! [`Sandbox`](crate::Sandbox) operations.
//!
//! Every option struct has a `Default` for the common case, setters that take and
//! return it by value, and public fields for implementers to read. They are plain
//! data: nothing in them refers to the process that made them, so a call can be
//! sent to an agent inside a container and answered there.

mod exec;
mod list;
mod matches;
mod read;
mod search;
mod write;

pub use exec::{
    Command, CommandStatus, Event, ExecuteOutcome, Output, OutputBuffer, ShellId, ShellInfo,
    ShellOutput, ShellState, StopMode, Streams,
};
pub use list::{Entry, FileKind, Listing, LsOptions, Skipped, StatOptions};
pub(crate) use matches::RawLine;
pub use matches::{FileMatches, GrepLine, GrepResult, LineKind, Lines};
pub use read::{ByteRange, FileBytes, ReadOptions, ResolveOptions, TextOptions};
pub use search::{Case, GlobOrder, GlobQuery, GlobResult, GrepQuery};
pub use write::{
    Content, ContentHash, ContentHashError, ContentHasher, CopyOptions, CreateDirOptions,
    DeleteOptions, EditOptions, EditOutcome, RenameOptions, WriteMode, WriteOptions, WriteOutcome,
};

/// The treatment of symbolic links in the path of an operation.
///
/// A guard first calls with `Refuse`. Only if that fails with
/// [`ErrorKind::IsALink`](crate::ErrorKind::IsALink) does it resolve the path,
/// check the target, and operate on exactly that target, again with `Refuse`. So
/// the path that was checked is the path that is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Links {
    /// Follow links that stay inside the backend's namespace.
    #[default]
    Follow,
    /// Fail with `IsALink` if any link would have to be followed.
    Refuse,
}
