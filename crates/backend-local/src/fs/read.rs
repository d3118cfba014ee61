//! Reading: bytes, ranges and windows of lines.
//!
//! A small file that is in the page cache is read on the caller's thread, in a
//! few microseconds and without waiting for a disk. Everything else goes to the
//! threads that may block.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};

use backend_core::limits::READ_BYTES;
use backend_core::ops::{ByteRange, FileBytes, Links, ReadOptions, TextOptions};
use backend_core::text::{Progress, TextWindow, WindowScanner};
use backend_core::{Error, Result, VPath};
use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, OFlags, SeekFrom, Stat};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};

use crate::cancel::CancelFlag;
use crate::fs::errno;
use crate::fs::resolve::kind_of;
use crate::fs::rooted::RootedFs;

/// Bytes read at a time.
pub(crate) const BLOCK_BYTES: usize = 64 * 1024;

/// The type of tmpfs.
const TMPFS: u64 = 0x0102_1994;

/// Flags that open any kind of file without blocking.
pub(crate) const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Returns an error for anything but a regular file.
pub(crate) fn regular(found: &Stat) -> Result<()> {
    match kind_of(found) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Error::is_a_directory()),
        _ => Err(Error::not_a_file()),
    }
}

/// Returns the size that the file system reports, which may be wrong.
pub(crate) fn size_of(found: &Stat) -> u64 {
    u64::try_from(found.st_size).unwrap_or_default()
}

/// Reads from `offset` until `data` has `limit` bytes or the file ends, and
/// returns whether it ended.
fn fill(
    file: impl AsFd,
    data: &mut Vec<u8>,
    mut offset: u64,
    limit: usize,
    cancel: &CancelFlag,
) -> Result<bool> {
    while data.len() < limit {
        cancel.check()?;
        if data.spare_capacity_mut().is_empty() {
            let more = (limit - data.len()).min(BLOCK_BYTES.max(data.len()));
            data.try_reserve(more).map_err(|source| {
                Error::too_large("there is no memory for so many bytes; read a range")
                    .with_source(source)
            })?;
        }
        let before = data.len();
        retry_on_intr(|| rustix::io::pread(file.as_fd(), spare_capacity(data), offset))
            .map_err(errno::error)?;
        let read = data.len() - before;
        if read == 0 {
            return Ok(true);
        }
        offset += read as u64;
    }
    Ok(false)
}

/// Returns the initial buffer capacity. One byte more than the reported size
/// shows the end without another read. Implausible sizes are ignored.
fn room(told: u64, limit: usize) -> usize {
    let told = usize::try_from(told.min(READ_BYTES)).unwrap_or(usize::MAX);
    told.saturating_add(1).min(limit)
}

/// Reads a whole file of at most `max_bytes`, or one byte more of a larger one.
pub(crate) fn read_all(
    file: impl AsFd,
    found: &Stat,
    max_bytes: u64,
    cancel: &CancelFlag,
) -> Result<Vec<u8>> {
    let limit = usize::try_from(max_bytes.saturating_add(1)).unwrap_or(usize::MAX);
    let mut data = Vec::with_capacity(room(size_of(found), limit));
    fill(file, &mut data, 0, limit, cancel)?;
    data.truncate(limit);
    Ok(data)
}

/// Reads the range in `options`. The size that the file system reports is only
/// used where nothing else is known: files in `/proc` report none, and others
/// grow and shrink while they are read.
fn read_range(
    file: &OwnedFd,
    found: &Stat,
    options: &ReadOptions,
    cancel: &CancelFlag,
) -> Result<FileBytes> {
    let told = size_of(found);
    let ByteRange { start, end, .. } = options.range;
    if told > 0 || start > end.unwrap_or(u64::MAX) {
        options.offsets(told)?;
    }
    let wanted = end.unwrap_or(u64::MAX).saturating_sub(start);
    let most = wanted.min(options.max_bytes.saturating_add(1));
    let limit = usize::try_from(most).unwrap_or(usize::MAX);
    let mut data = Vec::with_capacity(room(told.saturating_sub(start), limit));
    let ended = fill(file, &mut data, start, limit, cancel)?;
    data.truncate(limit);
    let reached = start.saturating_add(data.len() as u64);
    let size = if !ended {
        told.max(reached)
    } else if !data.is_empty() || start == 0 {
        reached
    } else {
        size_of(&rustix::fs::fstat(file).map_err(errno::error)?)
    };
    options.offsets(size)?;
    Ok(FileBytes::new(data.into(), size))
}

