//! Turns a path into a handle: by the kernel in one call, or component by
//! component.
//!
//! The kernel (`openat2`) opens a whole path and refuses to leave the root. It
//! also refuses every absolute link, so paths it refuses are retried by the
//! [`Walk`], which opens one name after the other without following links,
//! reads links itself, and decides. Both give the same results. Where the
//! kernel lacks the call, only the walk is used.
//!
//! Either way the result is a handle, or a directory handle and one name in it,
//! and the operation works on exactly that.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use backend_core::limits::PATH_DEPTH;
use backend_core::ops::Links;
use backend_core::{Error, ErrorKind, Result, VPath};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use crate::fs::errno;
use crate::fs::rooted::{Location, RootedFs};
use crate::fs::roots::{Device, Root, device_of};

/// Retries after a concurrent change to the tree before giving up.
pub(crate) const ATTEMPTS: usize = 16;

/// The number of links followed in one path, the same limit as the kernel's.
pub(crate) const MAX_LINKS: usize = 40;

/// Flags to open a directory only as the base for opening its entries.
const ABOVE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// Like [`ABOVE`], for a name that may have become a link.
pub(crate) const DIRECTORY: OFlags = ABOVE.union(OFlags::NOFOLLOW);

/// Flags to describe an entry without opening it.
pub(crate) const ENTRY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW);

/// The treatment of a link in the last component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    /// Follow it, if links may be followed.
    Follow,
    /// The operation is about the link itself.
    Keep,
}

/// The location that a path leads to: a name in a directory.
#[derive(Debug)]
pub(crate) struct ResolvedEntry {
    /// The last directory on the path that exists.
    pub(crate) directory: OwnedFd,
    /// Directories beneath it that do not exist.
    pub(crate) missing: Vec<OsString>,
    /// The name in the last of them; `None` if the path is `directory` itself.
    pub(crate) name: Option<OsString>,
    pub(crate) found: Option<Stat>,
}

pub(crate) fn open_at(
    directory: impl AsFd,
    name: &OsStr,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat(directory.as_fd(), name, flags, Mode::empty()))
}

/// Describes the entry `name` in `directory`, without following a link.
pub(crate) fn stat_at(directory: impl AsFd, name: &OsStr) -> Result<Option<Stat>> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(errno::error(error)),
    }
}

