//! Opens the start of a search, and the ignore files above it.

use backend_core::limits::IGNORE_FILE_BYTES;
use backend_core::ops::Links;
use backend_core::{Result, VPath};

use crate::cancel::CancelFlag;
use crate::fs::errno;
use crate::fs::read::{READ, read_all, regular};
use crate::fs::resolve::{LastLink, is_directory};
use crate::fs::rooted::RootedFs;
use crate::fs::write::open_regular;
use crate::search::SearchRoot;

impl RootedFs {
    /// Opens the file or directory that a search starts from.
    pub(crate) fn open_search_root(&self, path: &VPath, links: Links) -> Result<SearchRoot> {
        let opened = self.open_path(path, READ, links)?;
        let found = rustix::fs::fstat(&opened).map_err(errno::error)?;
        if is_directory(&found) {
            return Ok(SearchRoot::Directory(opened, path.clone()));
        }
        regular(&found)?;
        Ok(SearchRoot::File(opened, path.clone()))
    }

    /// Reads an ignore file above the start of a search. Returns `None` if
    /// there is none in the backend's directories. Links are not followed.
    pub(crate) fn read_above(&self, path: &VPath) -> Option<Vec<u8>> {
        let target = self
            .resolve_entry(path, Links::Follow, LastLink::Keep)
            .ok()?;
        let name = target.name.as_deref()?;
        target.found?;
        let (file, found) = open_regular(&target.directory, name).ok()??;
        let most = IGNORE_FILE_BYTES as u64;
        read_all(&file, &found, most, &CancelFlag::default()).ok()
    }
}
