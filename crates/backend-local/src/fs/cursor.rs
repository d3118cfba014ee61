//! [`Cursor`]: walks down into a tree of any depth and up again, with few open
//! handles.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

use backend_core::Result;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::fs::errno;
use crate::fs::list::LIST;
use crate::fs::resolve::open_at;

/// The number of directories kept open on the way down. Those further up are
/// opened again on the way back.
const OPEN: usize = 16;

/// The device and inode number, which identify a directory while it exists.
pub(crate) type Identity = (u64, u64);

pub(crate) fn identity(directory: impl AsFd) -> Result<Identity> {
    let found = rustix::fs::fstat(directory).map_err(errno::error)?;
    Ok((found.st_dev, found.st_ino))
}

/// Whether a directory is `top` or lies somewhere in it.
pub(crate) fn lies_in(directory: &OwnedFd, top: Identity) -> Result<bool> {
    let mut here = identity(directory)?;
    let mut handle: Option<OwnedFd> = None;
    loop {
        if here == top {
            return Ok(true);
        }
        // `..` is only compared. Nothing is opened through it but the next
        // `..`.
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let above = match open_at(
            handle.as_ref().unwrap_or(directory),
            OsStr::new(".."),
            flags,
        ) {
            Ok(above) => above,
            // A directory that may not be searched is not one of the backend's.
            Err(Errno::ACCESS | Errno::PERM) => return Ok(false),
            Err(error) => return Err(errno::error(error)),
        };
        let next = identity(&above)?;
        if next == here {
            return Ok(false);
        }
        (here, handle) = (next, Some(above));
    }
}

/// The current directory in a tree, open for listing, and the path to it.
#[derive(Debug)]
pub(crate) struct Cursor {
    current: OwnedFd,
    /// The directories above it that are still open, the nearest last.
    above: VecDeque<OwnedFd>,
    /// All directories on the path.
    way: Vec<Identity>,
}

impl Cursor {
    /// Starts at a directory that is open for listing.
    pub(crate) fn new(directory: OwnedFd) -> Result<Self> {
        Ok(Self {
            way: vec![identity(&directory)?],
            current: directory,
            above: VecDeque::new(),
        })
    }

    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.current
    }

    /// Enters `name`. The inner error says why it cannot be listed.
    pub(crate) fn enter(&mut self, name: &OsStr) -> Result<Result<(), Errno>> {
        let directory = match open_at(&self.current, name, LIST | OFlags::NOFOLLOW) {
            Ok(directory) => directory,
            Err(error) => return Ok(Err(error)),
        };
        self.way.push(identity(&directory)?);
        let above = std::mem::replace(&mut self.current, directory);
        self.above.push_back(above);
        if self.above.len() >= OPEN {
            self.above.pop_front();
        }
        Ok(Ok(()))
    }

    /// Goes back up to the directory it came from. Fails if the current one has
    /// been moved elsewhere.
    pub(crate) fn leave(&mut self) -> Result<()> {
        self.way.pop();
        self.current = match self.above.pop_back() {
            Some(above) => above,
            None => {
                let above = open_at(&self.current, OsStr::new(".."), LIST);
                let above = above.map_err(errno::error)?;
                // `..` is only trusted if it is the directory the cursor came from.
                if self.way.last() != Some(&identity(&above)?) {
                    return Err(errno::keeps_changing());
                }
                above
            }
        };
        Ok(())
    }
}
