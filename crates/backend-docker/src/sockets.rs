//! The directory through which agents are reached past the daemon: it is mounted in
//! containers, and each agent that is started has a socket there for a moment.

#[cfg(target_os = "linux")]
mod listener;

use std::fs::File;
use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
pub(crate) use listener::Listener;

/// The permissions of the directory: users of containers, who are others, may connect to a
/// socket there by its name, and cannot list it.
#[cfg(target_os = "linux")]
const MODE: u32 = 0o711;
/// The permissions of missing directories above it.
#[cfg(target_os = "linux")]
const MODE_ABOVE: u32 = 0o700;

/// Opens the directory, and creates it if it is missing. Fails unless it belongs to this
/// process and only this process may write there.
#[cfg(target_os = "linux")]
pub(crate) fn open(path: &Path) -> io::Result<File> {
    use std::fs::{DirBuilder, Permissions};
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};

    use rustix::fs::{Mode, OFlags};

    let mut above = DirBuilder::new();
    above.recursive(true).mode(MODE_ABOVE);
    path.parent()
        .map_or(Ok(()), |parent| above.create(parent))?;
    let is_new = match DirBuilder::new().mode(MODE).create(path) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if is_new {
        // The process may have a mask.
        directory.set_permissions(Permissions::from_mode(MODE))?;
    }
    let found = directory.metadata()?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(io::Error::other("others can write there"));
    }
    if found.mode() & 0o001 == 0 {
        return Err(io::Error::other("users of containers cannot enter it"));
    }
    Ok(directory)
}

/// Elsewhere a daemon runs in a virtual machine, where sockets of this host lead nowhere.
#[cfg(not(target_os = "linux"))]
pub(crate) fn open(_: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the path if the directory is there now and can be used.
pub(crate) async fn prepared(path: &Path) -> Option<String> {
    let owned = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || open(&owned)).await;
    match opened.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(_) => path.to_str().map(str::to_owned),
        Err(error) => {
            let shown = path.display();
            tracing::debug!("agents are reached through the daemon, not through {shown}: {error}");
            None
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_missing_directory_is_created_for_this_process_alone() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("new/sockets");
        for _ in 0..2 {
            let mode = open(&path)
                .unwrap()
                .metadata()
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, MODE);
        }
        let above = fs::metadata(path.parent().unwrap()).unwrap();
        assert_eq!(above.permissions().mode() & 0o077, 0);
    }

    #[test]
    fn one_of_others_or_behind_a_link_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("sockets");
        for refused in [0o777, 0o731, 0o713, 0o700] {
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(refused)).unwrap();
            open(&path).unwrap_err();
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                refused,
                "it is left as it is"
            );
            fs::remove_dir(&path).unwrap();
        }
        let target = temporary.path().join("target");
        open(&target).unwrap();
        symlink(&target, &path).unwrap();
        open(&path).unwrap_err();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        open(&path).unwrap_err();
    }
}
