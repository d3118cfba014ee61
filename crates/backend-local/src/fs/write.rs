//! Writing, editing and creating directories.
//!
//! A write goes to a temporary file first, which is then moved to its final
//! name in one step. Missing directories are created only then, so a write that
//! fails or is dropped half-way leaves nothing behind.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

use backend_core::derived::edit_bytes;
use backend_core::limits::{EDIT_ATTEMPTS, EDIT_BYTES, READ_BYTES};
use backend_core::ops::{
    ContentHash, ContentHasher, CreateDirOptions, EditOptions, EditOutcome, Links, WriteMode,
    WriteOptions, WriteOutcome,
};
use backend_core::{Edit, Error, ErrorKind, Result, VPath};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use crate::cancel::CancelFlag;
use crate::fs::errno;
use crate::fs::freeing::retry_when_freed;
use crate::fs::list::LIST;
use crate::fs::locks::PathGuard;
use crate::fs::read::{BLOCK_BYTES, READ, hole_at, read_all, regular, size_of};
use crate::fs::resolve::{
    DIRECTORY, LastLink, ResolvedEntry, is_directory, kind_of, open_at, stat_at,
};
use crate::fs::rooted::RootedFs;
use crate::fs::temp_file::{Attributes, IfExists, TempFile};

/// A write in progress. Dropping it discards it.
#[derive(Debug)]
pub(crate) struct PendingWrite {
    target: ResolvedEntry,
    temporary: TempFile,
    options: WriteOptions,
    hasher: ContentHasher,
    size: u64,
}

/// The entry that must be found at a path for it to be replaced.
enum Expected<'a> {
    /// Anything. `true` if an entry was there when the path was resolved.
    Anything(bool),
    Nothing,
    Content(ContentHash),
    /// The same file that was read.
    File(&'a Stat),
}

impl PendingWrite {
    /// Appends bytes. May wait for the disk.
    pub(crate) fn append(&mut self, fs: &RootedFs, content: &[u8]) -> Result<()> {
        let offset = self.size;
        self.size = offset.saturating_add(content.len() as u64);
        fs.check_size(self.size)?;
        self.hasher.update(content);
        self.temporary.write_at(content, offset)
    }
}

impl RootedFs {
    pub(crate) fn begin_write(&self, path: &VPath, options: WriteOptions) -> Result<PendingWrite> {
        self.writable()?;
        let target = self.resolve_entry(path, options.links, LastLink::Follow)?;
        begin_write_at(target, options)
    }

    /// Moves a write's file to its final name.
    pub(crate) fn finish_write(
        &self,
        pending: PendingWrite,
        cancel: &CancelFlag,
    ) -> Result<WriteOutcome> {
        self.finish_write_with(pending, None, cancel)
    }

    /// [`finish_write`](Self::finish_write), if the lock of the path may be held already.
    fn finish_write_with(
        &self,
        mut pending: PendingWrite,
        held: Option<PathGuard<'_>>,
        cancel: &CancelFlag,
    ) -> Result<WriteOutcome> {
        let (target, options) = (&pending.target, pending.options);
        if options.durable {
            pending.temporary.sync()?;
        }
        let expected = match options.mode {
            WriteMode::Overwrite => Expected::Anything(target.found.is_some()),
            WriteMode::CreateNew => Expected::Nothing,
            WriteMode::IfUnchanged(hash) => Expected::Content(hash),
        };
        let name = target
            .name
            .as_deref()
            .ok_or_else(|| options.mode.on_directory())?;
        let made = make_directories(target, options.durable)?;
        let directory = made.as_ref().unwrap_or(&target.directory);
        let held = match held {
            Some(held) => held,
            None => self.locks.hold(&[(directory, name)])?,
        };
        let created = replace(&mut pending.temporary, directory, name, &expected, cancel)?;
        drop(held);
        if options.durable {
            sync_directory(directory)?;
        }
        let hash = pending.hasher.finish();
        Ok(WriteOutcome::new(created, pending.size, hash))
    }

