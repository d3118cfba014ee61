//! Copying a file or a whole tree.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use backend_core::derived::{check_destination, refuse_into_itself};
use backend_core::limits::{PATH_BYTES, PATH_DEPTH};
use backend_core::ops::CopyOptions;
use backend_core::{Error, Quoted, Result, VPath};
use rustix::fs::{FileType, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps};
use rustix::io::{Errno, retry_on_intr};

use crate::cancel::CancelFlag;
use crate::fs::cursor::{Cursor, identity, lies_in};
use crate::fs::errno;
use crate::fs::list::{LIST, each_name, entry, is_temporary};
use crate::fs::read::{BLOCK_BYTES, size_of};
use crate::fs::resolve::{LastLink, ResolvedEntry, is_directory, kind_of, open_at, stat_at};
use crate::fs::rooted::RootedFs;
use crate::fs::temp_file::{Attributes, IfExists, TempFile, set_mode};
use crate::fs::write::{make_directories, open_regular};

/// Bytes that the kernel copies per call.
const COPY_BYTES: usize = 16 * 1024 * 1024;

/// The checked source and destination of a move or a copy.
pub(crate) struct Endpoints {
    pub(crate) source: ResolvedEntry,
    pub(crate) found: Stat,
    pub(crate) target: ResolvedEntry,
    pub(crate) if_exists: IfExists,
}

#[derive(Clone, Copy)]
pub(crate) struct Job<'c> {
    pub(crate) cancel: &'c CancelFlag,
    /// Whether the source is deleted afterwards, so the copy keeps its times.
    pub(crate) moved: bool,
}

impl RootedFs {
    /// Resolves the source and destination of a move or a copy and checks them
    /// against each other.
    pub(crate) fn endpoints(
        &self,
        from: &VPath,
        to: &VPath,
        options: &CopyOptions,
    ) -> Result<Endpoints> {
        let source = self.resolve_entry(from, options.links, LastLink::Keep)?;
        let found = source.found.ok_or_else(Error::not_found)?;
        if is_directory(&found) && !options.recursive {
            return Err(Error::needs_recursive_copy());
        }
        let target = self.resolve_entry(to, options.links, LastLink::Keep)?;
        if is_same_entry(&source, &target)? {
            return Err(Error::into_itself());
        }
        let existing = target.found.as_ref().map(|found| entry(to.clone(), found));
        let described = entry(from.clone(), &found);
        check_destination(&described, existing.as_ref(), options.overwrite)?;
        if is_directory(&found) && lies_in(&target.directory, (found.st_dev, found.st_ino))? {
            return Err(Error::into_itself());
        }
        let if_exists = if options.overwrite {
            IfExists::Replace
        } else {
            IfExists::Fail
        };
        Ok(Endpoints {
            source,
            found,
            target,
            if_exists,
        })
    }

    pub(crate) fn copy(
        &self,
        from: &VPath,
        to: &VPath,
        options: &CopyOptions,
        cancel: &CancelFlag,
    ) -> Result<()> {
        self.writable()?;
        refuse_into_itself(from, to)?;
        let endpoints = self.endpoints(from, to, options)?;
        let moved = false;
        self.copy_endpoints(&endpoints, to, Job { cancel, moved })
    }

    /// Copies the entry at the source to the destination.
    pub(crate) fn copy_endpoints(
        &self,
        endpoints: &Endpoints,
        to: &VPath,
        job: Job<'_>,
    ) -> Result<()> {
        let Endpoints {
            source,
            found,
            target,
            if_exists,
        } = endpoints;
        // A root directory has no name; `.` opens it.
        let name = source.name.as_deref().unwrap_or(OsStr::new("."));
        let tree = match kind_of(found) {
            FileType::Directory => {
                let top = open_at(&source.directory, name, LIST | OFlags::NOFOLLOW);
                let top = top.map_err(errno::error)?;
                check_inside(&top, to, true)?;
                Some(top)
            }
            FileType::RegularFile | FileType::Symlink => None,
            _ => return Err(Error::not_a_file()),
        };
        let new_name = target.name.as_deref().ok_or_else(Error::already_exists)?;
        let made = make_directories(target, false)?;
        let directory = made.as_ref().unwrap_or(&target.directory);
        match tree {
            Some(top) => copy_tree(top, directory, new_name, job),
            None => {
                let ready = prepare(&source.directory, name, directory, job)?;
                let mut ready = ready.ok_or_else(Error::not_found)?;
                let _held = self.locks.hold(&[(directory, new_name)])?;
                job.cancel.check()?;
                ready
                    .rename_to(directory, new_name, *if_exists)
                    .map_err(errno::error)
            }
        }
    }
}

/// Whether two locations are the same name in the same directory.
fn is_same_entry(one: &ResolvedEntry, two: &ResolvedEntry) -> Result<bool> {
    Ok(one.name == two.name
        && two.missing.is_empty()
        && identity(&one.directory)? == identity(&two.directory)?)
}

