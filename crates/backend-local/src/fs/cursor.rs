//! [`Cursor`]: down into a tree and up again, however deep, with few handles.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

use backend_core::{Error, Result};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::fs::errno;
use crate::fs::list::LIST;
use crate::fs::resolve::open_at;

/// Directories kept open on the way down. What lies further up is opened again
/// on the way back.
const OPEN: usize = 16;

/// What tells one directory from another while it is there.
pub(crate) type Identity = (u64, u64);

/// The identity of an open directory.
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
        // `..` is looked at and never gone through.
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let above = match open_at(
            handle.as_ref().unwrap_or(directory),
            OsStr::new(".."),
            flags,
        ) {
            Ok(above) => above,
            // Where we may not look there is nothing of ours.
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

/// A directory in a tree, open for listing, and the way to it.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// The deepest directories of the way, the current one last.
    open: VecDeque<OwnedFd>,
    /// All directories of the way.
    way: Vec<Identity>,
}

impl Cursor {
    /// Begins at a directory that is open for listing.
    pub(crate) fn new(directory: OwnedFd) -> Result<Self> {
        let way = vec![identity(&directory)?];
        Ok(Self {
            open: VecDeque::from([directory]),
            way,
        })
    }

    /// The current directory.
    pub(crate) fn directory(&self) -> Result<&OwnedFd> {
        self.open
            .back()
            .ok_or_else(|| Error::internal("a walk has left its tree"))
    }

    /// Goes down; the inner error is why `name` cannot be listed.
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

    /// Goes up again, to the very directory it came from.
    ///
    /// # Errors
    ///
    /// `Unavailable` if somebody has moved the current directory elsewhere.
    pub(crate) fn leave(&mut self) -> Result<()> {
        self.way.pop();
        let Some(left) = self.open.pop_back() else {
            return Err(Error::internal("a walk has left its tree"));
        };
        if self.open.is_empty() {
            let above = open_at(&left, OsStr::new(".."), LIST).map_err(errno::error)?;
            // `..` is only believed if it is where we came from.
            if self.way.last() != Some(&identity(&above)?) {
                return Err(errno::unsteady());
            }
            self.open.push_back(above);
        }
        Ok(())
    }
}
