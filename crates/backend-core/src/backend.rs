//! The [`Backend`] trait: one contract for every place an agent's files live.

use std::sync::Arc;

use async_trait::async_trait;
use futures_core::stream::BoxStream;

use crate::capability::BackendInfo;
use crate::error::{Error, Operation, Result};
use crate::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, ReadOptions,
    RenameOptions, ResolveOptions, StatOptions, TextOptions, WatchEvent, WatchQuery, WriteOptions,
    WriteOutcome,
};
use crate::path::VPath;
use crate::sandbox::Sandbox;
use crate::text::{Edit, TextWindow};

/// The changes of a tree, in order. Dropping the stream ends the watch.
pub type WatchStream = BoxStream<'static, Result<WatchEvent>>;

/// A place where an agent's files live.
///
/// The same call gives the same answer on every backend. The sections below define
/// that answer, and the conformance suite in `backend-testkit` checks it line by line.
///
/// # For callers
///
/// Share a backend as `Arc<dyn Backend>`. Plain verbs that take strings and
/// need no options are in [`BackendExt`](crate::BackendExt), which every backend
/// has.
///
/// # For implementers
///
/// Every method but `watch` is required, so that a wrapper which forgets one does
/// not compile. A backend that can list, read, write and delete gets the others in
/// one line each from [`crate::derived`]. Option structs bring the checks every
/// backend must make: [`ReadOptions::offsets`], [`GlobQuery::compile`],
/// [`GrepQuery::compile`].
///
/// # Rules for every operation
///
/// - Paths arrive folded. `..`, `.` and doubled slashes do not exist here.
/// - A missing path is `NotFound`. A path beneath a regular file is
///   `NotADirectory`. An access that confinement or a policy forbids is
///   `PermissionDenied`. A sandbox that is gone is `Unavailable`, never an empty
///   answer.
/// - A backend that cannot be written to returns `PermissionDenied` for every
///   operation that changes something.
/// - With [`Links::Refuse`](crate::ops::Links::Refuse), a symbolic link that the
///   operation would have to follow is `IsALink`. Reading, `stat`, `ls`, `write`
///   and `edit` follow a link in the last component; `delete`, `rename` and
///   `copy` act on that link itself.
/// - Errors name the operation, the backend and the path that failed.
/// - Dropping a future cancels the operation. A cancelled change is applied
///   completely or not at all. No operation needs the caller's runtime to poll it
///   again in order to finish.
/// - Clones and `Arc`s of a backend share the same files.
///
/// # Signatures
///
/// The async methods, as they are written under `#[async_trait]`:
///
/// ```text
/// async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath>;
/// async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry>;
/// async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing>;
/// async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes>;
/// async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow>;
/// async fn write(&self, path: &VPath, content: Content, options: WriteOptions) -> Result<WriteOutcome>;
/// async fn edit(&self, path: &VPath, edits: &[Edit], options: EditOptions) -> Result<EditOutcome>;
/// async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()>;
/// async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()>;
/// async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()>;
/// async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()>;
/// async fn glob(&self, query: GlobQuery) -> Result<GlobResult>;
/// async fn grep(&self, query: GrepQuery) -> Result<GrepResult>;
/// async fn watch(&self, query: WatchQuery) -> Result<WatchStream>;
/// ```
#[async_trait]
pub trait Backend: std::fmt::Debug + Send + Sync + 'static {
    /// Returns the name, capabilities and containment of this backend. No I/O.
    fn info(&self) -> BackendInfo;

    /// Returns the directory that relative paths start from. No I/O.
    fn working_dir(&self) -> VPath;

    /// Returns this backend as a [`Sandbox`] if it runs commands. No I/O.
    fn as_sandbox(&self) -> Option<&dyn Sandbox>;

    /// Follows every symbolic link in `path`.
    ///
    /// # Behaviour
    ///
    /// - Components at the end of the path that do not exist are kept as they are:
    ///   the result is where a file written to `path` would be created.
    /// - The result contains no link and names the same place until the tree
    ///   changes.
    /// - On a backend without links, the result is `path`.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` if a link leads outside; `InvalidPath` if links form a
    /// loop; `NotADirectory` beneath a file.
    async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath>;

    /// Describes the entry at `path`.
    ///
    /// # Behaviour
    ///
    /// - A link is described by its target, with
    ///   [`Entry::link`](crate::ops::Entry::link) set. A dangling link is
    ///   `NotFound`; a listing of its directory shows it.
    /// - Only regular files have a size and a time.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotADirectory`, `IsALink`, `PermissionDenied`.
    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry>;

    /// Lists a directory.
    ///
    /// # Behaviour
    ///
    /// - Directories first, then by name in byte order. Hidden and ignored entries
    ///   are included; only temporary files of writes in progress are not.
    /// - A regular file lists itself. An empty directory is an empty listing.
    /// - An entry that vanishes during the call, or whose name is not UTF-8, is
    ///   left out. Names that are not UTF-8 are counted.
    /// - [`LsOptions::exclude`] is applied first, then
    ///   [`LsOptions::limit`]; the listing says how many entries there are.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotADirectory`, `IsALink`, `PermissionDenied`;
    /// `InvalidInput` for a limit of zero.
    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing>;

    /// Reads bytes.
    ///
    /// # Behaviour
    ///
    /// - The bytes are exactly those of the file. An empty file is empty bytes.
    /// - A range that ends past the end of the file is cut there. A range that
    ///   starts at the end is empty.
    ///
    /// # Errors
    ///
    /// `NotFound`; `IsADirectory`; `InvalidInput` for a range that ends before it
    /// starts or starts past the end; `TooLarge` for more than
    /// [`ReadOptions::max_bytes`], never a shortened answer; `InvalidInput` for
    /// anything that is neither file nor directory (a FIFO is never opened, so the
    /// call cannot block on one).
    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes>;

    /// Reads a window of lines.
    ///
    /// # Behaviour
    ///
    /// - Memory use is bounded by the window, not by the file's size.
    /// - Lines keep their real numbers. A trailing newline is not an extra line;
    ///   an empty file is a success without lines. `\r\n` is a line end.
    /// - Byte-order marks of UTF-8 and UTF-16 are recognized. Other bytes that are
    ///   not UTF-8 are shown as U+FFFD.
    /// - A line over [`TextOptions::max_line_bytes`] is cut, and the result says by
    ///   how many bytes.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); `InvalidInput` for a limit of zero and for an
    /// offset past the end, with the number of lines; `NotText` for a file that is
    /// not UTF-8 and has a NUL in its first 8 KiB.
    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow>;

    /// Writes a whole file.
    ///
    /// # Behaviour
    ///
    /// - The bytes written are the bytes read back.
    /// - Readers see the old file or the new one, never a mixture, even if this
    ///   process dies. Missing parent directories are created.
    /// - Permission bits of a file that is replaced are kept.
    /// - [`WriteMode`](crate::ops::WriteMode) is the condition for the write. It is
    ///   checked atomically with respect to other writers through this backend.
    /// - The write is durable only if requested.
    ///
    /// # Errors
    ///
    /// `IsADirectory`; `NotADirectory` if a parent is a file; `AlreadyExists` and
    /// `Conflict` depending on the mode; `TooLarge` if the backend cannot store a
    /// file of that size. After an error the file is unchanged.
    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome>;

    /// Replaces exact pieces of text; all edits or none.
    ///
    /// # Behaviour
    ///
    /// - Each edit applies to the result of the previous one. The text to replace
    ///   must occur exactly once, unless the edit asks for all occurrences.
    /// - Everything else keeps its bytes: line ends, byte-order mark, final
    ///   newline. If nothing matches and every line of the file ends in `\r\n`,
    ///   `\n` in the edit means `\r\n`.
    /// - Of two concurrent edits of one file through one backend, both apply, or
    ///   one fails with `Conflict`.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read) and [`write`](Self::write); `NoMatch` if the text is
    /// not found, with the nearest candidates and their lines; `MultipleMatches` if
    /// it occurs more than once, with the count and the lines. Both are also
    /// available as data, in [`Error::edit_error`](crate::Error::edit_error).
    /// `InvalidInput` if the text is empty or would not change, and if there are no
    /// edits; `NotText` if the file is not UTF-8; `Conflict` if
    /// [`EditOptions::expected`] does not hold; `TooLarge` over
    /// [`EDIT_BYTES`](crate::limits::EDIT_BYTES) or
    /// [`EDITS`](crate::limits::EDITS).
    async fn edit(&self, path: &VPath, edits: &[Edit], options: EditOptions)
    -> Result<EditOutcome>;

    /// Creates a directory and its missing parents.
    ///
    /// # Behaviour
    ///
    /// An existing directory is a success. A directory remains when its last entry is removed.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if something other than a directory exists at the path;
    /// `NotADirectory` if a parent is a file.
    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()>;

    /// Deletes a file, a link, or with [`DeleteOptions::recursive`] a directory and its contents.
    ///
    /// # Errors
    ///
    /// `NotFound`; `IsADirectory` for a directory, empty or not, without
    /// `recursive`; `InvalidInput` for the working directory and its parents.
    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()>;

    /// Moves a file or a directory.
    ///
    /// # Behaviour
    ///
    /// - Missing parents of the destination are created.
    /// - With [`RenameOptions::overwrite`] a file replaces a file, and readers
    ///   of the destination see one or the other. A directory is never replaced
    ///   or merged.
    ///
    /// # Errors
    ///
    /// `NotFound`; `AlreadyExists` if the destination exists and may not be
    /// replaced, which includes every directory; `InvalidInput` for moving
    /// something onto or into itself, and for the working directory and its
    /// parents; `NotADirectory` if a parent of the destination is a file;
    /// `InvalidPath` if the path of something inside a moved directory would become invalid.
    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()>;

    /// Copies a file, or with [`CopyOptions::recursive`] a directory and its contents.
    ///
    /// # Behaviour
    ///
    /// Missing parents of the destination are created and permission bits are
    /// copied. The copy of a file appears complete or not at all. If copying a
    /// directory fails half-way, the entries copied so far remain.
    ///
    /// # Errors
    ///
    /// As [`rename`](Self::rename), except that the working directory may be
    /// copied; `IsADirectory` for a directory without `recursive`.
    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()>;

    /// Finds files by name.
    ///
    /// # Behaviour
    ///
    /// - Dialect: `**`, `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`; `*` does not cross
    ///   `/`. A pattern without `/` matches at any depth.
    /// - Regular files only; links are not followed. In byte order of the path,
    ///   or newest first.
    /// - Hidden entries are left out unless requested, or named by a component of
    ///   the pattern that begins with `.`; `.git` only when named. `.gitignore` and
    ///   `.ignore` files from the root down are honoured, even outside a git
    ///   repository, unless switched off. A deeper file overrides a shallower one,
    ///   `.ignore` overrides `.gitignore`, and nothing inside an ignored directory
    ///   can be included again.
    /// - Where no ignore file holds a rule, [generated
    ///   directories](crate::search::GENERATED_DIRECTORIES) are left out, unless
    ///   requested or named by a component of the pattern other than the last.
    ///   Files beneath a named one are found, and a search may start in any of
    ///   them.
    /// - A limit returns the head of the complete, ordered result.
    ///
    /// # Errors
    ///
    /// `NotFound`; `NotADirectory` if [`GlobQuery::path`] is a file;
    /// `InvalidInput` for a bad pattern or a limit of zero.
    async fn glob(&self, query: GlobQuery) -> Result<GlobResult>;

    /// Finds lines by content.
    ///
    /// # Behaviour
    ///
    /// - Dialect: that of the `regex` crate. `\r\n` is a line end: `$` matches in
    ///   front of it, and neither `.` nor `$` treats the `\r` as content. In a
    ///   multi-line search `\n` matches only itself; write `\r?\n` for either. `\A`
    ///   and `\z`, the ends of the file, need a multi-line search.
    /// - The files searched are those of [`glob`](Self::glob), narrowed by
    ///   [`GrepQuery::files`]. A file named as [`GrepQuery::path`] is always
    ///   searched.
    /// - A file whose first 8 KiB hold a NUL and no UTF-16 mark is binary and
    ///   skipped. Everything skipped is counted.
    /// - Files in byte order of their paths, lines in order. A maximum returns the
    ///   head of the complete result.
    ///
    /// # Errors
    ///
    /// `NotFound`; `InvalidInput` for a bad pattern (pointing at the spot), a bad
    /// file filter, or a maximum of zero.
    async fn grep(&self, query: GrepQuery) -> Result<GrepResult>;

    /// Tells the changes of a tree.
    ///
    /// # Behaviour
    ///
    /// - Once the call has returned, every later change beneath
    ///   [`WatchQuery::path`] is told, whatever makes it: a call, a command, another
    ///   program. Dropping the stream ends the watch.
    /// - Events of one path come in order. Repeated changes of one file that were not
    ///   read yet are told once; a change may be told more than once. When an event is
    ///   read, the change it tells is visible.
    /// - Temporary files of writes in progress are never told. A write that replaces a
    ///   file is `Changed`, one that creates it is `Created`. Directories are created
    ///   and deleted, never changed.
    /// - A move within the tree is `Renamed`, and only the entry that was moved is told.
    ///   A move into it is `Created`, for the entry and everything beneath it. A move
    ///   out of it is `Deleted`, for the entry alone. A backend may tell any move as
    ///   `Deleted` and `Created`.
    /// - When a directory is deleted, entries beneath it are told before it or not at all.
    /// - If the watched directory is deleted or moved, the stream tells it as `Deleted`
    ///   and ends. If the backend goes away, the stream ends, with an error if it knows one.
    /// - Nothing is told of entries that [`WatchQuery::exclude`] hides; a move of which
    ///   one side is hidden is a creation or a deletion. Links are entries like any
    ///   other and never followed. Names that are not UTF-8 are left out, and so are
    ///   the contents of directories that cannot be read.
    /// - At most [`WATCH_EVENTS`](crate::limits::WATCH_EVENTS) events wait to be read.
    ///   After them comes [`WatchEvent::Overflow`] once, and changes are dropped until
    ///   it is read; then the stream goes on. A reader that lists the tree after that
    ///   event has missed nothing.
    /// - Waiting takes neither polling nor the caller's runtime.
    ///
    /// # Errors
    ///
    /// `NotFound`; `NotADirectory`; `IsALink`; `PermissionDenied`; `TooLarge` if the
    /// tree has more directories than can be watched, which can also be the last item
    /// of the stream; `Unsupported` if the backend tells no changes, see
    /// [`Capabilities::watch`](crate::Capabilities::watch).
    async fn watch(&self, query: WatchQuery) -> Result<WatchStream> {
        Err(Error::no_watch()
            .at(Operation::Watch, &query.path)
            .on(self.info().name))
    }
}

#[deny(clippy::missing_trait_methods)]
impl<B: Backend + ?Sized> Backend for Arc<B> {
    crate::delegate! {
        |self| **self => info, working_dir, as_sandbox, resolve, stat, ls, read, read_text,
        write, edit, create_dir, delete, rename, copy, glob, grep, watch
    }
}
