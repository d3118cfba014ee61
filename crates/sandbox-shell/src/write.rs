//! Changing files: `write`, `edit`, `create_dir`, `delete`, `rename`, `copy`.
//!
//! A change that was started is completed on the engine, even if its call is
//! dropped: it happens wholly or not at all, and nothing is left behind.

use std::sync::Arc;

use backend_core::derived::{edit_bytes, refuse_into_itself, refuse_working_dir};
use backend_core::limits::{EDIT_ATTEMPTS, EDIT_BYTES, PATH_BYTES, PATH_DEPTH};
use backend_core::ops::{
    Content, ContentHash, ContentHasher, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions,
    EditOutcome, Links, ReadOptions, RenameOptions, WriteMode, WriteOptions, WriteOutcome,
};
use backend_core::{Edit, Error, ErrorKind, Result, VPath};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use sandbox_wire::Machine;
use tokio_util::sync::CancellationToken;

use crate::failure::broken;
use crate::pool::Pool;
use crate::sentinel::random_word;
use crate::worker::{Request, flag};

/// Bytes sent with one request: to a machine nearby, and to one that is distant.
const PIECE_BYTES: usize = 256 * 1024;
const DISTANT_PIECE_BYTES: usize = 1000 * 1024;

/// Changes files, one at a time, so that a write's condition on the old file
/// still holds when the file is replaced.
#[derive(Debug)]
pub(crate) struct Writer<M> {
    pub(crate) pool: Arc<Pool<M>>,
    turn: tokio::sync::Mutex<()>,
}

/// A file that does not have its final name yet.
struct Begun {
    directory: Bytes,
    name: String,
}

/// Returns the script's letter for the write mode, and the hash that it must
/// find.
fn mode(options: &WriteOptions) -> (&'static str, String) {
    match options.mode {
        WriteMode::Overwrite => ("o", String::new()),
        WriteMode::CreateNew => ("c", String::new()),
        WriteMode::IfUnchanged(hash) => ("u", hash.to_string()),
    }
}

fn durable(options: &WriteOptions) -> &'static str {
    if options.durable { "d" } else { "" }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the call was dropped")
}

impl<M: Machine> Writer<M> {
    pub(crate) fn new(pool: Arc<Pool<M>>) -> Self {
        Self {
            pool,
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Writes a file. Until its content is complete, `gone` cancels the write.
    pub(crate) async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
        gone: CancellationToken,
    ) -> Result<WriteOutcome> {
        self.place(path, content, options, &gone, true).await
    }

    /// Writes a file in a turn of its own, unless the caller has the turn.
    async fn place(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
        gone: &CancellationToken,
        needs_turn: bool,
    ) -> Result<WriteOutcome> {
        let pieces = match content {
            Content::Bytes(bytes) if bytes.len() <= self.piece_bytes() => {
                let _turn = self.turn_if(needs_turn).await;
                if gone.is_cancelled() {
                    return Err(cancelled());
                }
                return self.write_small(path, bytes, options).await;
            }
            Content::Bytes(bytes) => stream::iter([Ok(bytes)]).boxed(),
            Content::Stream(pieces) => pieces,
        };
        // A temporary file gets its final name at the end.
        let begun = self.begin(path, options).await?;
        let placed = async {
            let filled = self.fill(&begun, pieces, gone).await?;
            let _turn = self.turn_if(needs_turn).await;
            self.commit(path, options, &begun, filled).await
        };
        let placed = placed.await;
        if placed.is_err() {
            let request = Request::new("discard")
                .arg(&begun.directory)
                .arg(&begun.name);
            // A later listing of the directory removes a leftover file.
            let _ = self.pool.ask(request).await;
        }
        placed
    }

    fn piece_bytes(&self) -> usize {
        match self.pool.machine.is_distant() {
            true => DISTANT_PIECE_BYTES,
            false => PIECE_BYTES,
        }
    }

    async fn turn_if(&self, is_needed: bool) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        if is_needed {
            Some(self.turn.lock().await)
        } else {
            None
        }
    }

