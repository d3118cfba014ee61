//! Opening the directories of a backend, by their host paths.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use backend_core::{Error, ErrorKind, Quoted, Result, VPath};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

use crate::fs::errno;

/// File systems that never wait for a network or another process, unless an overlay
/// has such a layer: ext, XFS, Btrfs, tmpfs, overlayfs, F2FS, bcachefs, ZFS, EROFS and
/// SquashFS.
const LOCAL_FILE_SYSTEMS: [u64; 10] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x794c_7630,
    0xf2f5_2010,
    0xca45_1a4e,
    0x2fc1_2fc1,
    0xe0f5_e1e2,
    0x7371_7368,
];

/// A file system, by its major and minor device number.
pub(crate) type Device = (u32, u32);

/// An opened directory and everything beneath it.
pub(crate) struct Root {
    pub(crate) handle: OwnedFd,
    /// The prefix of every [`VPath`] beneath this root.
    pub(crate) base: String,
    pub(crate) host: PathBuf,
    /// Whether cached entries can be opened without blocking.
    pub(crate) is_local: bool,
    /// Whether this is the root of the file system: nothing lies outside it,
    /// and `..` in it leads back to it.
    pub(crate) everything: bool,
    /// Whether it had links when it was opened. Some file systems do not count
    /// them.
    had_links: bool,
}

impl Root {
    /// Whether the directory was removed after it was opened. Its handle then
    /// leads to an empty directory that takes no entries.
    pub(super) fn is_removed(&self) -> bool {
        self.had_links && has_links(&self.handle) == Some(false)
    }

    /// Returns the path of the entry with these names beneath the root.
    pub(crate) fn path_of(&self, names: impl IntoIterator<Item: AsRef<OsStr>>) -> Result<VPath> {
        let mut text = self.base.clone();
        for name in names {
            let Some(name) = name.as_ref().to_str() else {
                return Err(Error::new(
                    ErrorKind::InvalidPath,
                    "a symbolic link leads to a name that is not UTF-8; rename what it leads to",
                ));
            };
            text.push('/');
            text.push_str(name);
        }
        Ok(VPath::parse(&text)?)
    }
}

pub(super) fn canonical(given: &Path, create: bool) -> Result<PathBuf> {
    if create {
        std::fs::create_dir_all(given).map_err(from_io)?;
    }
    std::fs::canonicalize(given).map_err(from_io)
}

fn from_io(error: std::io::Error) -> Error {
    match Errno::from_io_error(&error) {
        Some(errno) => errno::error(errno),
        None => Error::invalid_input("the directory's path is invalid").with_source(error),
    }
}

/// Adds the directory's path to the error, unless host paths must stay hidden.
pub(super) fn about_directory(error: Error, given: &Path, shown: bool) -> Error {
    let which = if shown {
        Quoted::new(&given.to_string_lossy()).to_string()
    } else {
        "the root directory".to_owned()
    };
    let (kind, problem) = match error.kind() {
        kind @ ErrorKind::NotFound => (
            kind,
            "does not exist; create it, or ask for it to be created".to_owned(),
        ),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => (
            ErrorKind::NotADirectory,
            "is not a directory; name one".to_owned(),
        ),
        kind => (kind, format!("cannot be opened: {}", error.message())),
    };
    Error::new(kind, format!("{which} {problem}"))
}

/// Opens the directories that do not lie inside another one.
pub(super) fn open_roots(
    directories: &[(&Path, PathBuf)],
    host_names: bool,
) -> Result<Vec<Arc<Root>>> {
    let mut roots: Vec<Arc<Root>> = Vec::new();
    for (given, host) in directories {
        let inside = |other: &PathBuf| other != host && host.starts_with(other);
        let known = roots.iter().any(|root| root.host == *host);
        if known || directories.iter().any(|(_, other)| inside(other)) {
            continue;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(host, flags, Mode::empty())
            .map_err(|error| about_directory(errno::error(error), given, host_names))?;
        let mut base = String::new();
        if host_names {
            base.push_str(host_path(host)?.as_str().trim_end_matches('/'));
        }
        roots.push(Arc::new(Root {
            is_local: is_local_filesystem(&handle),
            had_links: has_links(&handle) == Some(true),
            handle,
            base,
            host: host.clone(),
            everything: host.parent().is_none(),
        }));
    }
    Ok(roots)
}

/// Whether a directory has any links left, if that is known.
fn has_links(directory: &OwnedFd) -> Option<bool> {
    let found = rustix::fs::fstat(directory).ok()?;
    Some(found.st_nlink > 0)
}

pub(super) fn is_local_filesystem(directory: &OwnedFd) -> bool {
    rustix::fs::fstatfs(directory)
        .is_ok_and(|found| LOCAL_FILE_SYSTEMS.contains(&(found.f_type as u64)))
}

/// Returns the device of a directory's file system without querying that file
/// system.
pub(super) fn device_of(directory: &OwnedFd) -> Option<Device> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = rustix::fs::statx(directory, "", flags, StatxFlags::TYPE).ok()?;
    Some((found.stx_dev_major, found.stx_dev_minor))
}

/// Returns the root that contains a directory, and the path beneath it.
pub(super) fn containing<'r, 'h>(
    roots: &'r [Arc<Root>],
    host: &'h Path,
) -> Option<(&'r Arc<Root>, &'h Path)> {
    let beneath = |root: &'r Arc<Root>| Some((root, host.strip_prefix(&root.host).ok()?));
    roots.iter().find_map(beneath)
}

/// Returns the host spellings of a directory: the canonical one, and the one
/// that was given.
pub(super) fn spellings(given: &Path, canonical: &Path) -> Vec<PathBuf> {
    let mut spellings = vec![canonical.to_owned()];
    let up = |part| part == Component::ParentDir;
    if let Ok(given) = std::path::absolute(given)
        && given != canonical
        && !given.components().any(up)
    {
        spellings.push(given.components().collect());
    }
    spellings
}

/// Converts a host path to the path that callers use.
pub(super) fn host_path(host: &Path) -> Result<VPath> {
    let Some(text) = host.to_str() else {
        return Err(Error::new(
            ErrorKind::Config,
            "a directory whose path is not UTF-8 cannot be shown by its path; use virtual names",
        ));
    };
    VPath::parse(text).map_err(|error| {
        let message = format!("a directory of the backend has no path: {error}; use virtual names");
        Error::new(ErrorKind::Config, message)
    })
}

/// Whether `openat2` works here. An old kernel lacks it, and a seccomp filter
/// may forbid it.
pub(super) fn kernel_confines(roots: &[Arc<Root>]) -> bool {
    roots.iter().all(|root| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let confined = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&root.handle, ".", flags, Mode::empty(), confined).is_ok()
    })
}