pub(crate) fn kind_of(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

/// Returns the type of the entry `name` in `directory`, if there is one.
pub(crate) fn kind_at(directory: impl AsFd, name: &OsStr) -> Result<Option<FileType>> {
    Ok(stat_at(directory, name)?.as_ref().map(kind_of))
}

pub(crate) fn is_directory(found: &Stat) -> bool {
    kind_of(found) == FileType::Directory
}

/// Returns another handle to the same directory.
pub(crate) fn clone_handle(directory: &OwnedFd) -> Result<OwnedFd> {
    directory.try_clone().map_err(|source| {
        Error::unavailable("too many files are open; try again").with_source(source)
    })
}

/// Asks the kernel to open a path beneath a directory.
pub(crate) fn open_beneath(
    directory: &OwnedFd,
    relative: &str,
    flags: OFlags,
    links: Links,
    resolve: ResolveFlags,
) -> rustix::io::Result<OwnedFd> {
    let mut resolve = resolve | ResolveFlags::NO_MAGICLINKS;
    if links == Links::Refuse {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    let flags = flags | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat2(directory, relative, flags, Mode::empty(), resolve))
}

impl RootedFs {
    /// Opens the entry at `path` with `flags`.
    ///
    /// If they include `NOFOLLOW`, a link in the last component is opened
    /// itself, which only `PATH` can do.
    pub(crate) fn open_path(&self, path: &VPath, flags: OFlags, links: Links) -> Result<OwnedFd> {
        let at = self.locate(path, links)?;
        match self.by_kernel(&at, at.as_str(), flags, links, ResolveFlags::empty()) {
            Err(Errno::AGAIN | Errno::XDEV | Errno::LOOP) => {}
            opened => return opened.map_err(errno::error),
        }
        let last = if flags.contains(OFlags::NOFOLLOW) {
            LastLink::Keep
        } else {
            LastLink::Follow
        };
        for _ in 0..ATTEMPTS {
            let target = self.walk(&at, links, last)?.into_entry()?;
            if target.found.is_none() {
                return Err(Error::not_found());
            }
            let name = target.name.as_deref().unwrap_or(OsStr::new("."));
            match open_at(&target.directory, name, flags | OFlags::NOFOLLOW) {
                // The entry has changed meanwhile.
                Err(Errno::LOOP | Errno::NOENT) => {}
                opened => return opened.map_err(errno::error),
            }
        }
        Err(errno::keeps_changing())
    }

    /// Opens an entry only if the kernel has it cached, without ever blocking.
    pub(crate) fn open_cached(&self, path: &VPath, flags: OFlags, links: Links) -> Option<OwnedFd> {
        if let Some(device) = self.near
            && let Some(rest) = path.strip_prefix(&self.working_dir())
        {
            return self.open_near(device, rest, flags, links);
        }
        let at = self.locate(path, links).ok()?;
        if !at.root.is_local {
            return None;
        }
        // A file system mounted beneath may be one that blocks.
        let cached = ResolveFlags::CACHED | ResolveFlags::NO_XDEV;
        self.by_kernel(&at, at.as_str(), flags, links, cached).ok()
    }

    /// [`open_cached`](Self::open_cached) beneath a working directory on which
    /// a separate file system is mounted, if its path still leads to that file
    /// system.
    fn open_near(
        &self,
        device: Device,
        relative: &str,
        flags: OFlags,
        links: Links,
    ) -> Option<OwnedFd> {
        let home = self.working_dir();
        let at = self.locate(&home, links).ok()?;
        let cached = ResolveFlags::CACHED;
        let opened = self.by_kernel(&at, at.as_str(), ABOVE, links, cached);
        let home = opened.ok()?;
        if device_of(&home)? != device {
            return None;
        }
        // Links that leave the working directory are left to the slower path.
        let resolve = cached | ResolveFlags::NO_XDEV | ResolveFlags::BENEATH;
        let relative = if relative.is_empty() { "." } else { relative };
        open_beneath(&home, relative, flags, links, resolve).ok()
    }

    /// Resolves `path` to an entry that is no link, in a directory that the kernel has
    /// cached.
    pub(crate) fn resolve_cached(&self, path: &VPath, links: Links) -> Option<ResolvedEntry> {
        let (parent, name) = (path.parent()?, OsStr::new(path.file_name()?));
        let directory = self.open_cached(&parent, ABOVE, links)?;
        let found = stat_at(&directory, name).ok()?;
        if found.is_some_and(|found| kind_of(&found) == FileType::Symlink) {
            return None;
        }
        Some(ResolvedEntry {
            directory,
            missing: Vec::new(),
            name: Some(name.to_owned()),
            found,
        })
    }

    /// Resolves `path` up to the first name that does not exist.
    pub(crate) fn resolve_entry(
        &self,
        path: &VPath,
        links: Links,
        last: LastLink,
    ) -> Result<ResolvedEntry> {
        let at = self.locate(path, links)?;
        if let Some((above, name)) = at.split()
            && let Ok(directory) = self.by_kernel(&at, above, ABOVE, links, ResolveFlags::empty())
        {
            let name = OsStr::new(name);
            let found = stat_at(&directory, name)?;
            let link = found
                .as_ref()
                .is_some_and(|found| kind_of(found) == FileType::Symlink);
            if !link || last == LastLink::Keep {
                return Ok(ResolvedEntry {
                    directory,
                    missing: Vec::new(),
                    name: Some(name.to_owned()),
                    found,
                });
            }
        }
        self.walk(&at, links, last)?.into_entry()
    }

    /// Follows every link in `path`.
    pub(crate) fn resolve(&self, path: &VPath) -> Result<VPath> {
        let at = self.locate(path, Links::Follow)?;
        let plain = self.by_kernel(
            &at,
            at.as_str(),
            ENTRY,
            Links::Refuse,
            ResolveFlags::empty(),
        );
        // The call may open a link in the last component, which must still be
        // followed.
        if let Ok(opened) = plain
            && !rustix::fs::fstat(&opened).is_ok_and(|found| kind_of(&found) == FileType::Symlink)
        {
            let names = at.relative.split('/');
            return at.root.path_of(names.filter(|name| !name.is_empty()));
        }
        self.walk(&at, Links::Follow, LastLink::Follow)?.path()
    }

    /// Asks the kernel. `AGAIN` means that the walk must decide.
    fn by_kernel(
        &self,
        at: &Location<'_>,
        relative: &str,
        flags: OFlags,
        links: Links,
        more: ResolveFlags,
    ) -> rustix::io::Result<OwnedFd> {
        if !self.kernel {
            return Err(Errno::AGAIN);
        }
        let confined = if at.root.everything {
            ResolveFlags::IN_ROOT
        } else {
            ResolveFlags::BENEATH
        };
        let mut opened = Err(Errno::AGAIN);
        for _ in 0..ATTEMPTS {
            opened = open_beneath(&at.root.handle, relative, flags, links, confined | more);
            // A concurrent rename makes the kernel unsure of `..`. Retrying
            // helps, except when only cached entries were asked for.
            if !matches!(opened, Err(Errno::AGAIN)) || more.contains(ResolveFlags::CACHED) {
                break;
            }
        }
        opened
    }

    fn walk<'s>(&'s self, at: &Location<'s>, links: Links, last: LastLink) -> Result<Walk<'s>> {
        let mut walk = Walk {
            fs: self,
            root: at.root,
            stack: Vec::new(),
            work: Vec::new(),
            links,
            last,
            followed: 0,
            missing: Vec::new(),
            end: None,
        };
        walk.push(Path::new(at.relative.as_ref()));
        walk.run()?;
        Ok(walk)
    }
}

/// A walk along a path, one name at a time.
///
/// The directories on the path stay open, so `..` in a link goes back to the
/// directory the walk came from, even if that has been moved meanwhile.
struct Walk<'s> {
    fs: &'s RootedFs,
    root: &'s Root,
    /// The directories entered beneath the root.
    stack: Vec<(OwnedFd, OsString)>,
    /// The rest of the path, in reverse order.
    work: Vec<OsString>,
    links: Links,
    last: LastLink,
    followed: usize,
    /// Directories that do not exist, beneath the last one that does.
    missing: Vec<OsString>,
    /// The last name, and the entry there.
    end: Option<(OsString, Option<Stat>)>,
}

