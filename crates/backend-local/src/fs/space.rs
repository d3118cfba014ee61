//! [`Space`]: the directories a backend is made of, and how paths name them.
//!
//! The directories are opened once, when the backend is. From then on a path is
//! a handle and names beneath it; the host's own paths are used only to
//! recognise what an absolute link means, and in the host's name space also what
//! a caller means.

use std::borrow::Cow;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use backend_core::ops::Links;
use backend_core::{CommandNames, Error, ErrorKind, Operation, Result, VPath};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

use crate::builder::{LocalBuilder, NameSpace, Resolution};
use crate::fs::errno;
use crate::fs::locks::Locks;

/// File systems that keep nobody waiting for a network or another process:
/// ext, XFS, Btrfs, tmpfs, overlayfs, F2FS, bcachefs, ZFS, EROFS and SquashFS.
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

/// Why a working directory is not taken with host names.
const HOST_WORKING_DIR: &str = "a working directory can only be chosen with virtual names; with the host's names it is the root directory";

/// The directories that a backend may touch, and how its paths name them.
pub(crate) struct Space {
    /// None lies inside another.
    roots: Vec<Root>,
    /// How the host names the directories; the longest that fits counts.
    anchors: Vec<Anchor>,
    host_names: bool,
    working_dir: VPath,
    /// The host's path of the first directory.
    home: PathBuf,
    /// The device of the working directory, if a file system of its own is mounted
    /// there, as in containers, that keeps nobody waiting either.
    pub(crate) near: Option<Device>,
    /// Whether the kernel can confine a whole path at once.
    pub(crate) kernel: bool,
    pub(crate) read_only: bool,
    /// The largest file that may be written.
    pub(crate) max_file_bytes: u64,
    pub(crate) locks: Locks,
}

/// A file system, by the numbers that the kernel gives it.
pub(crate) type Device = (u32, u32);

/// A directory with all beneath it.
pub(crate) struct Root {
    pub(crate) handle: OwnedFd,
    /// Its path as [`VPath`]s begin.
    base: String,
    host: PathBuf,
    /// Whether what the kernel has in memory can be had without waiting.
    pub(crate) quick: bool,
    /// Whether this is the root of the file system: nothing lies outside it, and
    /// `..` stays.
    pub(crate) everything: bool,
}

/// A spelling of the host for a directory of the space.
struct Anchor {
    host: PathBuf,
    /// The same for callers, in the host's name space.
    path: Option<VPath>,
    root: usize,
    /// Where it is in that root.
    beneath: PathBuf,
    /// Whether it is another spelling than the host's own, and so leads through a link.
    alias: bool,
}

/// A root, and a path relative to it. Empty for the root itself.
#[derive(Debug)]
pub(crate) struct Location<'p> {
    pub(crate) root: usize,
    pub(crate) relative: Cow<'p, str>,
}

impl Location<'_> {
    /// The relative path as the kernel takes it.
    pub(crate) fn as_str(&self) -> &str {
        match self.relative.as_ref() {
            "" => ".",
            relative => relative,
        }
    }

    /// The directory above and the last name; `None` for the root itself.
    pub(crate) fn split(&self) -> Option<(&str, &str)> {
        match self.relative.rsplit_once('/') {
            Some(split) => Some(split),
            None if self.relative.is_empty() => None,
            None => Some((".", &self.relative)),
        }
    }
}

/// Hides the host's paths, which a log must not show where callers may not see
/// them.
impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space")
            .field("working_dir", &self.working_dir)
            .field("directories", &self.roots.len())
            .field("kernel", &self.kernel)
            .field("read_only", &self.read_only)
            .finish()
    }
}