    /// Writes content that fits into one request.
    async fn write_small(
        &self,
        path: &VPath,
        bytes: Bytes,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        let (mode, expected) = mode(&options);
        let request = Request::at("write", path, options.links)
            .slow()
            .arg(mode)
            .arg(expected)
            .arg(bytes.len().to_string())
            .arg(durable(&options))
            .arg(random_word())
            .body(bytes.clone());
        let created = is_new(&self.pool.ask(request).await?)?;
        Ok(WriteOutcome::of(created, &bytes))
    }

    /// Creates the temporary file for a path's content.
    async fn begin(&self, path: &VPath, options: WriteOptions) -> Result<Begun> {
        let name = random_word();
        let request = Request::at("begin", path, options.links)
            .arg(mode(&options).0)
            .arg(&name);
        let directory = self.pool.ask(request).await?;
        Ok(Begun { directory, name })
    }

    /// Gives the file its final name, if the old file is the expected one.
    async fn commit(
        &self,
        path: &VPath,
        options: WriteOptions,
        begun: &Begun,
        (size, hash): (u64, ContentHash),
    ) -> Result<WriteOutcome> {
        let (mode, expected) = mode(&options);
        let request = Request::at("commit", path, options.links)
            .slow()
            .arg(mode)
            .arg(expected)
            .arg(&begun.directory)
            .arg(&begun.name)
            .arg(durable(&options));
        let created = is_new(&self.pool.ask(request).await?)?;
        Ok(WriteOutcome::new(created, size, hash))
    }

    /// Writes all content to the temporary file.
    async fn fill(
        &self,
        begun: &Begun,
        mut pieces: BoxStream<'static, Result<Bytes>>,
        gone: &CancellationToken,
    ) -> Result<(u64, ContentHash)> {
        let piece_bytes = self.piece_bytes();
        let mut hasher = ContentHasher::new();
        let (mut size, mut waiting) = (0, BytesMut::new());
        loop {
            let next = tokio::select! {
                biased;
                () = gone.cancelled() => return Err(cancelled()),
                next = pieces.next() => next,
            };
            let Some(mut piece) = next.transpose()? else {
                self.append(begun, &mut size, waiting.freeze()).await?;
                return Ok((size, hasher.finish()));
            };
            hasher.update(&piece);
            while waiting.len() + piece.len() >= piece_bytes {
                if gone.is_cancelled() {
                    return Err(cancelled());
                }
                let part = piece.split_to(piece_bytes - waiting.len());
                let part = if waiting.is_empty() {
                    part
                } else {
                    waiting.extend_from_slice(&part);
                    waiting.split().freeze()
                };
                self.append(begun, &mut size, part).await?;
            }
            waiting.extend_from_slice(&piece);
        }
    }