fn is_tmpfs(file: &OwnedFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type as u64 == TMPFS)
}

/// Returns the length of the hole at `offset`, which may be larger than any
/// disk, or 0 if the file system does not report holes.
pub(crate) fn hole_at(file: &OwnedFd, offset: u64) -> u64 {
    let end = match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(data) => data,
        Err(Errno::NXIO) => rustix::fs::fstat(file).map_or(offset, |found| size_of(&found)),
        Err(_) => offset,
    };
    end.saturating_sub(offset)
}

impl RootedFs {
    pub(crate) fn open_file(&self, path: &VPath, links: Links) -> Result<(OwnedFd, Stat)> {
        let file = self.open_path(path, READ, links)?;
        let found = rustix::fs::fstat(&file).map_err(errno::error)?;
        regular(&found)?;
        Ok((file, found))
    }

    /// Returns the content of a small file, if that takes no blocking.
    pub(crate) fn cached(&self, path: &VPath, links: Links) -> Option<Bytes> {
        let file = self.open_cached(path, READ, links)?;
        let found = rustix::fs::fstat(&file).ok()?;
        let size = usize::try_from(found.st_size).ok()?;
        if kind_of(&found) != FileType::RegularFile || !(1..=BLOCK_BYTES).contains(&size) {
            return None;
        }
        // One byte more than expected shows whether the file has grown.
        let mut data = vec![0; size + 1];
        let mut buffers = [IoSliceMut::new(&mut data)];
        let read = match rustix::io::preadv2(&file, &mut buffers, 0, ReadWriteFlags::NOWAIT) {
            // tmpfs does not take the flag, and its files are in memory.
            Err(Errno::OPNOTSUPP) if is_tmpfs(&file) => {
                rustix::io::pread(&file, &mut data, 0).ok()?
            }
            read => read.ok()?,
        };
        data.truncate(read);
        (read == size).then(|| data.into())
    }

    /// [`read_text`](Self::read_text), if that takes no blocking.
    pub(crate) fn read_text_cached(
        &self,
        path: &VPath,
        options: &TextOptions,
    ) -> Option<Result<TextWindow>> {
        let mut scanner = WindowScanner::new(*options).ok()?;
        let content = self.cached(path, options.links)?;
        scanner.push(&content);
        Some(scanner.finish().map_err(Error::from))
    }

    pub(crate) fn read(
        &self,
        path: &VPath,
        options: &ReadOptions,
        cancel: &CancelFlag,
    ) -> Result<FileBytes> {
        let (file, found) = self.open_file(path, options.links)?;
        read_range(&file, &found, options, cancel)
    }

    pub(crate) fn read_text(
        &self,
        path: &VPath,
        options: &TextOptions,
        cancel: &CancelFlag,
    ) -> Result<TextWindow> {
        let mut scanner = WindowScanner::new(*options)?;
        let (file, _) = self.open_file(path, options.links)?;
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        let mut offset = 0;
        loop {
            block.clear();
            let ended = fill(&file, &mut block, offset, BLOCK_BYTES, cancel)?;
            offset += block.len() as u64;
            if scanner.push(&block) == Progress::Done || ended {
                return Ok(scanner.finish()?);
            }
            if block.iter().all(|byte| *byte == 0) {
                let hole = hole_at(&file, offset);
                offset += hole;
                if scanner.push_zeros(hole) == Progress::Done {
                    return Ok(scanner.finish()?);
                }
            }
        }
    }
}
