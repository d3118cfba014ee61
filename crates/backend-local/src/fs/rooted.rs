//! [`RootedFs`]: the directories of a backend, and the mapping of paths to them.
//!
//! The directories are opened once, together with the backend. From then on a
//! path is a handle and names beneath it. Host paths are used only to interpret
//! absolute links and, in the host's name space, the paths that callers pass.

use std::borrow::Cow;
use std::ffi::CString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backend_core::ops::Links;
use backend_core::{CommandPaths, Error, ErrorKind, Operation, Result, VPath};
use rustix::fs::OFlags;

use crate::builder::{LocalBuilder, NameSpace, Resolution};
use crate::fs::errno;
use crate::fs::locks::Locks;
use crate::fs::roots::{
    Device, Root, about_directory, canonical, containing, device_of, host_path,
    is_local_filesystem, kernel_confines, open_roots, spellings,
};

/// The error for a working directory given together with host names.
const HOST_WORKING_DIR: &str = "a working directory can only be chosen with virtual names; with the host's names it is the root directory";

/// The directories that a backend may touch, and the mapping of paths to them.
/// Its methods with names of [`Backend`](backend_core::Backend) do what those do.
pub(crate) struct RootedFs {
    /// The opened directories. None lies inside another.
    roots: Vec<Arc<Root>>,
    /// The host's names of the directories. The longest match wins.
    anchors: Vec<Anchor>,
    host_names: bool,
    working_dir: VPath,
    /// The host path of the first directory.
    home: PathBuf,
    /// The device of the working directory, if a separate local file system is
    /// mounted there, as in containers.
    pub(crate) near: Option<Device>,
    /// Whether the kernel can confine the resolution of a whole path in one
    /// call.
    pub(crate) kernel: bool,
    pub(crate) read_only: bool,
    pub(crate) max_file_bytes: u64,
    pub(crate) locks: Locks,
}

/// A host spelling of one of the directories.
struct Anchor {
    host: PathBuf,
    /// The same as a path for callers, in the host's name space.
    path: Option<VPath>,
    root: Arc<Root>,
    /// The path relative to that root.
    beneath: PathBuf,
    /// Whether it differs from the canonical spelling, and so leads through a
    /// link.
    alias: bool,
}

/// A root, and a path relative to it. The path is empty for the root itself.
pub(crate) struct Location<'p> {
    pub(crate) root: &'p Root,
    pub(crate) relative: Cow<'p, str>,
}

impl Location<'_> {
    /// Returns the relative path in the form that the kernel takes.
    pub(crate) fn as_str(&self) -> &str {
        match self.relative.as_ref() {
            "" => ".",
            relative => relative,
        }
    }

    /// Returns the parent directory and the last name, or `None` for the root
    /// itself.
    pub(crate) fn split(&self) -> Option<(&str, &str)> {
        match self.relative.rsplit_once('/') {
            Some(split) => Some(split),
            None if self.relative.is_empty() => None,
            None => Some((".", &self.relative)),
        }
    }
}

/// Hides host paths: a log must not show them if callers may not see them.
impl fmt::Debug for RootedFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootedFs")
            .field("working_dir", &self.working_dir)
            .field("directories", &self.roots.len())
            .field("kernel", &self.kernel)
            .field("read_only", &self.read_only)
            .finish()
    }
}

impl RootedFs {
    pub(crate) fn open(builder: &LocalBuilder) -> Result<Self> {
        let (host_names, allowed) = match &builder.names {
            NameSpace::Virtual => (false, &[][..]),
            NameSpace::Host { allowed } => (true, &allowed[..]),
        };
        let mut directories = Vec::new();
        for given in std::iter::once(&builder.root).chain(allowed) {
            let canonical = canonical(given, builder.create_root)
                .map_err(|error| about_directory(error, given, host_names))?;
            directories.push((given.as_path(), canonical));
        }
        let home = directories.first().map(|(_, canonical)| canonical.clone());
        let home = home.unwrap_or_default();
        let roots = open_roots(&directories, host_names)?;
        let mut anchors = Vec::new();
        for (given, canonical) in &directories {
            let Some((root, beneath)) = containing(&roots, canonical) else {
                continue;
            };
            for (number, host) in spellings(given, canonical).into_iter().enumerate() {
                anchors.push(Anchor {
                    path: host_names.then(|| host_path(&host)).transpose()?,
                    host,
                    root: Arc::clone(root),
                    beneath: beneath.to_owned(),
                    alias: number > 0,
                });
            }
        }
        let working_dir = match (&builder.working_dir, host_names) {
            (None, true) => host_path(&home)?,
            (Some(_), true) => return Err(Error::new(ErrorKind::Config, HOST_WORKING_DIR)),
            (given, false) => given.clone().unwrap_or_default(),
        };
        let kernel = builder.resolution == Resolution::Auto && kernel_confines(&roots);
        let mut fs = Self {
            roots,
            anchors,
            host_names,
            working_dir,
            home,
            near: None,
            kernel,
            read_only: builder.read_only,
            max_file_bytes: builder.max_file_bytes,
            locks: Locks::default(),
        };
        if builder.create_root && builder.working_dir.is_some() {
            let made = fs.make_dir(&fs.working_dir, Links::Follow);
            made.map_err(|error| error.at(Operation::CreateDir, &fs.working_dir))?;
        }
        fs.near = fs.find_near();
        Ok(fs)
    }