/// Checks that everything inside a directory has a valid path after a move to
/// `to`. With `copied`, also checks that all of it can be copied.
pub(crate) fn check_inside(top: &OwnedFd, to: &VPath, copied: bool) -> Result<()> {
    // The handle is read again later, from the start.
    let top = open_at(top, OsStr::new("."), LIST).map_err(errno::error)?;
    let mut cursor = Cursor::new(top)?;
    let depth = to.components().count();
    let mut lengths = vec![to.as_str().len()];
    let mut levels = vec![list_directories(&cursor, depth + 1, &lengths, copied)?];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.pop() else {
            levels.pop();
            lengths.pop();
            if !levels.is_empty() {
                cursor.leave()?;
            }
            continue;
        };
        match cursor.enter(&name)? {
            Ok(()) => {
                let above = lengths.last().copied().unwrap_or_default();
                lengths.push(above + 1 + name.len());
                let depth = depth + lengths.len();
                levels.push(list_directories(&cursor, depth, &lengths, copied)?);
            }
            // It moves with the rest, although it cannot be listed.
            Err(Errno::ACCESS) if !copied => {}
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {}
            Err(error) => return Err(errno::error(error)),
        }
    }
    Ok(())
}

/// Checks all entries of the current directory and returns the directories
/// among them.
fn list_directories(
    cursor: &Cursor,
    depth: usize,
    lengths: &[usize],
    copied: bool,
) -> Result<Vec<OsString>> {
    let above = lengths.last().copied().unwrap_or_default();
    let directory = cursor.directory();
    let mut directories = Vec::new();
    each_name(directory, |name, kind| {
        if is_temporary(name) {
            return Ok(());
        }
        if depth > PATH_DEPTH || above + 1 + name.len() > PATH_BYTES {
            return Err(Error::too_deep_inside());
        }
        match real_kind(directory, name, kind)? {
            Some(FileType::Directory) => directories.push(name.to_owned()),
            Some(FileType::RegularFile | FileType::Symlink) | None => {}
            Some(_) if copied => {
                let name = Quoted::new(&name.to_string_lossy());
                return Err(Error::invalid_input(format!(
                    "{name} inside it is a FIFO, a socket or a device, which cannot be copied; delete it or copy the rest"
                )));
            }
            Some(_) => {}
        }
        Ok(())
    })?;
    Ok(directories)
}

/// Returns the kind of an entry, also if the listing did not report it, or
/// `None` if the entry is gone.
fn real_kind(directory: &OwnedFd, name: &OsStr, told: FileType) -> Result<Option<FileType>> {
    match told {
        FileType::Unknown => Ok(stat_at(directory, name)?.map(|found| kind_of(&found))),
        told => Ok(Some(told)),
    }
}

struct Level {
    source: Stat,
    /// Its subdirectories that are still to be copied.
    left: Vec<OsString>,
}

/// Copies a directory that is open for listing to a free name.
fn copy_tree(top: OwnedFd, directory: &OwnedFd, name: &OsStr, job: Job<'_>) -> Result<()> {
    job.cancel.check()?;
    let new_top = make_private(directory, name)?;
    let (mut from, mut to) = (Cursor::new(top)?, Cursor::new(new_top)?);
    let mut levels = vec![copy_level(&from, &to, job)?];
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.left.pop() {
            match from.enter(&name)? {
                Ok(()) => {}
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => continue,
                Err(error) => return Err(errno::error(error)),
            }
            make_private(to.directory(), &name)?;
            to.enter(&name)?.map_err(errno::error)?;
            levels.push(copy_level(&from, &to, job)?);
            continue;
        }
        // Done last, because a read-only directory cannot be filled.
        set_mode(to.directory(), &level.source)?;
        levels.pop();
        if !levels.is_empty() {
            from.leave()?;
            to.leave()?;
        }
    }
    Ok(())
}

/// Creates a directory that no other user can access yet, and opens it.
fn make_private(directory: &OwnedFd, name: &OsStr) -> Result<OwnedFd> {
    rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o700)).map_err(errno::error)?;
    open_at(directory, name, LIST | OFlags::NOFOLLOW).map_err(errno::error)
}

/// Copies the entries of a directory, except directories.
fn copy_level(from: &Cursor, to: &Cursor, job: Job<'_>) -> Result<Level> {
    let (from, to) = (from.directory(), to.directory());
    let source = rustix::fs::fstat(from).map_err(errno::error)?;
    let mut left = Vec::new();
    each_name(from, |name, kind| {
        if is_temporary(name) {
            return Ok(());
        }
        match real_kind(from, name, kind)? {
            Some(FileType::Directory) => left.push(name.to_owned()),
            // Entries that are gone by now are skipped.
            Some(_) => {
                if let Some(mut ready) = prepare(from, name, to, job)? {
                    ready
                        .rename_to(to, name, IfExists::Fail)
                        .map_err(errno::error)?;
                }
            }
            None => {}
        }
        Ok(())
    })?;
    Ok(Level { source, left })
}

