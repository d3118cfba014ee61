//! Opens the start of a search, and the ignore files above it.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use backend_core::limits::IGNORE_FILE_BYTES;
use backend_core::ops::Links;
use backend_core::{Result, VPath};

use crate::fs::caller::Caller;
use crate::fs::errno;
use crate::fs::read::{READ, read_all, regular};
use crate::fs::resolve::{Last, is_directory};
use crate::fs::space::Space;
use crate::fs::write::open_regular;
use crate::search::Start;

impl Space {
    /// Opens the entry that a search starts from.
    ///
    /// # Errors
    ///
    /// Any error from opening the entry; `InvalidInput` if it is neither a file
    /// nor a directory.
    pub(crate) fn open_start(&self, path: &VPath, links: Links) -> Result<Start> {
        let opened: OwnedFd = self.open_path(path, READ, links)?;
        let found = rustix::fs::fstat(&opened).map_err(errno::error)?;
        if is_directory(&found) {
            return Ok(Start::Directory(opened, path.clone()));
        }
        regular(&found)?;
        Ok(Start::File(opened, path.clone()))
    }

    /// Reads an ignore file above the start of a search. Returns `None` if
    /// there is none in this space. Links are not followed.
    pub(crate) fn read_above(&self, path: &VPath) -> Option<Vec<u8>> {
        let spot = self.spot(path, Links::Follow, Last::Keep).ok()?;
        let name: &OsStr = spot.name.as_deref()?;
        spot.found?;
        let (file, found) = open_regular(&spot.directory, name).ok()??;
        read_all(&file, &found, IGNORE_FILE_BYTES as u64, &Caller::default()).ok()
    }
}
