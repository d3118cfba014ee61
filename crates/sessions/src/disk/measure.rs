//! Counting the bytes of a tree.

use std::io;
use std::path::Path;

/// Why a part of a tree was not counted.
#[derive(Debug)]
#[cfg_attr(
    not(all(feature = "local", target_os = "linux")),
    allow(
        dead_code,
        reason = "only the quota of a single session needs all bytes"
    )
)]
pub(crate) enum Unmeasured {
    /// Its directories are nested more deeply than paths can name.
    TooDeep,
    /// A directory cannot be read.
    Unreadable(io::Error),
}

/// The bytes of a tree.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// The bytes of the regular files that were found.
    pub(crate) bytes: u64,
    /// Why some are missing, if any are.
    pub(crate) unmeasured: Option<Unmeasured>,
}

/// Counts the bytes of all regular files beneath `directory`.
pub(crate) fn measure(directory: &Path) -> Measured {
    let mut measured = Measured::default();
    imp::measure(directory, &mut measured);
    measured
}

impl Measured {
    fn miss(&mut self, why: Unmeasured) {
        self.unmeasured.get_or_insert(why);
    }

    fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Through handles, so that no link is followed.
#[cfg(unix)]
mod imp {
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::path::Path;

    use backend_core::limits::PATH_DEPTH;
    use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
    use rustix::io::Errno;

    use super::{Measured, Unmeasured};

    pub(super) fn measure(directory: &Path, measured: &mut Measured) {
        // Not `NOFOLLOW`: the path may be a handle in `/proc`.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(directory, flags, Mode::empty()) {
            Ok(opened) => add(opened, 0, measured),
            Err(error) => measured.miss(Unmeasured::Unreadable(error.into())),
        }
    }

    fn add(directory: OwnedFd, depth: usize, measured: &mut Measured) {
        if depth > PATH_DEPTH {
            measured.miss(Unmeasured::TooDeep);
            return;
        }
        if let Err(error) = add_entries(&directory, depth, measured) {
            measured.miss(Unmeasured::Unreadable(error.into()));
        }
    }

    fn add_entries(
        directory: &OwnedFd,
        depth: usize,
        measured: &mut Measured,
    ) -> Result<(), Errno> {
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let found = rustix::fs::statat(directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
            let found = match found {
                Err(Errno::NOENT) => continue,
                found => found?,
            };
            match FileType::from_raw_mode(found.st_mode) {
                FileType::RegularFile => {
                    measured.add(u64::try_from(found.st_size).unwrap_or_default());
                }
                FileType::Directory => {
                    let flags =
                        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    match rustix::fs::openat(directory.as_fd(), name, flags, Mode::empty()) {
                        Ok(inner) => add(inner, depth + 1, measured),
                        // It is gone, or something else now.
                        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                        Err(error) => measured.miss(Unmeasured::Unreadable(error.into())),
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(not(unix))]
mod imp {
    use std::fs;
    use std::path::Path;

    use super::{Measured, Unmeasured};

    pub(super) fn measure(directory: &Path, measured: &mut Measured) {
        let mut directories = vec![directory.to_owned()];
        while let Some(directory) = directories.pop() {
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) => {
                    measured.miss(Unmeasured::Unreadable(error));
                    continue;
                }
            };
            for entry in entries.flatten() {
                match entry.metadata() {
                    Ok(found) if found.is_dir() => directories.push(entry.path()),
                    Ok(found) if found.is_file() => measured.add(found.len()),
                    _ => {}
                }
            }
        }
    }
}

#[cfg(all(test, unix))]
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
        let measured = measure(&inside);
        assert_eq!(measured.bytes, 123);
        assert!(measured.unmeasured.is_none());
    }

    #[test]
    fn what_is_too_deep_does_not_hide_the_rest() {
        let place = tempfile::tempdir().unwrap();
        let deep = place.path().join("d/".repeat(300));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("hidden"), vec![0; 50]).unwrap();
        fs::write(place.path().join("z"), vec![0; 7]).unwrap();
        let measured = measure(place.path());
        assert_eq!(measured.bytes, 7);
        assert!(matches!(measured.unmeasured, Some(Unmeasured::TooDeep)));
    }
}