    /// Returns the file system of the working directory, if it differs from the
    /// root's.
    fn find_near(&self) -> Option<Device> {
        if self.host_names || !self.home_is_inside() {
            return None;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let home = self
            .open_path(&self.working_dir, flags, Links::Follow)
            .ok()?;
        let (near, root) = (device_of(&home)?, device_of(&self.roots.first()?.handle)?);
        (near != root && is_local_filesystem(&home)).then_some(near)
    }

    pub(crate) fn working_dir(&self) -> VPath {
        self.working_dir.clone()
    }

    /// Returns the host paths of the backend's directories, the root
    /// directory first.
    pub(crate) fn host_directories(&self) -> Vec<&Path> {
        let roots = self.roots.iter().map(|root| root.host.as_path());
        let others = roots.filter(|host| *host != self.home);
        std::iter::once(self.home.as_path()).chain(others).collect()
    }

    /// Returns the names that the directories have for commands.
    pub(crate) fn command_names(&self) -> CommandPaths {
        let mut names = CommandPaths::default();
        for root in self.roots.iter().filter(|_| !self.host_names) {
            if let Ok(host) = host_path(&root.host) {
                names = names.with_root(VPath::root(), host);
            }
        }
        for anchor in self.anchors.iter().filter(|anchor| anchor.alias) {
            let directory = anchor.root.path_of(&anchor.beneath);
            let pair = (directory, host_path(&anchor.host));
            if let (Ok(directory), Ok(host)) = pair {
                names = names.with_alias(directory, host);
            }
        }
        names
    }

    /// Returns the opened directories.
    pub(crate) fn roots(&self) -> &[Arc<Root>] {
        &self.roots
    }

    /// Returns the opened directory that holds `path`, and the path beneath it, `.` for
    /// itself. Returns `None` outside.
    pub(crate) fn place_of(&self, path: &VPath) -> Result<Option<(&Root, CString)>> {
        let Ok(at) = self.locate(path, Links::Follow) else {
            return Ok(None);
        };
        let relative = CString::new(at.as_str());
        let relative = relative.map_err(|_| Error::internal("a path with a NUL character"))?;
        let mut roots = self.roots.iter().map(Arc::as_ref);
        let root = roots.find(|root| std::ptr::eq(*root, at.root));
        Ok(root.map(|root| (root, relative)))
    }

    /// Returns the host path of a directory of the backend.
    pub(crate) fn host_of(&self, path: &VPath) -> Option<PathBuf> {
        let at = self.locate(path, Links::Follow).ok()?;
        Some(at.root.host.join(at.relative.as_ref()))
    }

    /// Returns the virtual path of a host path, if it lies in the backend's
    /// directories.
    pub(crate) fn shown(&self, host: &Path) -> Option<Result<VPath>> {
        let (root, beneath) = containing(&self.roots, host)?;
        Some(root.path_of(beneath))
    }

    /// Whether the working directory lies in another directory of the backend.
    pub(crate) fn home_is_inside(&self) -> bool {
        if self.host_names {
            self.roots.iter().all(|root| root.host != self.home)
        } else {
            !self.working_dir.is_root()
        }
    }

    /// Maps a path to a root and a relative path. Fails outside the backend's
    /// directories and, if links are refused, for a spelling that leads through
    /// one.
    pub(crate) fn locate<'p>(&'p self, path: &'p VPath, links: Links) -> Result<Location<'p>> {
        if !self.host_names {
            let relative = Cow::Borrowed(path.as_str().get(1..).unwrap_or_default());
            let root = self.roots.first().ok_or_else(|| self.outside())?;
            return Ok(Location { root, relative });
        }
        let fits = |anchor: &'_ Anchor| path.strip_prefix(anchor.path.as_ref()?).map(str::len);
        let found = self
            .anchors
            .iter()
            .filter_map(|anchor| Some((fits(anchor)?, anchor)));
        // The shortest rest means the longest matching prefix.
        let (rest, anchor) = found
            .min_by_key(|(rest, _)| *rest)
            .ok_or_else(|| self.outside())?;
        if anchor.alias && links == Links::Refuse {
            return Err(Error::is_a_link());
        }
        let text = path.as_str();
        let rest = text.get(text.len() - rest..).unwrap_or_default();
        let relative = match anchor.beneath.to_str() {
            Some("") => Cow::Borrowed(rest),
            Some(beneath) if rest.is_empty() => Cow::Owned(beneath.to_owned()),
            Some(beneath) => Cow::Owned(format!("{beneath}/{rest}")),
            // A directory that is not UTF-8 has no path in the host's name
            // space.
            None => return Err(self.outside()),
        };
        Ok(Location {
            root: &anchor.root,
            relative,
        })
    }

    /// Returns an error if the directory that holds `path` was removed.
    pub(crate) fn check_root(&self, path: &VPath) -> Result<()> {
        match self.locate(path, Links::Follow) {
            Ok(at) if at.root.is_removed() => Err(errno::root_removed()),
            _ => Ok(()),
        }
    }

    /// Returns why an entry at `path` is missing: itself, or everything with it.
    pub(crate) fn explain_missing(&self, path: &VPath, error: Error) -> Error {
        if error.kind() != ErrorKind::NotFound {
            return error;
        }
        self.check_root(path).err().unwrap_or(error)
    }

    /// Returns the error for a path outside the directories. It lists them if callers
    /// know them by the host's names.
    fn outside(&self) -> Error {
        let directories = self.host_names.then(|| self.host_directories());
        errno::outside_roots(&directories.unwrap_or_default())
    }

    /// Maps the target of an absolute link to a root and the path in it.
    /// Returns `None` if it lies outside.
    pub(crate) fn locate_link(&self, text: &Path) -> Option<(&Root, PathBuf)> {
        let fits = |anchor: &'_ Anchor| text.strip_prefix(&anchor.host).ok().map(Path::to_owned);
        let found = self
            .anchors
            .iter()
            .filter_map(|anchor| Some((fits(anchor)?, anchor)));
        let (rest, anchor) = found.max_by_key(|(_, anchor)| anchor.host.as_os_str().len())?;
        Some((&*anchor.root, anchor.beneath.join(rest)))
    }

    /// Returns an error if a file of this size is too large to be written.
    pub(crate) fn check_size(&self, size: u64) -> Result<()> {
        if size > self.max_file_bytes {
            return Err(Error::too_large(format!(
                "the file would have more than the {} bytes that this backend takes; write less, or several files",
                self.max_file_bytes
            )));
        }
        Ok(())
    }

    /// Returns an error if the backend is read-only.
    pub(crate) fn writable(&self) -> Result<()> {
        if self.read_only {
            return Err(errno::denied(
                "the backend is read-only; nothing can be changed through it",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::OwnedFd;

    use rustix::fs::Mode;

    use super::*;
    use crate::LocalBackend;

    /// Checks that cached files are read at once on a file system that is mounted on
    /// the working directory: tmpfs, which does not tell whether a read would wait.
    #[test]
    fn a_mounted_working_directory_is_near() {
        let shared = Path::new("/dev/shm");
        let is_mounted = device_of(&open(shared)) != device_of(&open(Path::new("/")));
        let Some(mut file) = tempfile::NamedTempFile::new_in(shared)
            .ok()
            .filter(|_| is_mounted)
        else {
            return;
        };
        file.write_all(b"text").unwrap();
        let path = VPath::parse(file.path().to_str().unwrap()).unwrap();
        let opened = |working_dir: &str| {
            let working_dir = VPath::parse(working_dir).unwrap();
            let builder = LocalBackend::builder("/").working_dir(working_dir);
            let fs = RootedFs::open(&builder).unwrap();
            // Memory pressure may evict the entry, but not every time.
            let mut tries = 0..100;
            let read = |_| fs.cached(&path, Links::Refuse);
            fs.kernel
                .then(|| tries.find_map(read).is_some_and(|text| text == "text"))
        };
        assert_ne!(opened("/dev/shm"), Some(false));
        assert_ne!(opened("/"), Some(true));
    }

    fn open(path: &Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::PATH, Mode::empty()).unwrap()
    }
}
