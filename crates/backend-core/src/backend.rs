//! The [`Backend`] trait: one contract for every place an agent's files live.

use std::sync::Arc;

use async_trait::async_trait;

use crate::capability::BackendInfo;
use crate::error::Result;
use crate::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, ReadOptions,
    RenameOptions, ResolveOptions, StatOptions, TextOptions, WriteOptions, WriteOutcome,
};
use crate::path::VPath;
use crate::sandbox::Sandbox;
use crate::text::{Edit, TextWindow};

/// A place where an agent's files live.
///
/// The same call gives the same answer on every backend. What follows is that
/// answer; the conformance suite in `backend-testkit` proves it line by line.
///
/// # For callers
///
/// Share a backend as `Arc<dyn Backend>`. Plain verbs that take strings and
/// need no options are in [`BackendExt`](crate::BackendExt), which every backend
/// has.
///
/// # For implementers
///
/// Every method is required, so that a wrapper which forgets one does not
/// compile. A backend that can list, read, write and delete gets the others in
/// one line each from [`crate::derived`]. Option structs bring the checks every
/// backend must make: [`ReadOptions::offsets`], [`GlobQuery::compile`],
/// [`GrepQuery::compile`].
///
/// # What holds for every operation
///
/// - Paths arrive folded. `..`, `.` and doubled slashes do not exist here.
/// - A missing path is `NotFound`. A path beneath a regular file is
///   `NotADirectory`. What confinement or a policy forbids is
///   `PermissionDenied`. A sandbox that is gone is `Unavailable`, never an empty
///   answer.
/// - A backend that cannot be written to answers `PermissionDenied` to every
///   operation that changes something.
/// - With [`Links::Refuse`](crate::ops::Links::Refuse), a symbolic link that the
///   operation would have to follow is `IsALink`. Reading, `stat`, `ls`, `write`
///   and `edit` follow a link in the last component; `delete`, `rename` and
///   `copy` act on that link itself.
/// - Errors say which operation failed on which backend and where.
/// - Dropping a future cancels the operation. A cancelled change has happened
///   wholly or not at all. No operation needs the caller's runtime to be polled
///   again in order to end.
/// - Clones and `Arc`s of a backend share one place.
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
/// ```
#[async_trait]
pub trait Backend: std::fmt::Debug + Send + Sync + 'static {
    /// What this backend is and can do. No I/O.
    fn info(&self) -> BackendInfo;

    /// Where relative paths start. No I/O.
    fn working_dir(&self) -> VPath;

    /// This backend as a [`Sandbox`], if it runs commands. No I/O.
    fn as_sandbox(&self) -> Option<&dyn Sandbox>;

    /// Follows every symbolic link in `path`.
    ///
    /// # Behaviour
    ///
    /// - What does not exist at the end of the path is kept as it is: the result
    ///   is where a file written to `path` would come to stand.
    /// - The result has no link in it and means the same place until somebody
    ///   changes the tree.
    /// - On a backend without links, the result is `path`.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` if a link leads outside; `InvalidPath` if links go in
    /// a circle; `NotADirectory` beneath a file.
    async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath>;

    /// Describes what stands at `path`.
    ///
    /// # Behaviour
    ///
    /// - A link is described by what it leads to, with
    ///   [`Entry::link`](crate::ops::Entry::link) set. One that leads nowhere is
    ///   `NotFound`; a listing of its directory shows it.
    /// - Size and time are those of regular files; directories have neither.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotADirectory`, `IsALink`, `PermissionDenied`.
    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry>;

    /// Lists a directory.
    ///
    /// # Behaviour
    ///
    /// - Directories first, then by name in byte order. Everything is shown,
    ///   hidden and ignored entries included; only files being written are not.
    /// - A regular file lists itself. An empty directory is an empty listing.
    /// - An entry that vanishes meanwhile, or whose name is not UTF-8, is left
    ///   out; the latter is counted.
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
    /// - A range that ends past the end of the file is cut there; one that
    ///   begins at the end is empty.
    ///
    /// # Errors
    ///
    /// `NotFound`; `IsADirectory`; `InvalidInput` for a range that is turned
    /// round or begins past the end; `TooLarge` for more than
    /// [`ReadOptions::max_bytes`], never a shortened answer; `InvalidInput` for
    /// what is neither file nor directory (a FIFO is never opened to wait).
    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes>;

    /// Reads a window of lines.
    ///
    /// # Behaviour
    ///
    /// - Memory is bounded by the window, whatever the file's size.
    /// - Lines keep their real numbers. A trailing newline is not an extra line;
    ///   an empty file is a success without lines. `\r\n` is a line end.
    /// - Byte-order marks of UTF-8 and UTF-16 are understood. Other bytes that
    ///   are not UTF-8 show as U+FFFD.
    /// - A line over [`TextOptions::max_line_bytes`] is cut and says by how much.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); `InvalidInput` for a limit of zero and for an
    /// offset past the end, naming the number of lines; `NotText` for a file
    /// that is not UTF-8 and has a NUL in its first 8 KiB.
    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow>;

    /// Writes a whole file.
    ///
    /// # Behaviour
    ///
    /// - The bytes written are the bytes read back.
    /// - Readers see the old file or the new one, never a mixture, also if this
    ///   process dies. Missing parent directories are created.
    /// - Permission bits of a file that is replaced are kept.
    /// - [`WriteMode`](crate::ops::WriteMode) says when the write may go ahead,
    ///   and that holds against other writers through this backend.
    /// - Durable only when asked.
    ///
    /// # Errors
    ///
    /// `IsADirectory`; `NotADirectory` if a parent is a file; `AlreadyExists`
    /// and `Conflict` as the mode says; `TooLarge` if the backend holds no file
    /// of that size. After an error the file is what it was.
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
    /// - Each edit applies to the result of the one before. What is to be
    ///   replaced must occur exactly once, unless the edit says all.
    /// - Everything else keeps its bytes: line ends, byte-order mark, final
    ///   newline. If nothing matches and all the file's line ends are `\r\n`,
    ///   `\n` in the edit means `\r\n`.
    /// - Two edits of one file at once through one backend both apply, or one
    ///   gets `Conflict`.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read) and [`write`](Self::write); `NoMatch` if the text
    /// is not found, naming the nearest candidates and their lines;
    /// `MultipleMatches` if it occurs more than once, naming how often and where;
    /// both also as data, in [`Error::edit_error`](crate::Error::edit_error).
    /// `InvalidInput` if the text is empty or would not change, and if there are
    /// no edits; `NotText` if the file is not UTF-8; `Conflict` if
    /// [`EditOptions::expected`] does not hold; `TooLarge` over
    /// [`EDIT_BYTES`](crate::limits::EDIT_BYTES) or
    /// [`EDITS`](crate::limits::EDITS).
    async fn edit(&self, path: &VPath, edits: &[Edit], options: EditOptions)
    -> Result<EditOutcome>;

    /// Creates a directory and those above it.
    ///
    /// # Behaviour
    ///
    /// A directory that exists is a success. Directories stay when their last
    /// entry goes.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if something else stands at the path; `NotADirectory` if
    /// a file stands above it.
    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()>;

    /// Deletes a file, a link, or with [`DeleteOptions::recursive`] a directory
    /// and all it holds.
    ///
    /// # Errors
    ///
    /// `NotFound`; `IsADirectory` for a directory, empty or not, without
    /// `recursive`; `InvalidInput` for the working directory and those above it.
    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()>;

    /// Moves a file or a directory.
    ///
    /// # Behaviour
    ///
    /// - Parents of the destination are created.
    /// - With [`RenameOptions::overwrite`] a file replaces a file, and readers
    ///   of the destination see one or the other. A directory is never replaced
    ///   or merged.
    ///
    /// # Errors
    ///
    /// `NotFound`; `AlreadyExists` if something stands at the destination that
    /// may not be replaced, a directory included; `InvalidInput` for moving
    /// something onto or into itself, and for the working directory and those
    /// above it; `NotADirectory` if a file stands above the destination;
    /// `InvalidPath` if something inside a directory would no longer have a path.
    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()>;

    /// Copies a file, or with [`CopyOptions::recursive`] a directory and all it
    /// holds.
    ///
    /// # Behaviour
    ///
    /// Parents of the destination are created; permission bits are copied. A
    /// file's copy appears whole or not at all. A copied directory that fails
    /// half-way leaves what was copied.
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
    /// - Hidden entries are left out unless asked for, or named by a component of
    ///   the pattern that begins with `.`; `.git` only when named. `.gitignore`
    ///   and `.ignore` files from the root down are honoured, also outside a git
    ///   repository, unless switched off: deeper beats shallower, `.ignore` beats
    ///   `.gitignore`, nothing inside an ignored directory comes back.
    /// - Where no ignore file holds a rule, [generated
    ///   directories](crate::search::GENERATED_DIRECTORIES) are left out, unless
    ///   asked for or named by a component of the pattern before its last. What
    ///   is beneath a named one is found, and a search may start in any.
    /// - With a limit, the head of the complete, ordered result.
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
    ///   front of it, and neither `.` nor `$` takes a `\r` for content. In a
    ///   multi-line search `\n` is just that; write `\r?\n` for either. `\A` and
    ///   `\z`, the ends of the file, need a multi-line search.
    /// - Which files are searched: as in [`glob`](Self::glob), narrowed by
    ///   [`GrepQuery::files`]. A file that is named is always searched.
    /// - A file whose first 8 KiB hold a NUL and no UTF-16 mark is binary and
    ///   passed over. Everything passed over is counted.
    /// - Files in byte order of their paths, lines in order. With a maximum, the
    ///   head of the complete result.
    ///
    /// # Errors
    ///
    /// `NotFound`; `InvalidInput` for a bad pattern (pointing at the spot), a bad
    /// file filter, or a maximum of zero.
    async fn grep(&self, query: GrepQuery) -> Result<GrepResult>;
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<B: Backend + ?Sized> Backend for Arc<B> {
    fn info(&self) -> BackendInfo {
        (**self).info()
    }

    fn working_dir(&self) -> VPath {
        (**self).working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        (**self).as_sandbox()
    }

    async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath> {
        (**self).resolve(path, options).await
    }

    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        (**self).stat(path, options).await
    }

    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        (**self).ls(path, options).await
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        (**self).read(path, options).await
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        (**self).read_text(path, options).await
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        (**self).write(path, content, options).await
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        (**self).edit(path, edits, options).await
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        (**self).create_dir(path, options).await
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        (**self).delete(path, options).await
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        (**self).rename(from, to, options).await
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        (**self).copy(from, to, options).await
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        (**self).glob(query).await
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        (**self).grep(query).await
    }
}