    /// [`Backend::write`](backend_core::Backend::write) of bytes in memory.
    pub(crate) fn write(
        &self,
        path: &VPath,
        content: &[u8],
        options: WriteOptions,
        cancel: &CancelFlag,
    ) -> Result<WriteOutcome> {
        let mut pending = self.begin_write(path, options)?;
        pending.append(self, content)?;
        self.finish_write(pending, cancel)
    }

    /// [`write`](Self::write) of little content to a small file or none, if nothing but
    /// the local disk can make it wait. `None` means that it must be done elsewhere.
    pub(crate) fn write_near(
        &self,
        path: &VPath,
        content: &[u8],
        options: WriteOptions,
    ) -> Option<Result<WriteOutcome>> {
        if self.read_only || options.durable || content.len() > BLOCK_BYTES {
            return None;
        }
        let target = self.resolve_near(path, options.links)?;
        let held = self
            .locks
            .try_hold(&target.directory, target.name.as_deref()?)?;
        let written = begin_write_at(target, options).and_then(|mut pending| {
            pending.append(self, content)?;
            self.finish_write_with(pending, Some(held), &CancelFlag::default())
        });
        Some(written)
    }

    /// [`edit`](Self::edit) of a small file, if nothing but the local disk can make it
    /// wait. `None` means that it must be done elsewhere.
    pub(crate) fn edit_near(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: &EditOptions,
    ) -> Option<Result<EditOutcome>> {
        if self.read_only {
            return None;
        }
        let target = self.resolve_near(path, options.links)?;
        target.found.as_ref()?;
        let held = self
            .locks
            .try_hold(&target.directory, target.name.as_deref()?)?;
        self.edit_entry(&target, held, edits, options, &CancelFlag::default())
            .transpose()
    }

    /// Returns a small regular file, or a free name, in a directory that is cached.
    fn resolve_near(&self, path: &VPath, links: Links) -> Option<ResolvedEntry> {
        let target = self.resolve_cached(path, links)?;
        let directory = rustix::fs::fstat(&target.directory).ok()?;
        // A file on which another one is mounted may be anywhere.
        let is_small = |found: &Stat| {
            kind_of(found) == FileType::RegularFile
                && found.st_dev == directory.st_dev
                && size_of(found) <= BLOCK_BYTES as u64
        };
        target.found.as_ref().is_none_or(is_small).then_some(target)
    }

