//! Opens what a search meets: relative to a directory's handle, without
//! following a link and without waiting for a FIFO or a device.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use backend_core::{Error, ErrorKind, Result};
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;

/// Opens the directory `name` of `parent` for listing.
pub(super) fn open_directory(parent: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags =
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Opens the regular file `name` of `directory` for reading.
pub(super) fn open_file(directory: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty())
}

/// What the kernel says about an open file, which must be a regular one.
pub(super) fn stat_regular(file: impl AsFd) -> rustix::io::Result<Stat> {
    let stat = fstat(file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(stat),
        _ => Err(Errno::INVAL),
    }
}

/// Fills `buffer` until it is full or the file ends, and says how far.
pub(super) fn read_full(file: impl AsFd, buffer: &mut [u8]) -> rustix::io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match rustix::io::read(&file, rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Passes on what is wrong with one entry, which is then passed over. That this
/// process can open nothing more is not about the entry, and ends the search: it
/// would silently miss most of what it was to find.
pub(super) fn about_entry(error: Errno) -> Result<Errno> {
    match error {
        Errno::MFILE | Errno::NFILE => Err(Error::unavailable(
            "too many files are open; search again later, or raise the limit of open files",
        )
        .with_source(io::Error::from(error))),
        Errno::NOMEM => Err(
            Error::unavailable("the system is out of memory; search again later")
                .with_source(io::Error::from(error)),
        ),
        error => Ok(error),
    }
}

/// Why what the caller named cannot be searched.
pub(super) fn failed(error: io::Error) -> Error {
    let failed = match error.kind() {
        io::ErrorKind::NotFound => return Error::not_found(),
        io::ErrorKind::NotADirectory => return Error::not_a_directory(),
        io::ErrorKind::IsADirectory => return Error::is_a_directory(),
        io::ErrorKind::InvalidInput => {
            return Error::invalid_input("this is not a regular file; name one, or a directory");
        }
        io::ErrorKind::PermissionDenied => Error::new(
            ErrorKind::PermissionDenied,
            "the system does not let this process read it; change its permissions",
        ),
        _ => Error::unavailable("it cannot be read; look at the file system"),
    };
    failed.with_source(error)
}
