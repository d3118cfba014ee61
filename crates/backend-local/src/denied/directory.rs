//! A directory that rules may concern: listing it, and comparing it with what it was.

use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backend_core::{PathError, Result, VPath};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::rules::{Rules, State};
use super::watches::{Since, Watch, Watches};
use crate::fs::{LIST, Root, each_name, errno, kind_at};
use crate::supervisor::protocol::With;

/// The time after its last change from which another change to a directory shows for
/// certain in its times. More than a tick of any kernel.
const SETTLED: Duration = Duration::from_millis(20);

/// The same for a file system that keeps no more than seconds, or the times of another
/// machine's clock.
const SETTLED_LONG: Duration = Duration::from_secs(3);

/// A denied entry.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// The path beneath the backend's directory.
    pub(super) relative: CString,
    /// Its name in the directory that was listed. Empty if it is that directory.
    pub(super) name: CString,
    pub(super) path: VPath,
    pub(super) with: With,
    /// Whether it is a symbolic link.
    pub(super) is_link: bool,
    /// Whether it lies in a directory that is denied as a whole.
    pub(super) is_inside: bool,
    /// Whether it is denied for where it is: see [`Rules::is_anchored`].
    pub(super) is_anchored: bool,
}

/// A directory, as it was when it was listed.
#[derive(Debug)]
pub(super) struct Directory {
    /// The number of the one that it lies in, if it is not the first.
    pub(super) above: Option<usize>,
    pub(super) relative: CString,
    path: VPath,
    pub(super) state: State,
    /// Whether it is denied as a whole, and only looked through for files that have
    /// other names.
    pub(super) is_inside: bool,
    /// As it was when it was listed, if it could be.
    pub(super) stamp: Option<Stamp>,
    /// Whether its last change was long enough before that.
    pub(super) is_settled: bool,
    /// From before it was listed, if it is watched.
    pub(super) watch: Option<Watch>,
    pub(super) children: Vec<usize>,
    pub(super) found: Vec<Found>,
}

/// The properties that change with a directory's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) entry: (u64, u64),
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Stamp {
    pub(super) fn new(found: &Stat) -> Self {
        Self {
            entry: (found.st_dev, found.st_ino),
            modified: (found.st_mtime, found.st_mtime_nsec),
            changed: (found.st_ctime, found.st_ctime_nsec),
        }
    }

    pub(super) fn is_settled(&self, is_watched: bool) -> bool {
        let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH) else {
            return false;
        };
        let [modified, changed] = [self.modified, self.changed]
            .map(|(seconds, nanos)| Duration::new(seconds.unsigned_abs(), nanos as u32));
        let is_coarse = modified.subsec_nanos() == 0 && changed.subsec_nanos() == 0;
        let settled = match is_coarse || !is_watched {
            true => SETTLED_LONG,
            false => SETTLED,
        };
        now.saturating_sub(changed.max(modified)) > settled
    }
}

/// The directory that another lies in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Above {
    pub(super) number: usize,
    /// `None` if it is to be listed again.
    pub(super) entry: Option<(u64, u64)>,
}

impl Above {
    /// Whether an open directory lies in it.
    fn holds(&self, directory: &OwnedFd) -> bool {
        let found = rustix::fs::statat(directory, c"..", AtFlags::empty());
        found.is_ok_and(|found| self.entry == Some(Stamp::new(&found).entry))
    }
}

/// The whereabouts of a directory that could not be opened.
pub(super) enum Missing {
    /// It is not in the directory above any more.
    Gone,
    /// It may be there again, or one above has been moved.
    Moved,
    /// It is there, and cannot be opened.
    Unopened(Stamp),
}

/// Opens a directory of the tree without access to its entries.
fn open_path(root: &Root, relative: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat2(&root.handle, relative, flags, Mode::empty(), resolve)
}

impl Directory {
    pub(super) fn new(relative: CString, path: VPath, state: State, is_inside: bool) -> Self {
        Self {
            above: None,
            relative,
            path,
            state,
            is_inside,
            stamp: None,
            is_settled: false,
            watch: None,
            children: Vec::new(),
            found: Vec::new(),
        }
    }

    pub(super) fn entries(&self) -> &[Found] {
        &self.found
    }

