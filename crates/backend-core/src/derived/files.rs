//! Text windows, edits, copies and moves, built from reads and writes.

use bytes::Bytes;

use crate::backend::Backend;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::limits::{EDIT_ATTEMPTS, EDIT_BYTES, EDITS};
use crate::ops::{
    ContentHash, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    Links, LsOptions, ReadOptions, RenameOptions, StatOptions, TextOptions, WriteMode,
    WriteOptions,
};
use crate::path::VPath;
use crate::text::{self, Edit, Progress, TextWindow, WindowScanner};

/// Bytes requested by [`text_by_read`] at a time.
const CHUNK_BYTES: u64 = 256 * 1024;

/// Implements [`Backend::resolve`] where symbolic links cannot exist.
///
/// # Errors
///
/// `NotADirectory` beneath a file; otherwise the errors of `stat`.
pub async fn resolve_without_links<B: Backend + ?Sized>(
    backend: &B,
    path: &VPath,
) -> Result<VPath> {
    let found = Error::none_if_missing(backend.stat(path, StatOptions::default()).await);
    found.map_err(|error| error.as_part_of(Operation::Resolve, path))?;
    Ok(path.clone())
}

/// Adds the backend, the operation and the path to an error of a derived operation.
pub(super) fn failed<B: Backend + ?Sized>(
    backend: &B,
    operation: Operation,
    path: &VPath,
) -> impl FnOnce(Error) -> Error {
    let name = backend.info().name;
    move |error| error.as_part_of(operation, path).on(name)
}

/// Implements [`Backend::read_text`] by reading ranges up to the end of the window.
pub async fn text_by_read<B: Backend + ?Sized>(
    backend: &B,
    path: &VPath,
    options: TextOptions,
) -> Result<TextWindow> {
    let window: Result<_> = async {
        let mut scanner = WindowScanner::new(options)?;
        let mut start = 0;
        loop {
            let range = ReadOptions::default()
                .links(options.links)
                .range(start..start + CHUNK_BYTES);
            let chunk = backend.read(path, range).await?;
            start += chunk.data.len() as u64;
            let done = matches!(scanner.push(&chunk.data), Progress::Done);
            if done || chunk.data.is_empty() || start >= chunk.size {
                return Ok(scanner.finish()?);
            }
        }
    }
    .await;
    window.map_err(failed(backend, Operation::ReadText, path))
}

/// Applies edits to a file's bytes, following the contract of [`Backend::edit`].
///
/// # Errors
///
/// `Conflict` if [`EditOptions::expected`] does not hold, `NotText` if the bytes
/// are not UTF-8, `TooLarge` over the limits, `InvalidInput` as for
/// [`text::apply`].
pub fn edit_bytes(
    content: &[u8],
    edits: &[Edit],
    options: &EditOptions,
) -> Result<(Bytes, EditOutcome)> {
    if edits.len() > EDITS {
        return Err(Error::too_large(format!(
            "{} edits are more than the {EDITS} of one call; split them",
            edits.len()
        )));
    }
    if content.len() as u64 > EDIT_BYTES {
        return Err(Error::too_large(format!(
            "the file has {} bytes, more than the {EDIT_BYTES} that edit rewrites; write the whole file instead",
            content.len()
        )));
    }
    if let Some(expected) = options.expected
        && expected != ContentHash::of(content)
    {
        return Err(Error::conflict());
    }
    let text = str::from_utf8(content).map_err(|error| {
        Error::new(
            ErrorKind::NotText,
            "the file is not UTF-8 text, so editing could damage it; write it as bytes instead",
        )
        .with_source(error)
    })?;
    let applied = text::apply(text, edits)?;
    let bytes = Bytes::from(applied.text);
    let outcome = EditOutcome::new(
        applied.replacements,
        applied.first_line,
        bytes.len() as u64,
        ContentHash::of(&bytes),
    );
    Ok((bytes, outcome))
}

/// Implements [`Backend::edit`] by reading the file and writing it if it is unchanged;
/// `Conflict` if it keeps changing.
pub async fn edit_by_write<B: Backend + ?Sized>(
    backend: &B,
    path: &VPath,
    edits: &[Edit],
    options: EditOptions,
) -> Result<EditOutcome> {
    let edited: Result<_> = async {
        let mut attempts = EDIT_ATTEMPTS;
        loop {
            let read = ReadOptions::default()
                .links(options.links)
                .max_bytes(EDIT_BYTES);
            let before = backend.read(path, read).await?.data;
            let (after, outcome) = edit_bytes(&before, edits, &options)?;
            let write = WriteOptions::default()
                .links(options.links)
                .mode(WriteMode::IfUnchanged(ContentHash::of(&before)));
            match backend.write(path, after.into(), write).await {
                Ok(_) => return Ok(outcome),
                Err(error) if error.kind() == ErrorKind::Conflict && attempts > 1 => attempts -= 1,
                Err(error) => return Err(error),
            }
        }
    }
    .await;
    edited.map_err(failed(backend, Operation::Edit, path))
}