/// Creates the copy of a file or a link under a temporary name. Returns `None`
/// if the source is gone.
fn prepare(from: &OwnedFd, name: &OsStr, to: &OwnedFd, job: Job<'_>) -> Result<Option<TempFile>> {
    match rustix::fs::readlinkat(from, name, Vec::new()) {
        Ok(text) => return TempFile::link(to, &text).map(Some),
        Err(Errno::INVAL) => {}
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(errno::error(error)),
    }
    let Some((file, found)) = open_regular(from, name)? else {
        return Ok(None);
    };
    let temporary = TempFile::create(to, Attributes::Copied(&found))?;
    copy_content(&file, &temporary, job.cancel)?;
    if job.moved {
        keep_times(&temporary, &found)?;
    }
    Ok(Some(temporary))
}

fn keep_times(temporary: &TempFile, source: &Stat) -> Result<()> {
    let time = |seconds, nanos: u64| Timespec {
        tv_sec: seconds,
        // Always less than 1,000,000,000.
        tv_nsec: nanos as _,
    };
    let times = Timestamps {
        last_access: time(source.st_atime, source.st_atime_nsec),
        last_modification: time(source.st_mtime, source.st_mtime_nsec),
    };
    rustix::fs::futimens(&temporary.file, &times).map_err(errno::error)
}

/// Copies a file's content, by the kernel if possible. Holes stay holes: a
/// sparse file can be larger than any disk.
fn copy_content(file: &OwnedFd, temporary: &TempFile, cancel: &CancelFlag) -> Result<()> {
    let mut block = Vec::new();
    let mut offset = 0;
    loop {
        let size = size_of(&rustix::fs::fstat(file).map_err(errno::error)?);
        match next_data(file, offset, size) {
            Some(data) => {
                let end = data.end;
                offset = copy_data(file, temporary, data, &mut block, cancel)?;
                if offset < end {
                    // There was less data than the file system reported.
                    break;
                }
            }
            None if offset < size => offset = size,
            // Files in /proc report no size, and others grow.
            None => match copy_block(file, temporary, offset, BLOCK_BYTES, &mut block)? {
                0 => break,
                copied => offset += copied,
            },
        }
        cancel.check()?;
    }
    retry_on_intr(|| rustix::fs::ftruncate(&temporary.file, offset)).map_err(errno::error)
}

/// Returns the next range of data in a file, or the whole rest if the file
/// system does not report holes.
fn next_data(file: &OwnedFd, offset: u64, size: u64) -> Option<Range<u64>> {
    let whole = || (offset < size).then_some(offset..size);
    let start = match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return None,
        Err(_) => return whole(),
    };
    match rustix::fs::seek(file, SeekFrom::Hole(start)) {
        Ok(end) if end > start => Some(start..end),
        _ => whole(),
    }
}

/// Copies one range, and returns the offset at which the file or the range
/// ended.
fn copy_data(
    file: &OwnedFd,
    temporary: &TempFile,
    data: Range<u64>,
    block: &mut Vec<u8>,
    cancel: &CancelFlag,
) -> Result<u64> {
    let mut offset = data.start;
    let mut kernel = true;
    while offset < data.end {
        cancel.check()?;
        let left = usize::try_from(data.end - offset).unwrap_or(usize::MAX);
        if kernel {
            let (mut from, mut to) = (offset, offset);
            let copied = retry_on_intr(|| {
                let target = temporary.file.as_fd();
                let (from, to) = (Some(&mut from), Some(&mut to));
                rustix::fs::copy_file_range(file, from, target, to, left.min(COPY_BYTES))
            });
            match copied {
                Ok(copied @ 1..) => offset += copied as u64,
                // The file ends here, the disk is full, or the kernel cannot copy
                // it. Reading and writing will show which.
                Ok(0) | Err(_) => kernel = false,
            }
            continue;
        }
        match copy_block(file, temporary, offset, left.min(BLOCK_BYTES), block)? {
            0 => break,
            copied => offset += copied,
        }
    }
    Ok(offset)
}

/// Copies at most `most` bytes, and returns the number copied.
fn copy_block(
    file: &OwnedFd,
    temporary: &TempFile,
    offset: u64,
    most: usize,
    block: &mut Vec<u8>,
) -> Result<u64> {
    block.resize(BLOCK_BYTES, 0);
    let place = block.get_mut(..most).unwrap_or_default();
    let read = retry_on_intr(|| rustix::io::pread(file, &mut *place, offset));
    let read = read.map_err(errno::error)?;
    temporary.write_at(block.get(..read).unwrap_or_default(), offset)?;
    Ok(read as u64)
}