    pub(crate) fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: &EditOptions,
        cancel: &CancelFlag,
    ) -> Result<EditOutcome> {
        self.writable()?;
        let mut attempts = EDIT_ATTEMPTS;
        loop {
            match self.try_edit(path, edits, options, cancel)? {
                Some(outcome) => return Ok(outcome),
                None if attempts > 1 => attempts -= 1,
                None => return Err(Error::conflict()),
            }
        }
    }

    /// Edits a file. Returns `None` if it changed meanwhile.
    fn try_edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: &EditOptions,
        cancel: &CancelFlag,
    ) -> Result<Option<EditOutcome>> {
        let target = self.resolve_entry(path, options.links, LastLink::Follow)?;
        let (Some(name), Some(found)) = (target.name.as_deref(), target.found.as_ref()) else {
            return Err(match target.found {
                Some(_) => Error::is_a_directory(),
                None => Error::not_found(),
            });
        };
        regular(found)?;
        let held = self.locks.hold(&[(&target.directory, name)])?;
        self.edit_entry(&target, held, edits, options, cancel)
    }

    /// Edits the file at `target`, whose lock is held. Returns `None` if it changed
    /// meanwhile.
    fn edit_entry(
        &self,
        target: &ResolvedEntry,
        held: PathGuard<'_>,
        edits: &[Edit],
        options: &EditOptions,
        cancel: &CancelFlag,
    ) -> Result<Option<EditOutcome>> {
        let Some(name) = target.name.as_deref() else {
            return Err(Error::is_a_directory());
        };
        let Some((file, found)) = open_regular(&target.directory, name)? else {
            return Ok(None);
        };
        if size_of(&found) > EDIT_BYTES {
            return Err(Error::too_large(format!(
                "the file has {} bytes, more than the {EDIT_BYTES} that edit rewrites; write the whole file instead",
                size_of(&found)
            )));
        }
        let before = read_all(&file, &found, EDIT_BYTES, cancel)?;
        // The last handle is closed where its blocks are freed.
        drop(file);
        let (after, outcome) = edit_bytes(&before, edits, options)?;
        self.check_size(after.len() as u64)?;
        let mut temporary = TempFile::create(&target.directory, Attributes::Replaced(&found))?;
        temporary.write_at(&after, 0)?;
        let expected = Expected::File(&found);
        let replaced = replace(&mut temporary, &target.directory, name, &expected, cancel);
        drop(held);
        match replaced {
            Ok(_) => Ok(Some(outcome)),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        self.writable()?;
        self.make_dir(path, options.links)
    }

    /// [`create_dir`](Self::create_dir) that also works in a read-only backend.
    pub(crate) fn make_dir(&self, path: &VPath, links: Links) -> Result<()> {
        let target = self.resolve_entry(path, links, LastLink::Follow)?;
        match (&target.name, &target.found) {
            (_, Some(found)) if is_directory(found) => Ok(()),
            (_, Some(_)) => Err(Error::exists_as_non_directory()),
            (None, None) => Ok(()),
            (Some(name), None) => {
                let made = make_directories(&target, false)?;
                match open_made(made.as_ref().unwrap_or(&target.directory), name, false) {
                    Err(error) if error.kind() == ErrorKind::NotADirectory => {
                        Err(Error::exists_as_non_directory())
                    }
                    made => made.map(drop),
                }
            }
        }
    }
}

/// Begins a write to an entry that was found.
fn begin_write_at(target: ResolvedEntry, options: WriteOptions) -> Result<PendingWrite> {
    check_target(&target, options.mode)?;
    let attributes = target
        .found
        .as_ref()
        .map_or(Attributes::New, Attributes::Replaced);
    let temporary = TempFile::create(&target.directory, attributes)?;
    Ok(PendingWrite {
        target,
        temporary,
        options,
        hasher: ContentHasher::new(),
        size: 0,
    })
}

/// Returns an error if a write cannot replace the entry, before anything is
/// written.
fn check_target(target: &ResolvedEntry, mode: WriteMode) -> Result<()> {
    match (&target.found, mode) {
        (Some(found), _) if is_directory(found) => Err(mode.on_directory()),
        (Some(_), WriteMode::CreateNew) => Err(Error::already_exists()),
        (Some(found), _) => regular(found),
        (None, WriteMode::IfUnchanged(_)) => Err(Error::conflict()),
        (None, _) => Ok(()),
    }
}

/// Creates the missing directories of `target`. Returns `None` if none are
/// missing.
pub(crate) fn make_directories(target: &ResolvedEntry, durable: bool) -> Result<Option<OwnedFd>> {
    let mut made: Option<OwnedFd> = None;
    for name in &target.missing {
        made = Some(open_made(
            made.as_ref().unwrap_or(&target.directory),
            name,
            durable,
        )?);
    }
    Ok(made)
}

/// Creates a directory if it does not exist, and opens it.
fn open_made(directory: &OwnedFd, name: &OsStr, durable: bool) -> Result<OwnedFd> {
    match retry_when_freed(|| rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o777))) {
        Ok(()) if durable => sync_directory(directory)?,
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(errno::error(error)),
    }
    match open_at(directory, name, DIRECTORY) {
        Err(Errno::LOOP) => Err(Error::not_a_directory()),
        opened => opened.map_err(errno::error),
    }
}