/// Refuses to delete or move the working directory or one of its parents.
///
/// # Errors
///
/// `InvalidInput`.
pub fn refuse_working_dir(path: &VPath, working_dir: &VPath) -> Result<()> {
    if working_dir.starts_with(path) {
        return Err(Error::contains_working_dir());
    }
    Ok(())
}

/// Refuses to move or copy something onto or into itself.
///
/// # Errors
///
/// `InvalidInput`.
pub fn refuse_into_itself(from: &VPath, to: &VPath) -> Result<()> {
    if to.starts_with(from) {
        return Err(Error::into_itself());
    }
    Ok(())
}

/// Checks that something may be moved or copied to the path of `existing`.
///
/// # Errors
///
/// `AlreadyExists`, unless nothing exists there or a file may replace a file.
pub fn check_destination(source: &Entry, existing: Option<&Entry>, overwrite: bool) -> Result<()> {
    match existing {
        None => Ok(()),
        Some(existing) if existing.is_dir() || source.is_dir() => {
            Err(Error::directory_at_destination())
        }
        Some(_) if overwrite => Ok(()),
        Some(_) => Err(Error::already_exists()),
    }
}

/// Implements [`Backend::copy`] by reading and writing, where symbolic links cannot exist.
///
/// Two concurrent copies of directories to the same destination may mix.
pub async fn copy_by_read<B: Backend + ?Sized>(
    backend: &B,
    from: &VPath,
    to: &VPath,
    options: CopyOptions,
) -> Result<()> {
    let copied = copy_tree(backend, from, to, options).await;
    copied.map_err(failed(backend, Operation::Copy, from))
}

async fn copy_tree<B: Backend + ?Sized>(
    backend: &B,
    from: &VPath,
    to: &VPath,
    options: CopyOptions,
) -> Result<()> {
    refuse_into_itself(from, to)?;
    let stat = StatOptions::default().links(options.links);
    let source = backend.stat(from, stat).await?;
    if source.is_dir() && !options.recursive {
        return Err(Error::needs_recursive_copy());
    }
    let existing = Error::none_if_missing(backend.stat(to, stat).await)?;
    check_destination(&source, existing.as_ref(), options.overwrite)?;
    let mut pending = vec![source];
    while let Some(entry) = pending.pop() {
        let target = entry.path.rebase(from, to)?;
        if entry.is_dir() {
            let create = CreateDirOptions::default().links(options.links);
            backend.create_dir(&target, create).await?;
            let all = LsOptions::default().links(options.links).limit(usize::MAX);
            pending.extend(backend.ls(&entry.path, all).await?.entries);
        } else {
            let content = read_all(backend, &entry.path, options.links).await?;
            let mode = if options.overwrite {
                WriteMode::Overwrite
            } else {
                WriteMode::CreateNew
            };
            let write = WriteOptions::default().links(options.links).mode(mode);
            backend.write(&target, content.into(), write).await?;
        }
    }
    Ok(())
}

pub(super) async fn read_all<B: Backend + ?Sized>(
    backend: &B,
    path: &VPath,
    links: Links,
) -> Result<Bytes> {
    let whole = ReadOptions::default().links(links).max_bytes(u64::MAX);
    Ok(backend.read(path, whole).await?.data)
}

/// Implements [`Backend::rename`] by copying and deleting, where symbolic links cannot exist.
///
/// The source is deleted only after the copy is complete. Two concurrent moves of
/// the same source may both succeed.
pub async fn rename_by_copy<B: Backend + ?Sized>(
    backend: &B,
    from: &VPath,
    to: &VPath,
    options: RenameOptions,
) -> Result<()> {
    let moved: Result<_> = async {
        refuse_into_itself(from, to)?;
        refuse_working_dir(from, &backend.working_dir())?;
        let copy = CopyOptions::default()
            .links(options.links)
            .overwrite(options.overwrite)
            .recursive(true);
        copy_tree(backend, from, to, copy).await?;
        let delete = DeleteOptions::default()
            .links(options.links)
            .recursive(true);
        backend.delete(from, delete).await
    }
    .await;
    moved.map_err(failed(backend, Operation::Rename, from))
}