    /// Appends a piece to a file of `size` bytes.
    async fn append(&self, begun: &Begun, size: &mut u64, piece: Bytes) -> Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let length = piece.len() as u64;
        let request = Request::new("append")
            .arg(&begun.directory)
            .arg(&begun.name)
            .arg(size.to_string())
            .arg(length.to_string())
            .body(piece);
        self.pool.ask(request).await?;
        *size += length;
        Ok(())
    }

    pub(crate) async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
        gone: CancellationToken,
    ) -> Result<EditOutcome> {
        let _turn = self.turn.lock().await;
        // A file that is not the expected one is read once more.
        let mut attempts = options.expected.map_or(EDIT_ATTEMPTS, |_| 2);
        loop {
            if gone.is_cancelled() {
                return Err(cancelled());
            }
            attempts -= 1;
            match self.edit_once(path, edits, options).await {
                Err(error) if error.kind() == ErrorKind::Conflict && attempts > 0 => {}
                edited => return edited,
            }
        }
    }

    async fn edit_once(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        let read = ReadOptions::default()
            .links(options.links)
            .max_bytes(EDIT_BYTES);
        let before = self.pool.read(path, read).await.map_err(|error| {
            if error.kind() != ErrorKind::TooLarge {
                return error;
            }
            Error::too_large(format!(
                "the file has more than the {EDIT_BYTES} bytes that edit rewrites; write the whole file instead"
            ))
        })?;
        let (after, outcome) = edit_bytes(&before.data, edits, &options)?;
        let unchanged = WriteMode::IfUnchanged(ContentHash::of(&before.data));
        let write = WriteOptions::default().links(options.links).mode(unchanged);
        let (content, never) = (Content::Bytes(after), CancellationToken::new());
        self.place(path, content, write, &never, false).await?;
        Ok(outcome)
    }

    pub(crate) async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        let made = self.pool.ask(Request::at("mkdir", path, options.links));
        made.await.map(drop).map_err(|error| {
            if error.kind() == ErrorKind::AlreadyExists {
                Error::exists_as_non_directory()
            } else {
                error
            }
        })
    }

    pub(crate) async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        let home = self.pool.machine.working_dir();
        refuse_working_dir(path, &home)?;
        let request = Request::at("delete", path, options.links)
            .slow()
            .arg(if options.recursive { "r" } else { "" })
            .arg(home.as_str());
        let deleted = self.pool.ask(request).await;
        deleted
            .map(drop)
            .map_err(directory(Error::needs_recursive_delete))
    }

    pub(crate) async fn rename(
        &self,
        from: &VPath,
        to: &VPath,
        options: RenameOptions,
    ) -> Result<()> {
        let home = self.pool.machine.working_dir();
        refuse_into_itself(from, to)?;
        refuse_working_dir(from, &home)?;
        let (depth, length) = room(from, to);
        let request = ends("rename", from, to, options.links, options.overwrite)
            .arg(home.as_str())
            .arg(depth)
            .arg(length);
        let _turn = self.turn.lock().await;
        self.pool.ask(request).await.map(drop)
    }

    pub(crate) async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        refuse_into_itself(from, to)?;
        let (depth, length) = room(from, to);
        let request = ends("copy", from, to, options.links, options.overwrite)
            .arg(if options.recursive { "r" } else { "" })
            .arg(random_word())
            .arg(depth)
            .arg(length);
        // A copy that replaces nothing needs no lock, and a tree may take long.
        let _turn = self.turn_if(options.overwrite).await;
        let copied = self.pool.ask(request).await;
        copied
            .map(drop)
            .map_err(directory(Error::needs_recursive_copy))
    }
}

fn ends(
    operation: &'static str,
    from: &VPath,
    to: &VPath,
    links: Links,
    overwrite: bool,
) -> Request {
    Request::new(operation)
        .slow()
        .arg(from.as_str())
        .arg(to.as_str())
        .arg(flag(links))
        .arg(if overwrite { "o" } else { "" })
}

/// Returns the first level beneath `to` that is too deep, and the first length
/// that is too long, for entries inside `from`. Both are empty if every path
/// stays valid.
fn room(from: &VPath, to: &VPath) -> (String, String) {
    let depth = |path: &VPath| path.components().count();
    let (from_bytes, to_bytes) = (from.as_str().len(), to.as_str().len());
    if to_bytes <= from_bytes && depth(to) <= depth(from) {
        return (String::new(), String::new());
    }
    let levels = (PATH_DEPTH + 1).saturating_sub(depth(to)).max(1);
    // Paths inside are written with a leading `./`, one byte more than they
    // add.
    let bytes = (PATH_BYTES + 2).saturating_sub(to_bytes).max(3);
    (levels.to_string(), bytes.to_string())
}

/// Replaces the message of a directory error.
fn directory(instead: fn() -> Error) -> impl FnOnce(Error) -> Error {
    move |error| {
        if error.kind() == ErrorKind::IsADirectory {
            instead()
        } else {
            error
        }
    }
}

/// Parses a script's answer whether a file is new.
fn is_new(answer: &[u8]) -> Result<bool> {
    match answer {
        b"1" => Ok(true),
        b"0" => Ok(false),
        _ => Err(broken("the result of a write is missing")),
    }
}
