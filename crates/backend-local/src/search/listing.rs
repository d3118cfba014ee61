//! [`Listing`]: the entries of a directory, as a walk wants them.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use backend_core::ops::FileKind;
use backend_core::search::Child;
use rustix::fs::{AtFlags, FileType, RawDir, statat};
use rustix::io::Errno;

use super::handles::open_directory;
use crate::cancel::CancelFlag;

/// Bytes of directory entries read at once.
const LISTING_BYTES: usize = 32 * 1024;

/// An open directory and what is in it.
pub(super) struct Listing {
    pub(super) directory: OwnedFd,
    /// Its files and directories.
    pub(super) children: Vec<Child<()>>,
    /// The number of names in it that are not UTF-8.
    pub(super) not_utf8: u64,
}

/// A buffer for directory entries. It is allocated when it is needed.
#[derive(Default)]
pub(super) struct ListingBuffer(Vec<MaybeUninit<u8>>);

/// Opens and lists the directory `name` in `parent`.
pub(super) fn list_beneath(
    parent: &OwnedFd,
    name: &str,
    buffer: &mut ListingBuffer,
    stop: &CancelFlag,
) -> rustix::io::Result<Listing> {
    list(open_directory(parent, name)?, buffer, stop)
}

/// Lists an open directory.
pub(super) fn list(
    directory: OwnedFd,
    buffer: &mut ListingBuffer,
    stop: &CancelFlag,
) -> rustix::io::Result<Listing> {
    let mut children = Vec::new();
    let mut not_utf8 = 0;
    buffer.0.resize(LISTING_BYTES, MaybeUninit::uninit());
    let mut entries = RawDir::new(&directory, &mut buffer.0);
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Err(Errno::INTR) => continue,
            entry => entry?,
        };
        if stop.is_set() {
            break;
        }
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(name) = name.to_str() else {
            not_utf8 += 1;
            continue;
        };
        let kind = match entry.file_type() {
            FileType::Unknown => file_type(&directory, name),
            known => known,
        };
        // Entries of other kinds are never found or entered.
        match kind {
            FileType::RegularFile => children.push(Child::new(name, FileKind::File, ())),
            FileType::Directory => children.push(Child::new(name, FileKind::Directory, ())),
            _ => {}
        }
    }
    // Sorting sorted entries again is cheap, and this thread may not be the one that walks.
    Child::sort(&mut children);
    Ok(Listing {
        directory,
        children,
        not_utf8,
    })
}

/// Returns the type of an entry where the listing does not report it. If it
/// cannot be determined the entry counts as a file: opening it fails as well,
/// and is counted then.
fn file_type(directory: impl AsFd, name: &str) -> FileType {
    statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_or(FileType::RegularFile, |stat| {
        FileType::from_raw_mode(stat.st_mode)
    })
}