    /// Opens it, or returns `None` if it is not at its path any more.
    pub(super) fn open(&self, root: &Root) -> Result<Option<OwnedFd>> {
        match open_path(root, &self.relative) {
            Ok(opened) => {
                let stamp = Stamp::new(&rustix::fs::fstat(&opened).map_err(errno::error)?);
                let is_same = self.stamp.is_some_and(|listed| listed.entry == stamp.entry);
                Ok(is_same.then_some(opened))
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(None),
            Err(error) => Err(errno::error(error)),
        }
    }

    /// Takes nothing of the last listing for known.
    pub(super) fn forget(&mut self) {
        self.stamp = None;
        self.watch = None;
        self.is_settled = false;
    }

    /// Returns whether it is as it was when it was listed. `is_later` is said of all looks
    /// of one update but the first: that lists it again if it had changed just before.
    pub(super) fn check(
        &mut self,
        root: &Root,
        above: Option<Above>,
        watches: Option<&Watches>,
        is_later: bool,
    ) -> bool {
        let Some((watch, watches)) = self.watch.as_ref().zip(watches) else {
            return self.is_same(root) && (is_later || self.is_settled);
        };
        match watch.since(watches) {
            Since::Unchanged => true,
            Since::Changed => false,
            Since::Unknown => {
                let mounts = watches.mounts();
                // A move of one above is not reported here, so that one is compared, too.
                let is_known = self.is_settled && self.is_same_in(root, above);
                if let Some(watch) = self.watch.as_mut().filter(|_| is_known) {
                    watch.confirm(mounts);
                }
                is_known
            }
        }
    }

    /// Whether every change since it was listed is reported, or shows in its times.
    pub(super) fn shows_changes(&self) -> bool {
        self.watch.is_some() || self.is_settled
    }

    /// Compares it with what it was.
    fn is_same(&self, root: &Root) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = rustix::fs::statat(&root.handle, self.relative.as_c_str(), flags);
        let now = found.ok().map(|found| Stamp::new(&found));
        now.is_some() && now == self.stamp
    }

    /// Compares it with what it was, and the directory that it lies in.
    fn is_same_in(&self, root: &Root, above: Option<Above>) -> bool {
        let look = || -> Result<bool, Errno> {
            let opened = open_path(root, &self.relative)?;
            let now = Stamp::new(&rustix::fs::fstat(&opened)?);
            Ok(Some(now) == self.stamp && above.is_none_or(|above| above.holds(&opened)))
        };
        look().unwrap_or(false)
    }