/// Waits until a directory's entries are on the disk.
fn sync_directory(directory: &OwnedFd) -> Result<()> {
    // `directory` is an `O_PATH` handle, which cannot be synced.
    let listed = open_at(directory, OsStr::new("."), LIST).map_err(errno::error)?;
    retry_on_intr(|| rustix::fs::fsync(&listed)).map_err(errno::error)
}

/// Opens a regular file. Returns `None` if it does not exist or has become a
/// link.
pub(crate) fn open_regular(directory: impl AsFd, name: &OsStr) -> Result<Option<(OwnedFd, Stat)>> {
    let file = match open_at(directory, name, READ | OFlags::NOFOLLOW) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
        Err(error) => return Err(errno::error(error)),
    };
    let found = rustix::fs::fstat(&file).map_err(errno::error)?;
    regular(&found)?;
    Ok(Some((file, found)))
}

/// Moves a file into place if the entry there is the expected one, and returns
/// whether the name was free. The caller holds the lock of the path.
fn replace(
    temporary: &mut TempFile,
    directory: &OwnedFd,
    name: &OsStr,
    expected: &Expected<'_>,
    cancel: &CancelFlag,
) -> Result<bool> {
    let seen = match expected {
        Expected::Anything(_) | Expected::Nothing => None,
        Expected::File(file) => Some(**file),
        Expected::Content(hash) => {
            let current = open_regular(directory, name)?;
            let (file, found) = current.ok_or_else(Error::conflict)?;
            if hash_of(&file, cancel)? != *hash {
                return Err(Error::conflict());
            }
            Some(found)
        }
    };
    if let Some(seen) = seen
        && !stat_at(directory, name)?.is_some_and(|found| is_same(&found, &seen))
    {
        return Err(Error::conflict());
    }
    cancel.check()?;
    let mut place = |if_exists| temporary.rename_to(directory, name, if_exists);
    let placed = match expected {
        Expected::Nothing => place(IfExists::Fail).map(|()| true),
        Expected::Anything(false) => match place(IfExists::Fail) {
            Err(Errno::EXIST) => place(IfExists::Replace).map(|()| false),
            placed => placed.map(|()| true),
        },
        _ => place(IfExists::Replace).map(|()| false),
    };
    placed.map_err(errno::error)
}

/// Whether a file is the one that was seen, with unchanged content.
fn is_same(found: &Stat, seen: &Stat) -> bool {
    let mark = |stat: &Stat| {
        let identity = (stat.st_dev, stat.st_ino, stat.st_size);
        let modified = (stat.st_mtime, stat.st_mtime_nsec);
        (identity, modified, (stat.st_ctime, stat.st_ctime_nsec))
    };
    mark(found) == mark(seen)
}

/// Hashes a file's content. Holes are content too, and hashing cannot skip
/// them: a file that occupies almost no disk space could take days.
fn hash_of(file: &OwnedFd, cancel: &CancelFlag) -> Result<ContentHash> {
    let mut hasher = ContentHasher::new();
    let mut block = vec![0; BLOCK_BYTES];
    let (mut offset, mut holes, mut looked) = (0, 0, 0);
    loop {
        cancel.check()?;
        let read = retry_on_intr(|| rustix::io::pread(file, &mut block[..], offset));
        let read = match read.map_err(errno::error)? {
            0 => return Ok(hasher.finish()),
            read => block.get(..read).unwrap_or_default(),
        };
        hasher.update(read);
        offset += read.len() as u64;
        if offset > looked && read.iter().all(|byte| *byte == 0) {
            let hole = hole_at(file, offset);
            looked = offset + hole;
            holes += hole;
        }
        if holes > READ_BYTES {
            return Err(Error::too_large(
                "it has holes that are too large to compare its content; write it without a comparison",
            ));
        }
    }
}