impl Walk<'_> {
    fn directory(&self) -> &OwnedFd {
        let entered = self.stack.last();
        entered.map_or(&self.root.handle, |(directory, _)| directory)
    }

    /// Prepends a path to the remaining names.
    fn push(&mut self, path: &Path) {
        let bytes = path.as_os_str().as_bytes();
        let names = bytes.split(|byte| *byte == b'/').rev();
        // A path that ends in a slash means a directory. The dot keeps the name
        // in front of it from being treated as the last.
        let names = names.enumerate().filter_map(|(at, name)| match name {
            b"" if at == 0 => Some(&b"."[..]),
            b"" => None,
            name => Some(name),
        });
        self.work
            .extend(names.map(|name| OsStr::from_bytes(name).to_owned()));
    }

    fn run(&mut self) -> Result<()> {
        while let Some(name) = self.work.pop() {
            match name.as_bytes() {
                b"." => {}
                b".." => self.up()?,
                _ if !self.missing.is_empty() => self.missing.push(name),
                _ => self.enter(name)?,
            }
        }
        // The last missing name is the one that the path names.
        if self.end.is_none()
            && let Some(name) = self.missing.pop()
        {
            self.end = Some((name, None));
        }
        Ok(())
    }

    fn up(&mut self) -> Result<()> {
        if !self.missing.is_empty() {
            return Err(Error::not_found());
        }
        if self.stack.pop().is_none() && !self.root.everything {
            return Err(errno::link_leads_outside());
        }
        Ok(())
    }

    fn enter(&mut self, name: OsString) -> Result<()> {
        let is_last = self.work.is_empty();
        let entry = match open_at(self.directory(), &name, ENTRY) {
            Ok(entry) => entry,
            Err(Errno::NOENT) => {
                self.missing.push(name);
                return Ok(());
            }
            Err(error) => return Err(errno::error(error)),
        };
        let found = rustix::fs::fstat(&entry).map_err(errno::error)?;
        match kind_of(&found) {
            FileType::Symlink if is_last && self.last == LastLink::Keep => {
                self.end = Some((name, Some(found)));
            }
            FileType::Symlink => self.follow(&entry)?,
            _ if is_last => self.end = Some((name, Some(found))),
            FileType::Directory if self.stack.len() == PATH_DEPTH => {
                return Err(Error::new(
                    ErrorKind::InvalidPath,
                    format!(
                        "symbolic links lead deeper than {PATH_DEPTH} levels; name the file itself"
                    ),
                ));
            }
            FileType::Directory => self.stack.push((entry, name)),
            _ => return Err(Error::not_a_directory()),
        }
        Ok(())
    }

    fn follow(&mut self, link: &OwnedFd) -> Result<()> {
        if self.links == Links::Refuse {
            return Err(Error::is_a_link());
        }
        self.followed += 1;
        if self.followed > MAX_LINKS {
            return Err(Error::link_loop());
        }
        let text = rustix::fs::readlinkat(link, "", Vec::new()).map_err(errno::error)?;
        let text = OsString::from_vec(text.into_bytes());
        let text = Path::new(&text);
        if !text.is_absolute() {
            self.push(text);
            return Ok(());
        }
        let (root, rest) = self
            .fs
            .locate_link(text)
            .ok_or_else(errno::link_leads_outside)?;
        self.root = root;
        self.stack.clear();
        let bytes = text.as_os_str().as_bytes();
        if bytes.ends_with(b"/") || bytes.ends_with(b"/.") {
            // `rest` has lost its trailing slash or dot, which means a
            // directory.
            self.push(Path::new("."));
        }
        self.push(&rest);
        Ok(())
    }

    /// Returns the path that it led to.
    fn path(self) -> Result<VPath> {
        let entered = self.stack.into_iter().map(|(_, name)| name);
        let end = self.end.map(|(name, _)| name);
        self.root.path_of(entered.chain(self.missing).chain(end))
    }

    fn into_entry(mut self) -> Result<ResolvedEntry> {
        let directory = match self.stack.pop() {
            Some((directory, _)) => directory,
            None => clone_handle(&self.root.handle)?,
        };
        let (name, found) = match self.end {
            Some((name, found)) => (Some(name), found),
            None => (
                None,
                Some(rustix::fs::fstat(&directory).map_err(errno::error)?),
            ),
        };
        Ok(ResolvedEntry {
            directory,
            missing: self.missing,
            name,
            found,
        })
    }
}