    /// Looks for one that could not be opened in the directory that it lies in.
    pub(super) fn look_for(&self, root: &Root, above: Above) -> Missing {
        let relative = self.relative.as_bytes();
        let (place, name) = match relative.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&relative[..slash], &relative[slash + 1..]),
            None => (b".".as_slice(), relative),
        };
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let look = || -> Result<Missing, Errno> {
            let place = open_path(root, place)?;
            if above.entry != Some(Stamp::new(&rustix::fs::fstat(&place)?).entry) {
                return Ok(Missing::Moved);
            }
            let found = match rustix::fs::statat(&place, name, flags) {
                Ok(found) if FileType::from_raw_mode(found.st_mode).is_dir() => Stamp::new(&found),
                Ok(_) | Err(Errno::NOENT) => return Ok(Missing::Gone),
                Err(error) => return Err(error),
            };
            let flags = LIST | OFlags::NOFOLLOW;
            Ok(
                match rustix::fs::openat(&place, name, flags, Mode::empty()) {
                    // One that was moved has just changed. Another error is that of one that is
                    // there, and is denied as a whole.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if found.is_settled(true) => {
                        Missing::Unopened(found)
                    }
                    _ => Missing::Moved,
                },
            )
        };
        look().unwrap_or(Missing::Moved)
    }

    /// Lists it, and returns the directories in it to look at.
    pub(super) fn read(
        &mut self,
        root: &Root,
        rules: &Rules,
        links: bool,
        above: Option<Above>,
        watches: Option<&Watches>,
    ) -> Result<Vec<Self>, Errno> {
        self.found.clear();
        let before = self.watch.take();
        let mounts = watches.map(Watches::mounts);
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = LIST | OFlags::NOFOLLOW;
        let relative = self.relative.as_c_str();
        let opened = rustix::fs::openat2(&root.handle, relative, flags, Mode::empty(), resolve);
        let opened = opened?;
        // By name: it may be one that can be listed, and of which nothing can be opened.
        let stamp = rustix::fs::statat(&opened, c".", AtFlags::empty())?;
        let stamp = Stamp::new(&stamp);
        let watch = watches.zip(mounts);
        let watch =
            watch.and_then(|(watches, mounts)| watches.watch(&opened, mounts, before.is_some()));
        let is_settled = stamp.is_settled(watch.is_some());
        // Once it is watched, so that a move is reported from here on.
        if above.is_some_and(|above| !above.holds(&opened)) {
            return Err(Errno::NOENT);
        }
        let (mut found, mut children) = (Vec::new(), Vec::new());
        let listed = each_name(&opened, |name, kind| {
            let kind = match kind {
                FileType::Unknown => match kind_at(&opened, name)? {
                    Some(kind) => kind,
                    None => return Ok(()),
                },
                kind => kind,
            };
            self.look_at(name, kind, rules, links, &mut found, &mut children);
            Ok(())
        });
        listed.map_err(|_| Errno::IO)?;
        self.found = found;
        self.watch = watch;
        self.is_settled = is_settled;
        self.stamp = Some(stamp);
        Ok(children)
    }

    fn look_at(
        &self,
        name: &OsStr,
        kind: FileType,
        rules: &Rules,
        links: bool,
        found: &mut Vec<Found>,
        children: &mut Vec<Self>,
    ) {
        let is_directory = kind == FileType::Directory;
        let may_be_denied = |name| rules.may_deny_file(&self.state, name);
        // Most names are those of files that no rule is about.
        if !is_directory && !self.is_inside && !name.to_str().is_none_or(may_be_denied) {
            return;
        }
        let shown = name.to_string_lossy();
        let path = match self.path.child(&shown) {
            Ok(path) => path,
            // A file that an operation is still writing. A mask would move with it to its
            // final name.
            Err(PathError::Reserved(_)) if !is_directory => return,
            // A command can make a directory with such a name and move others into it.
            Err(PathError::Reserved(_)) => match self.path.child(&format!(".{shown}")) {
                Ok(path) => path,
                Err(_) => return found.push(self.unknown(name, rules)),
            },
            // Too deep or too long to be judged.
            Err(_) => return found.push(self.unknown(name, rules)),
        };
        if self.is_inside {
            if is_directory {
                let state = self.state.clone();
                children.push(Self::new(self.beneath(name), path, state, true));
            } else if kind == FileType::RegularFile {
                found.push(self.found(name, path, With::Nothing, false, rules));
            }
            return;
        }
        let decision = rules.decide(&self.state, &path, is_directory);
        let is_looked_through = links && decision.mask == Some(With::Nothing);
        if is_directory && (decision.descend || is_looked_through) {
            let inside = !decision.descend;
            let child = Self::new(self.beneath(name), path.clone(), decision.state, inside);
            children.push(child);
        }
        if let Some(with) = decision.mask {
            found.push(self.found(name, path, with, kind == FileType::Symlink, rules));
        }
    }

    /// Denies it as a whole, because its entries cannot be known.
    pub(super) fn close(&mut self, root: &Root, rules: &Rules) {
        // Of exactly the one that cannot be listed: another may have been there before.
        let look = || -> Result<Option<Stamp>, Errno> {
            let opened = open_path(root, &self.relative)?;
            let stamp = Stamp::new(&rustix::fs::fstat(&opened)?);
            let again = rustix::fs::openat(&opened, c".", LIST, Mode::empty());
            Ok(again.is_err().then_some(stamp))
        };
        self.stamp = look().unwrap_or(None);
        self.watch = None;
        self.is_settled = self.stamp.is_some_and(|stamp| stamp.is_settled(false));
        if !self.is_inside {
            let with = rules.unknown(&self.state, &self.path);
            self.found = vec![Found {
                relative: self.relative.clone(),
                name: CString::default(),
                path: self.path.clone(),
                with,
                is_link: false,
                is_inside: false,
                is_anchored: rules.is_anchored(with, &self.path),
            }];
        }
    }

    /// Denies an entry of which the name cannot be judged.
    fn unknown(&self, name: &OsStr, rules: &Rules) -> Found {
        let with = rules.unknown(&self.state, &self.path);
        self.found(name, self.path.clone(), with, false, rules)
    }

    fn found(&self, name: &OsStr, path: VPath, with: With, is_link: bool, rules: &Rules) -> Found {
        Found {
            is_anchored: rules.is_anchored(with, &path),
            relative: self.beneath(name),
            // A name from the kernel has no NUL.
            name: CString::new(name.as_bytes()).unwrap_or_default(),
            path,
            with,
            is_link,
            is_inside: self.is_inside,
        }
    }

    /// Returns the path of an entry beneath the backend's directory.
    fn beneath(&self, name: &OsStr) -> CString {
        let mut path = match self.relative.as_bytes() {
            b"." => Vec::new(),
            above => [above, b"/"].concat(),
        };
        path.extend_from_slice(name.as_bytes());
        // A name from the kernel has no NUL.
        CString::new(path).unwrap_or_default()
    }
}