impl Space {
    /// Opens the root and the allowed directories.
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
        let home = match directories.first() {
            Some((_, canonical)) => canonical.clone(),
            None => PathBuf::new(),
        };
        let roots = open_roots(&directories, host_names)?;
        let mut anchors = Vec::new();
        for (given, canonical) in &directories {
            let Some((root, beneath)) = containing(&roots, canonical) else {
                continue;
            };
            for (number, host) in spellings(given, canonical).into_iter().enumerate() {
                let path = match host_names {
                    true => Some(host_path(&host)?),
                    false => None,
                };
                let beneath = beneath.clone();
                anchors.push(Anchor {
                    host,
                    path,
                    root,
                    beneath,
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
        let mut space = Self {
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
            let made = space.make_dir(&space.working_dir, Links::Follow);
            made.map_err(|error| error.at(Operation::CreateDir, &space.working_dir))?;
        }
        space.near = space.find_near();
        Ok(space)
    }

    /// The file system of the working directory, if it is another than the root's.
    fn find_near(&self) -> Option<Device> {
        if self.host_names || !self.home_is_inside() {
            return None;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let home = self
            .open_path(&self.working_dir, flags, Links::Follow)
            .ok()?;
        let (near, root) = (device_of(&home)?, device_of(&self.roots.first()?.handle)?);
        (near != root && keeps_nobody_waiting(&home)).then_some(near)
    }

    /// Where relative paths start.
    pub(crate) fn working_dir(&self) -> VPath {
        self.working_dir.clone()
    }

    /// The host's paths of the directories that this space is made of, the root
    /// directory first.
    pub(crate) fn host_directories(&self) -> Vec<&Path> {
        let roots = self.roots.iter().map(|root| root.host.as_path());
        let others = roots.filter(|host| *host != self.home);
        std::iter::once(self.home.as_path()).chain(others).collect()
    }

    /// The names that the directories have for commands.
    pub(crate) fn command_names(&self) -> CommandNames {
        let mut names = CommandNames::default();
        for root in self.roots.iter().filter(|_| !self.host_names) {
            if let Ok(host) = host_path(&root.host) {
                names = names.with_root(VPath::root(), host);
            }
        }
        for anchor in self.anchors.iter().filter(|anchor| anchor.alias) {
            let shown: Vec<_> = anchor.beneath.iter().collect();
            let pair = (self.path_of(anchor.root, &shown), host_path(&anchor.host));
            if let (Ok(directory), Ok(host)) = pair {
                names = names.with_alias(directory, host);
            }
        }
        names
    }

    /// The host's path of a directory of the space.
    pub(crate) fn host_of(&self, path: &VPath) -> Option<PathBuf> {
        let at = self.locate(path, Links::Follow).ok()?;
        Some(self.roots.get(at.root)?.host.join(at.relative.as_ref()))
    }

    /// The path of one of the host's, if it lies in the space.
    pub(crate) fn shown(&self, host: &Path) -> Option<Result<VPath>> {
        let (root, beneath) = containing(&self.roots, host)?;
        let names: Vec<_> = beneath.iter().collect();
        Some(self.path_of(root, &names))
    }

    /// Whether the working directory lies in another directory of the space.
    pub(crate) fn home_is_inside(&self) -> bool {
        match self.host_names {
            true => self.roots.iter().all(|root| root.host != self.home),
            false => !self.working_dir.is_root(),
        }
    }

    /// The root of a location or of a link.
    pub(crate) fn root(&self, index: usize) -> Result<&Root> {
        self.roots
            .get(index)
            .ok_or_else(|| Error::internal("a directory of the backend is missing"))
    }

    /// What a path names.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` outside the directories of the space, `IsALink` for a spelling of one
    /// that leads through a link, if links are refused.
    pub(crate) fn locate<'p>(&self, path: &'p VPath, links: Links) -> Result<Location<'p>> {
        if !self.host_names {
            let relative = Cow::Borrowed(path.as_str().get(1..).unwrap_or_default());
            return Ok(Location { root: 0, relative });
        }
        let fits = |anchor: &'_ Anchor| path.strip_prefix(anchor.path.as_ref()?).map(str::len);
        let found = self
            .anchors
            .iter()
            .filter_map(|anchor| Some((fits(anchor)?, anchor)));
        // The shortest rest belongs to the longest prefix.
        let (rest, anchor) = found
            .min_by_key(|(rest, _)| *rest)
            .ok_or_else(errno::elsewhere)?;
        if anchor.alias && links == Links::Refuse {
            return Err(errno::is_a_link());
        }
        let text = path.as_str();
        let rest = text.get(text.len() - rest..).unwrap_or_default();
        let relative = match anchor.beneath.to_str() {
            Some("") => Cow::Borrowed(rest),
            Some(beneath) if rest.is_empty() => Cow::Owned(beneath.to_owned()),
            Some(beneath) => Cow::Owned(format!("{beneath}/{rest}")),
            // Such a directory has no path in the host's name space.
            None => return Err(errno::elsewhere()),
        };
        Ok(Location {
            root: anchor.root,
            relative,
        })
    }

    /// Where an absolute link leads: a root and the path in it. `None` outside.
    pub(crate) fn locate_link(&self, text: &Path) -> Option<(usize, PathBuf)> {
        let fits = |anchor: &'_ Anchor| text.strip_prefix(&anchor.host).ok().map(Path::to_owned);
        let found = self
            .anchors
            .iter()
            .filter_map(|anchor| Some((fits(anchor)?, anchor)));
        let (rest, anchor) = found.max_by_key(|(_, anchor)| anchor.host.as_os_str().len())?;
        Some((anchor.root, anchor.beneath.join(rest)))
    }

    /// The path of what stands beneath a root.
    ///
    /// # Errors
    ///
    /// `InvalidPath` if it has none.
    pub(crate) fn path_of(
        &self,
        root: usize,
        names: &[impl AsRef<std::ffi::OsStr>],
    ) -> Result<VPath> {
        let mut text = self.root(root)?.base.clone();
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

    /// Refuses a file of this size if it is too large to be written.
    pub(crate) fn check_size(&self, size: u64) -> Result<()> {
        if size > self.max_file_bytes {
            return Err(Error::too_large(format!(
                "the file would have more than the {} bytes that this backend takes; write less, or several files",
                self.max_file_bytes
            )));
        }
        Ok(())
    }

    /// Refuses to change anything in a space that is only for reading.
    pub(crate) fn writable(&self) -> Result<()> {
        if self.read_only {
            return Err(errno::denied(
                "the backend is read-only; nothing can be changed through it",
            ));
        }
        Ok(())
    }
}

/// The host's own path of a directory, without links.
fn canonical(given: &Path, create: bool) -> Result<PathBuf> {
    if create {
        std::fs::create_dir_all(given).map_err(from_io)?;
    }
    std::fs::canonicalize(given).map_err(from_io)
}

fn from_io(error: std::io::Error) -> Error {
    match Errno::from_io_error(&error) {
        Some(errno) => errno::error(errno),
        None => Error::invalid_input("the path of the directory is not one").with_source(error),
    }
}

/// Names the directory that cannot be opened, unless it must stay unseen.
fn about_directory(error: Error, given: &Path, shown: bool) -> Error {
    let which = match shown {
        true => backend_core::Quoted::new(&given.to_string_lossy()).to_string(),
        false => "the root directory".to_owned(),
    };
    let message = match error.kind() {
        ErrorKind::NotFound => {
            format!("{which} does not exist; create it, or ask for it to be created")
        }
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            return Error::new(
                ErrorKind::NotADirectory,
                format!("{which} is not a directory; name one"),
            );
        }
        _ => format!("{which} cannot be opened: {}", error.message()),
    };
    Error::new(error.kind(), message)
}

/// Opens the directories that lie in no other.
fn open_roots(directories: &[(&Path, PathBuf)], host_names: bool) -> Result<Vec<Root>> {
    let mut roots: Vec<Root> = Vec::new();
    for (given, host) in directories {
        let inside = |other: &PathBuf| other != host && host.starts_with(other);
        let known = roots.iter().any(|root| root.host == *host);
        if known || directories.iter().any(|(_, other)| inside(other)) {
            continue;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(host, flags, Mode::empty())
            .map_err(|error| about_directory(errno::error(error), given, host_names))?;
        let base = match host_names {
            true => host_path(host)?.as_str().trim_end_matches('/').to_owned(),
            false => String::new(),
        };
        let quick = keeps_nobody_waiting(&handle);
        let everything = host.parent().is_none();
        roots.push(Root {
            handle,
            base,
            host: host.clone(),
            quick,
            everything,
        });
    }
    Ok(roots)
}

fn keeps_nobody_waiting(directory: &OwnedFd) -> bool {
    rustix::fs::fstatfs(directory)
        .is_ok_and(|found| LOCAL_FILE_SYSTEMS.contains(&(found.f_type as u64)))
}

/// The file system of a directory, as far as that is known without asking it.
pub(crate) fn device_of(directory: &OwnedFd) -> Option<Device> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = rustix::fs::statx(directory, "", flags, StatxFlags::TYPE).ok()?;
    Some((found.stx_dev_major, found.stx_dev_minor))
}

/// The root that holds a directory, and where.
fn containing(roots: &[Root], host: &Path) -> Option<(usize, PathBuf)> {
    roots.iter().enumerate().find_map(|(index, root)| {
        let beneath = host.strip_prefix(&root.host).ok()?;
        Some((index, beneath.to_owned()))
    })
}

/// The host's spellings of a directory: its own, and the one that was given.
fn spellings(given: &Path, canonical: &Path) -> Vec<PathBuf> {
    let mut spellings = vec![canonical.to_owned()];
    let up = |part| part == std::path::Component::ParentDir;
    if let Ok(given) = std::path::absolute(given)
        && given != canonical
        && !given.components().any(up)
    {
        spellings.push(given.components().collect());
    }
    spellings
}

/// A path of the host as callers name it.
fn host_path(host: &Path) -> Result<VPath> {
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

/// Whether `openat2` works here: an old kernel lacks it, and a filter of system
/// calls may forbid it.
fn kernel_confines(roots: &[Root]) -> bool {
    roots.iter().all(|root| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let confined = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&root.handle, ".", flags, Mode::empty(), confined).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use crate::LocalBackend;

    use super::*;

    /// Whether what is in memory is answered at once, in a file system that is
    /// mounted on the working directory.
    #[test]
    fn a_mounted_working_directory_is_near() {
        let shared = Path::new("/dev/shm");
        let is_mounted = device_of(&open(shared)) != device_of(&open(Path::new("/")));
        let Some(file) = tempfile::NamedTempFile::new_in(shared)
            .ok()
            .filter(|_| is_mounted)
        else {
            return;
        };
        let path = VPath::parse(file.path().to_str().unwrap()).unwrap();
        let opened = |working_dir: &str| {
            let working_dir = VPath::parse(working_dir).unwrap();
            let builder = LocalBackend::builder("/").working_dir(working_dir);
            let space = Space::open(&builder).unwrap();
            // Memory may be short, but not time and again.
            let mut tries = 0..100;
            let open = |_| space.open_cached(&path, OFlags::RDONLY, Links::Refuse);
            space.kernel.then(|| tries.find_map(open).is_some())
        };
        assert_ne!(opened("/dev/shm"), Some(false));
        assert_ne!(opened("/"), Some(true));
    }

    fn open(path: &Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::PATH, Mode::empty()).unwrap()
    }
}
