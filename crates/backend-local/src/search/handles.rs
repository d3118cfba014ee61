//! Opens entries for a search: relative to a directory handle, without
//! following links and without blocking on a FIFO or a device.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use backend_core::{Error, Result};
use rustix::fs::{FileType, OFlags, Stat, fstat};
use rustix::io::Errno;

use crate::fs::{LIST, READ, errno, open_at};

/// Opens the directory `name` in `parent` for listing.
pub(super) fn open_directory(parent: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    open_at(parent, OsStr::new(name), LIST | OFlags::NOFOLLOW)
}

/// Opens the regular file `name` in `directory` for reading.
pub(super) fn open_file(directory: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    open_at(directory, OsStr::new(name), READ | OFlags::NOFOLLOW)
}

/// Returns the metadata of an open file, which must be a regular one.
pub(super) fn stat_regular(file: impl AsFd) -> rustix::io::Result<Stat> {
    let stat = fstat(file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(stat),
        _ => Err(Errno::INVAL),
    }
}

/// Returns an error that concerns one entry, which is then skipped. If this
/// process can open no more files, that is not about the entry and ends the
/// search, which would otherwise silently miss most results.
pub(super) fn about_entry(error: Errno) -> Result<Errno> {
    match error {
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => Err(errno::error(error)),
        error => Ok(error),
    }
}

/// Converts an error of the file that the caller named.
pub(super) fn failed(error: io::Error) -> Error {
    match Errno::from_io_error(&error) {
        // Returned by `stat_regular`.
        Some(Errno::INVAL) => Error::not_a_file(),
        Some(error) => errno::error(error),
        None => Error::unavailable("it cannot be read; check the file system").with_source(error),
    }
}
