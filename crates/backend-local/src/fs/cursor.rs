//! [`Cursor`]: walks down into a tree of any depth and up again, with few open
//! handles.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

use backend_core::{Error, Result};
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
    /// The deepest directories on the path, the current one last.
    open: VecDeque<OwnedFd>,
    /// All directories on the path.
    way: Vec<Identity>,
}

impl Cursor {
    /// Starts at a directory that is open for listing.
    pub(crate) fn new(directory: OwnedFd) -> Result<Self> {
        let way = vec![identity(&directory)?];
        Ok(Self {
            open: VecDeque::from([directory]),
            way,
        })
    }

    pub(crate) fn directory(&self) -> Result<&OwnedFd> {
        self.open
            .back()
            .ok_or_else(|| Error::internal("a walk has left its tree"))
    }

    /// Enters `name`. The inner error says why it cannot be listed.
    pub(crate) fn enter(&mut self, name: &OsStr) -> Result<Result<(), Errno>> {
        let directory = match open_at(self.directory()?, name, LIST | OFlags::NOFOLLOW) {
            Ok(directory) => directory,
            Err(error) => return Ok(Err(error)),
        };
        self.way.push(identity(&directory)?);
        self.open.push_back(directory);
        if self.open.len() > OPEN {
            self.open.pop_front();
        }
        Ok(Ok(()))
    }

    /// Goes back up to the directory it came from. Fails if the current one has
    /// been moved elsewhere.
    pub(crate) fn leave(&mut self) -> Result<()> {
        self.way.pop();
        let Some(left) = self.open.pop_back() else {
            return Err(Error::internal("a walk has left its tree"));
        };
        if self.open.is_empty() {
            let above = open_at(&left, OsStr::new(".."), LIST).map_err(errno::error)?;
            // `..` is only trusted if it is the directory the cursor came from.
            if self.way.last() != Some(&identity(&above)?) {
                return Err(errno::keeps_changing());
            }
            self.open.push_back(above);
        }
        Ok(())
    }
}
