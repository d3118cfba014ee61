//! The messages in the streams of a channel: one request and its replies, each
//! a length and a postcard of these types.
//!
//! The encoding contains no names, so both sides must have been built from the
//! same types. [`PROTOCOL`] is their version: raise it with every change.

mod frame;

use std::time::Duration;

use backend_core::ops::{
    Command, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry, Event,
    ExecuteOutcome, FileBytes, FileMatches, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing,
    LsOptions, ReadOptions, RenameOptions, ResolveOptions, ShellId, ShellInfo, ShellOutput, Signal,
    StatOptions, TerminalSize, TextOptions, WatchEvent, WatchQuery, WriteOptions, WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{Edit, Error, VPath};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub(crate) use frame::{FrameError, encode, ended, receive, send};

/// The version of all types in this module.
pub(crate) const PROTOCOL: u16 = 6;

/// The shortest interval of a timer.
pub(crate) const SHORTEST_TICK: Duration = Duration::from_millis(1);
/// The longest interval of a timer.
pub(crate) const LONGEST_TICK: Duration = Duration::from_secs(24 * 60 * 60);

/// The size of the longest request: two whole files of the size that `edit`
/// accepts.
pub(crate) const REQUEST_BYTES: usize = 160 * 1024 * 1024;
/// Content up to this size is sent with the request, or with its reply.
pub(crate) const INLINE_BYTES: usize = 64 * 1024;
/// The size of the largest read that is answered in one message.
pub(crate) const WHOLE_BYTES: u64 = 1024 * 1024;
/// Bytes in one piece of longer content.
pub(crate) const PIECE_BYTES: usize = 256 * 1024;
/// The size of the longest message with a piece.
pub(crate) const PIECE_MESSAGE: usize = PIECE_BYTES + 16;
/// Entries or files in one message.
pub(crate) const BATCH: usize = 256;
/// Bytes of lines after which a message with matches is sent.
pub(crate) const BATCH_BYTES: usize = 128 * 1024;

/// The first message of every stream.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// This stream carries heartbeats.
    Control,
    Resolve(VPath, ResolveOptions),
    Stat(VPath, StatOptions),
    Ls(VPath, LsOptions),
    Read(VPath, ReadOptions),
    ReadText(VPath, TextOptions),
    /// The content is included.
    Write(VPath, WriteOptions, Bytes),
    /// The content follows in pieces.
    WriteStream(VPath, WriteOptions),
    Edit(VPath, Vec<Edit>, EditOptions),
    CreateDir(VPath, CreateDirOptions),
    Delete(VPath, DeleteOptions),
    Rename(VPath, VPath, RenameOptions),
    Copy(VPath, VPath, CopyOptions),
    Glob(GlobQuery),
    Grep(GrepQuery),
    Execute(Command),
    Stream(Command),
    ShellStart(Command),
    ShellRead(ShellId, Duration),
    ShellWrite(ShellId, Option<Bytes>),
    ShellKill(ShellId),
    ShellList,
    /// Content follows in pieces, in both directions.
    Connect(u16),
    Watch(WatchQuery),
    /// As for `Connect`.
    ShellAttach(ShellId),
    ShellResize(ShellId, TerminalSize),
    ShellSignal(ShellId, Signal),
}

/// A message that follows a request in the same direction.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum More {
    /// A heartbeat, which is echoed.
    Beat,
    /// The next piece of content.
    Piece(Bytes),
    /// The content is complete.
    End,
}

/// A reply to a request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The operation failed. Nothing follows.
    Failed(Error),
    /// An echoed heartbeat; `true` if commands run.
    Beat(bool),
    /// The operation is done, or events follow.
    Done,
    Path(VPath),
    Entry(Entry),
    /// Entries of a listing or a glob; more follow.
    Entries(Vec<Entry>),
    /// The last entries of a listing.
    Listing(Listing),
    /// The last files of a glob.
    Glob(GlobResult),
    /// Files with matches; more follow.
    Matches(Vec<FileMatches>),
    /// The last files with matches.
    Grep(GrepResult),
    Bytes(FileBytes),
    /// A file of this size; the bytes follow in pieces, then `Done`.
    Pieces(u64),
    Piece(Bytes),
    Text(TextWindow),
    Written(WriteOutcome),
    Edited(EditOutcome),
    Executed(ExecuteOutcome),
    Event(Event),
    Shell(ShellInfo),
    ShellOutput(ShellOutput),
    Killed(bool),
    Shells(Vec<ShellInfo>),
    /// Changes of a watch; more follow, or `Done`.
    Changes(Vec<WatchEvent>),
}

impl Reply {
    /// Returns a name for this kind of reply, for error messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Failed(_) => "an error",
            Self::Beat(_) => "a heartbeat",
            Self::Done => "an end",
            Self::Path(_) => "a path",
            Self::Entry(_) => "an entry",
            Self::Entries(_) => "entries",
            Self::Listing(_) => "a listing",
            Self::Glob(_) => "a glob result",
            Self::Matches(_) => "matches",
            Self::Grep(_) => "a grep result",
            Self::Bytes(_) | Self::Pieces(_) | Self::Piece(_) => "bytes",
            Self::Text(_) => "text",
            Self::Written(_) => "a written file",
            Self::Edited(_) => "an edited file",
            Self::Executed(_) => "an outcome",
            Self::Event(_) => "an event",
            Self::Shell(_) | Self::ShellOutput(_) | Self::Shells(_) => "a shell",
            Self::Killed(_) => "the end of a shell",
            Self::Changes(_) => "changes",
        }
    }
}

#[cfg(test)]
mod tests;
