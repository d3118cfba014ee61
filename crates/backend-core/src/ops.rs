//! Options going into and results coming out of the [`Backend`](crate::Backend)
//! and [`Sandbox`](crate::Sandbox) operations.
//!
//! Every option struct has a `Default` that is the plain case, setters that take
//! and return it by value, and public fields for implementers to read. They are
//! plain data: nothing in them refers to the process that made them, so a call
//! can be carried to an agent inside a container and answered there.

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

/// What an operation does about symbolic links on its way.
///
/// A guard asks with `Refuse` first. Only if that fails with
/// [`ErrorKind::IsALink`](crate::ErrorKind::IsALink) does it resolve the path,
/// judge where it leads, and act on exactly that place, again with `Refuse`: so
/// what was judged is what is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Links {
    /// Follow links that stay inside the backend's name space.
    #[default]
    Follow,
    /// Fail with `IsALink` if any link would have to be followed.
    Refuse,
}
