//! Counting all bytes of a session's files.

use std::path::Path;

use backend_core::{Error, Result};

use super::blocking::from_io;
use crate::disk::{self, Unmeasured};

/// Returns the bytes of all regular files beneath `directory`.
///
/// # Errors
///
/// `TooLarge` if directories are nested more deeply than paths can name; `PermissionDenied`
/// if one cannot be read. Bytes in such places would count for nothing otherwise.
pub(super) fn measure(directory: &Path) -> Result<u64> {
    let measured = disk::measure(directory);
    match measured.unmeasured {
        None => Ok(measured.bytes),
        Some(Unmeasured::TooDeep) => Err(Error::too_large(
            "directories are nested too deeply to be measured; remove the deepest",
        )),
        Some(Unmeasured::Unreadable(error)) => Err(from_io(error)),
    }
}
