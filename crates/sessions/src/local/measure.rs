//! Counting the bytes of a directory through handles, so that no link is followed.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use backend_core::limits::PATH_DEPTH;
use backend_core::{Error, Result};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::blocking::from_io;

/// Returns the bytes of all regular files beneath `directory`.
///
/// # Errors
///
/// `TooLarge` if directories are nested more deeply than paths can name; `PermissionDenied`
/// if one cannot be read. Bytes in such places would count for nothing otherwise.
pub(super) fn measure(directory: &Path) -> Result<u64> {
    // Not `NOFOLLOW`: the path may be a handle in `/proc`.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty()).map_err(failed)?;
    let mut total = 0;
    add(opened, 0, &mut total)?;
    Ok(total)
}

fn add(directory: OwnedFd, depth: usize, total: &mut u64) -> Result<()> {
    if depth > PATH_DEPTH {
        return Err(Error::too_large(
            "directories are nested too deeply to be measured; remove the deepest",
        ));
    }
    for entry in Dir::read_from(&directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let found = rustix::fs::statat(directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
        let found = match found {
            Ok(found) => found,
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(failed(error)),
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {
                let size = u64::try_from(found.st_size).unwrap_or_default();
                *total = total.saturating_add(size);
            }
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                match rustix::fs::openat(directory.as_fd(), name, flags, Mode::empty()) {
                    Ok(inner) => add(inner, depth + 1, total)?,
                    // It is gone, or something else now.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(error) => return Err(failed(error)),
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn failed(error: Errno) -> Error {
    from_io(error.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_count_and_links_do_not() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().join("outside");
        let inside = place.path().join("inside");
        fs::create_dir_all(inside.join("a/b")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("large"), vec![0; 10_000]).unwrap();
        fs::write(inside.join("one"), vec![0; 100]).unwrap();
        fs::write(inside.join("a/b/two"), vec![0; 23]).unwrap();
        symlink(&outside, inside.join("link")).unwrap();
        symlink(outside.join("large"), inside.join("a/link")).unwrap();
        assert_eq!(measure(&inside).unwrap(), 123);
    }
}
