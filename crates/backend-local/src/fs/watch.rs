//! Opening the directory of a watch, and noticing when it is gone.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;

use backend_core::ops::Links;
use backend_core::{Error, Result, VPath};
use rustix::fs::{AtFlags, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::fs::cursor::{Identity, identity};
use crate::fs::errno;
use crate::fs::list::LIST;
use crate::fs::resolve::{ATTEMPTS, DIRECTORY, clone_handle, open_at, open_beneath};
use crate::fs::rooted::{Location, RootedFs};

/// A directory to watch, by handle.
pub(crate) struct WatchRoot {
    directory: OwnedFd,
    /// The steps from the backend's directory down to it.
    pub(crate) steps: Vec<PathStep>,
    /// The backend's directory and the one it is in, if that can be opened. Nothing is
    /// told of the latter: its events say when to check whether the former still exists.
    pub(crate) root: OwnedFd,
    pub(crate) above_root: Option<OwnedFd>,
    root_had_links: bool,
    /// Whether the kernel can confine the resolution of a whole path in one call.
    kernel: bool,
}

/// A directory, and the name in it that leads on.
pub(crate) struct PathStep {
    pub(crate) directory: OwnedFd,
    pub(crate) name: OsString,
    /// The directory that has the name.
    next: Identity,
}

impl RootedFs {
    /// Opens the directory at `path` for a watch.
    pub(crate) fn watch_root(&self, path: &VPath, links: Links) -> Result<WatchRoot> {
        self.check_root(path)?;
        for _ in 0..ATTEMPTS {
            let real = match links {
                Links::Follow => self.resolve(path)?,
                Links::Refuse => path.clone(),
            };
            let at = self.locate(&real, Links::Refuse)?;
            match self.steps(&at) {
                Ok(root) => return Ok(root),
                // A link, which can only be refused or have appeared just now.
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    let options = OFlags::PATH | OFlags::DIRECTORY;
                    self.open_path(path, options, links)?;
                }
                Err(error) => return Err(errno::error(error)),
            }
        }
        Err(errno::keeps_changing())
    }

    /// Walks down to a directory without following links.
    fn steps(&self, at: &Location<'_>) -> rustix::io::Result<WatchRoot> {
        let own = |handle: &OwnedFd| clone_handle(handle).map_err(|_| Errno::MFILE);
        let find = |handle: &OwnedFd| identity(handle).map_err(|_| Errno::IO);
        let mut steps: Vec<PathStep> = Vec::new();
        let mut current = own(&at.root.handle)?;
        for name in at.relative.split('/').filter(|name| !name.is_empty()) {
            let name = OsString::from(name);
            let next = open_at(&current, &name, DIRECTORY)?;
            let directory = std::mem::replace(&mut current, next);
            let next = find(&current)?;
            steps.push(PathStep {
                directory,
                name,
                next,
            });
        }
        let above = OFlags::PATH | OFlags::DIRECTORY;
        let root = own(&at.root.handle)?;
        let links = rustix::fs::fstat(&root)?.st_nlink;
        Ok(WatchRoot {
            directory: open_at(&current, OsStr::new("."), LIST)?,
            steps,
            above_root: open_at(&root, OsStr::new(".."), above)
                .ok()
                .filter(|_| !at.root.everything),
            root,
            root_had_links: links > 0,
            kernel: self.kernel,
        })
    }
}

impl WatchRoot {
    /// Whether the path of the watch still leads to the same directory.
    pub(crate) fn is_there(&self) -> bool {
        let is_next = |step: &PathStep| {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::statat(&step.directory, &step.name, flags)
                .is_ok_and(|found| (found.st_dev, found.st_ino) == step.next)
        };
        let removed = || rustix::fs::fstat(&self.root).is_ok_and(|found| found.st_nlink == 0);
        self.steps.iter().all(is_next) && !(self.root_had_links && removed())
    }

    /// Opens a directory beneath for listing, by its relative path, without following links.
    pub(crate) fn open(&self, relative: &str) -> rustix::io::Result<OwnedFd> {
        let flags = LIST | OFlags::NOFOLLOW;
        if relative.is_empty() {
            return open_at(&self.directory, OsStr::new("."), flags);
        }
        if self.kernel {
            let confined = ResolveFlags::BENEATH;
            match open_beneath(&self.directory, relative, flags, Links::Refuse, confined) {
                Err(Errno::AGAIN) => {}
                opened => return opened,
            }
        }
        let Some((above, name)) = relative.rsplit_once('/') else {
            return open_at(&self.directory, OsStr::new(relative), flags);
        };
        let mut current: Option<OwnedFd> = None;
        for name in above.split('/') {
            let parent = current.as_ref().unwrap_or(&self.directory);
            current = Some(open_at(parent, OsStr::new(name), DIRECTORY)?);
        }
        open_at(
            current.as_ref().unwrap_or(&self.directory),
            OsStr::new(name),
            flags,
        )
    }
}

/// The error for a watch that the kernel refuses.
pub(crate) fn refused(error: Errno) -> Error {
    match error {
        Errno::NOSPC => Error::too_large(
            "there are more directories than the kernel lets this user watch; raise \
             fs.inotify.max_user_watches, or watch or exclude a part of the tree",
        ),
        Errno::MFILE | Errno::NFILE => Error::unavailable(
            "no more watches can be opened; end some, or raise \
             fs.inotify.max_user_instances and the limit of open files",
        ),
        Errno::NOENT => {
            Error::unsupported("changes are told only where /proc is mounted; mount it")
        }
        error => return errno::error(error),
    }
    .with_source(std::io::Error::from(error))
}
