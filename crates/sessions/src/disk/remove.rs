//! Deleting a tree.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// How often a tree may change while it is deleted.
const INTERRUPTIONS: u32 = 100;

/// Deletes a directory with all it holds; a missing one is a success. Only what is beneath
/// the directories in `top` may belong to commands, not `top` itself.
///
/// Commands can nest directories more deeply than there are file descriptors and than a
/// stack can follow. So every directory is moved up into `top` before it is looked into,
/// where no command can put a link in its place.
pub(crate) fn remove_tree(top: &Path) -> io::Result<()> {
    let is_directory = match fs::symlink_metadata(top) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?.is_dir(),
    };
    if !is_directory {
        return unless_missing(fs::remove_file(top));
    }
    let mut places = Places { top, next: 0 };
    let mut interruptions = 0;
    loop {
        match remove_level(top, &mut places) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            // Another process deletes it as well, or a command still writes there.
            Err(error)
                if interruptions < INTERRUPTIONS
                    && matches!(
                        error.kind(),
                        ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty
                    ) =>
            {
                interruptions += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Deletes what is in `top`, and moves what is beneath up. Returns whether `top` is gone.
fn remove_level(top: &Path, places: &mut Places<'_>) -> io::Result<bool> {
    let entries = match fs::read_dir(top) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    let mut is_empty = true;
    for entry in entries {
        let entry = entry?;
        is_empty = false;
        if leads_down(&entry)? {
            remove_directory(&entry.path(), places)?;
        } else {
            unless_missing(fs::remove_file(entry.path()))?;
        }
    }
    if is_empty {
        fs::remove_dir(top)?;
    }
    Ok(is_empty)
}

/// Deletes a directory in `top`, and moves the directories in it there.
fn remove_directory(directory: &Path, places: &mut Places<'_>) -> io::Result<()> {
    // If this fails, what follows tells why.
    let _ = open_up(directory);
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if leads_down(&entry)? {
            unless_missing(move_up(&entry.path(), &places.free()))?;
        } else {
            unless_missing(fs::remove_file(entry.path()))?;
        }
    }
    unless_missing(fs::remove_dir(directory))
}

fn move_up(directory: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(directory, to) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            // A directory is moved by those who may write it, and an empty one is removed by
            // those who may write the one it is in.
            if fs::remove_dir(directory).is_ok() {
                return Ok(());
            }
            open_up(directory)?;
            fs::rename(directory, to)
        }
        // Some file systems do not move all directories.
        Err(error) if error.kind() == ErrorKind::CrossesDevices => fs::remove_dir_all(directory),
        moved => moved,
    }
}

/// Names in a directory that nothing has.
struct Places<'t> {
    top: &'t Path,
    next: u64,
}

impl Places<'_> {
    fn free(&mut self) -> PathBuf {
        loop {
            let name = format!(".{}-{}", std::process::id(), self.next);
            let place = self.top.join(name);
            self.next += 1;
            if fs::symlink_metadata(&place).is_err() {
                return place;
            }
        }
    }
}

/// Whether an entry is a directory, and no link to one.
fn leads_down(entry: &fs::DirEntry) -> io::Result<bool> {
    match entry.file_type() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        kind => Ok(kind?.is_dir()),
    }
}

fn unless_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Gives the owner access to a directory: commands can make some that even their owner may
/// not enter. A link in its place is refused.
#[cfg(target_os = "linux")]
fn open_up(directory: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::PermissionsExt as _;

    use rustix::fs::{Mode, OFlags};

    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

#[cfg(not(target_os = "linux"))]
fn open_up(_: &Path) -> io::Result<()> {
    Err(ErrorKind::PermissionDenied.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_tree_that_is_deeper_than_any_path_is_deleted() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("top");
        // From the deepest up, so that no path is long.
        let (inner, outer) = (place.path().join("inner"), place.path().join("outer"));
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("file"), "").unwrap();
        for _ in 0..6_000 {
            fs::create_dir(&outer).unwrap();
            fs::rename(&inner, outer.join("d")).unwrap();
            fs::rename(&outer, &inner).unwrap();
        }
        fs::rename(&inner, &top).unwrap();
        remove_tree(&top).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        remove_tree(&top).unwrap();
    }

    #[test]
    fn closed_directories_are_deleted_and_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (top, outside) = (place.path().join("top"), place.path().join("outside"));
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "kept").unwrap();
        let closed = top.join("workspace/closed");
        fs::create_dir_all(closed.join("inner/more")).unwrap();
        // As an interrupted deletion leaves it.
        let left = format!(".{}-0", std::process::id());
        fs::create_dir(top.join(left)).unwrap();
        for (number, directory) in [&top, &closed, &closed.join("inner")].iter().enumerate() {
            symlink(&outside, directory.join(format!("link{number}"))).unwrap();
            fs::write(directory.join("file"), "").unwrap();
        }
        for directory in [closed.join("inner"), closed] {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o000)).unwrap();
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        let before = mode(&outside);
        remove_tree(&top).unwrap();
        assert!(!top.exists());
        assert_eq!(fs::read(outside.join("file")).unwrap(), b"kept");
        assert_eq!(mode(&outside), before);
        symlink(&outside, &top).unwrap();
        remove_tree(&top).unwrap();
        assert!(fs::symlink_metadata(&top).is_err());
        assert!(outside.join("file").exists());
    }
}
