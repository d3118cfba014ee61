//! The directories that rules may concern, as they were when they were last listed.

use std::collections::{HashMap, HashSet};
use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use backend_core::{Error, PathError, Result, VPath};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::rules::{Rules, State};
use super::watches::{Since, Watch, Watches};
use crate::fs::{LIST, Root, each_name, errno, kind_at};
use crate::supervisor::protocol::With;

/// Looks at a tree that keeps changing before it counts as known.
const ROUNDS: usize = 4;

/// The time to look further while directories are missing that were there. Large trees
/// take a while to be deleted, which looks the same.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause between these looks.
const PAUSE: Duration = Duration::from_millis(2);

/// The time after its last change from which another change to a directory shows for
/// certain in its times. More than a tick of any kernel.
const SETTLED: Duration = Duration::from_millis(20);

/// The same for a file system that keeps no more than seconds, or the times of another
/// machine's clock.
const SETTLED_LONG: Duration = Duration::from_secs(3);

/// Up to this many directories, comparing is faster than reading reports.
const FEW: usize = 4;

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

/// The directories beneath one of the backend's that rules may concern.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Each comes after the one that it lies in. `None` is one that is gone.
    directories: Vec<Option<Directory>>,
    gone: usize,
    lost: Lost,
}

/// Directories that were there and are missing. Each was deleted, or a command has moved
/// it from where it was not yet looked for to where it was looked for already.
#[derive(Debug, Default)]
struct Lost {
    entries: HashSet<(u64, u64)>,
    /// Whether there are more, which were gone before they could be looked at.
    is_more: bool,
}

impl Lost {
    fn add(&mut self, directory: &Directory) {
        match directory.stamp {
            Some(stamp) => {
                self.entries.insert(stamp.entry);
            }
            None => self.is_more = true,
        }
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.is_more
    }
}

#[derive(Debug)]
pub(super) struct Directory {
    /// The number of the one that it lies in, if it is not the first.
    above: Option<usize>,
    relative: CString,
    path: VPath,
    state: State,
    /// Whether it is denied as a whole, and only looked through for files that have
    /// other names.
    is_inside: bool,
    /// As it was when it was listed, if it could be.
    stamp: Option<Stamp>,
    /// Whether its last change was long enough before that.
    is_settled: bool,
    /// From before it was listed, if it is watched.
    watch: Option<Watch>,
    children: Vec<usize>,
    found: Vec<Found>,
}

/// The properties that change with a directory's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    entry: (u64, u64),
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Stamp {
    fn new(found: &Stat) -> Self {
        Self {
            entry: (found.st_dev, found.st_ino),
            modified: (found.st_mtime, found.st_mtime_nsec),
            changed: (found.st_ctime, found.st_ctime_nsec),
        }
    }

    fn is_settled(&self, is_watched: bool) -> bool {
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
struct Above {
    number: usize,
    /// `None` if it is to be listed again.
    entry: Option<(u64, u64)>,
}

impl Above {
    /// Whether an open directory lies in it.
    fn holds(&self, directory: &OwnedFd) -> bool {
        let found = rustix::fs::statat(directory, c"..", AtFlags::empty());
        found.is_ok_and(|found| self.entry == Some(Stamp::new(&found).entry))
    }
}

/// The whereabouts of a directory that could not be opened.
enum Missing {
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

/// Waits until the tree is worth another look.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing reports that a tree stays as it is"
)]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// The error for what is not found because it is being moved.
pub(super) fn moved() -> Error {
    Error::unavailable(
        "directories in which files are denied are being moved, so it is not known where the files \
         are; run it again when that is over",
    )
}

impl Tree {
    /// Brings the tree up to date. `links` asks for files in denied directories, too,
    /// that have other names.
    pub(super) fn update(&mut self, root: &Root, rules: &Rules, links: bool) -> Result<()> {
        if self.gone * 2 > self.directories.len() {
            // A directory that is not found again counts as missing.
            for directory in std::mem::take(&mut self.directories).iter().flatten() {
                self.lost.add(directory);
            }
            self.gone = 0;
        }
        if self.directories.is_empty() {
            // Directories of others, which are used no longer, may take all the room.
            if let Some(watches) = Watches::shared() {
                watches.read();
            }
            let path = root.path_of([] as [&str; 0])?;
            let state = rules.start(&path);
            self.directories
                .push(Some(Directory::new(c".".into(), path, state, false)));
        }
        let began = Instant::now();
        for round in 0.. {
            let mut same = true;
            let mut number = 0;
            if let Some(watches) = self.watches() {
                watches.read();
            }
            // Listing one may add others at the end.
            while number < self.directories.len() {
                if !self.check(root, number, round > 0) {
                    same = false;
                    self.list(root, number, rules, links)?;
                }
                number += 1;
            }
            if same {
                // Nothing was moved meanwhile, so what is missing was deleted.
                self.lost = Lost::default();
                return Ok(());
            }
            if round >= ROUNDS {
                if self.is_nothing_lost() {
                    return Ok(());
                }
                if began.elapsed() > PATIENCE {
                    break;
                }
                pause();
            }
        }
        Err(moved())
    }

    fn watches(&self) -> Option<&'static Watches> {
        (self.directories.len() > FEW)
            .then(Watches::shared)
            .flatten()
    }

    /// Whether every directory that was missing was found again.
    fn is_nothing_lost(&mut self) -> bool {
        if !self.lost.entries.is_empty() {
            let there = self.directories.iter().flatten();
            for stamp in there.filter_map(|one| one.stamp) {
                self.lost.entries.remove(&stamp.entry);
            }
        }
        self.lost.is_empty()
    }

    /// Returns the directories in which something is denied.
    pub(super) fn with_found(&self) -> impl Iterator<Item = &Directory> {
        let there = self.directories.iter().flatten();
        there.filter(|one| !one.found.is_empty())
    }

    /// Returns whether a directory is as it was when it was listed. `is_later` is said of
    /// all looks of one update but the first: that lists it again if it had changed just
    /// before.
    fn check(&mut self, root: &Root, number: usize, is_later: bool) -> bool {
        let (watches, above) = (self.watches(), self.above(number));
        let directory = self.directories.get_mut(number).and_then(Option::as_mut);
        directory.is_none_or(|one| one.check(root, above, watches, is_later))
    }

    /// Returns the number of the directory that another lies in, with its entry when it was
    /// listed.
    fn above(&self, number: usize) -> Option<Above> {
        let number = self.at(number)?.above?;
        let stamp = self.at(number).and_then(|above| above.stamp);
        Some(Above {
            number,
            entry: stamp.map(|stamp| stamp.entry),
        })
    }

    /// Lists a directory again.
    fn list(&mut self, root: &Root, number: usize, rules: &Rules, links: bool) -> Result<()> {
        let (watches, above) = (self.watches(), self.above(number));
        let Some(directory) = self.directories.get_mut(number).and_then(Option::as_mut) else {
            return Ok(());
        };
        let before = directory.stamp;
        let listed = match (directory.read(root, rules, links, above, watches), above) {
            (Ok(listed), _) => listed,
            (Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP), Some(above)) => {
                match directory.look_for(root, above) {
                    // It cannot come back without a change of the one above, which shows.
                    Missing::Gone => {
                        self.remove(number);
                        if !self.at(above.number).is_some_and(Directory::shows_changes) {
                            self.forget(above.number);
                        }
                        return Ok(());
                    }
                    Missing::Moved => {
                        self.remove(number);
                        self.forget(above.number);
                        return Ok(());
                    }
                    Missing::Unopened(stamp) => {
                        directory.stamp = Some(stamp);
                        directory.is_settled = false;
                        Vec::new()
                    }
                }
            }
            // A command, which is its owner too, could make it readable, or knows what is
            // in it.
            (Err(Errno::ACCESS | Errno::PERM), Some(_)) => {
                directory.close(root, rules);
                Vec::new()
            }
            (Err(error), _) => {
                // Not all of it may be known, so it is listed again.
                self.lost.add(directory);
                directory.forget();
                return Err(errno::error(error));
            }
        };
        let entry = |stamp: Stamp| stamp.entry;
        let moved = before
            .map(entry)
            .filter(|before| directory.stamp.map(entry) != Some(*before));
        self.lost.entries.extend(moved);
        self.adopt(number, listed);
        Ok(())
    }

    /// Puts the directories that were listed in another beneath it. Those that are known
    /// stay.
    fn adopt(&mut self, number: usize, listed: Vec<Directory>) {
        let mut known: HashMap<CString, usize> = HashMap::new();
        for child in self.children(number) {
            if let Some(one) = self.at(child) {
                known.insert(one.relative.clone(), child);
            }
        }
        let mut children = Vec::with_capacity(listed.len());
        for mut child in listed {
            child.above = Some(number);
            let same = |one: &usize| {
                self.at(*one)
                    .is_some_and(|one| one.state == child.state && one.is_inside == child.is_inside)
            };
            if let Some(kept) = known.get(&child.relative).copied().filter(same) {
                known.remove(&child.relative);
                children.push(kept);
                // It has the name, and may be another.
                let kept = self.directories.get_mut(kept).and_then(Option::as_mut);
                if let Some(watch) = kept.and_then(|one| one.watch.as_mut()) {
                    watch.doubt();
                }
            } else {
                children.push(self.directories.len());
                self.directories.push(Some(child));
            }
        }
        known.into_values().for_each(|child| self.remove(child));
        if let Some(Some(directory)) = self.directories.get_mut(number) {
            directory.children = children;
        }
    }

    fn at(&self, number: usize) -> Option<&Directory> {
        self.directories.get(number).and_then(Option::as_ref)
    }

    fn children(&self, number: usize) -> Vec<usize> {
        let directory = self.at(number);
        directory.map_or_else(Vec::new, |one| one.children.clone())
    }

    /// Has a directory listed again in the next look.
    fn forget(&mut self, number: usize) {
        let directory = self.directories.get_mut(number).and_then(Option::as_mut);
        if let Some(directory) = directory.filter(|one| one.stamp.is_some()) {
            self.lost.add(directory);
            directory.forget();
        }
    }

    /// Forgets a directory and those beneath it.
    fn remove(&mut self, number: usize) {
        let mut doomed = vec![number];
        while let Some(number) = doomed.pop() {
            let removed = self.directories.get_mut(number).and_then(Option::take);
            if let Some(removed) = removed {
                self.gone += 1;
                self.lost.add(&removed);
                doomed.extend(removed.children);
            }
        }
    }
}

impl Directory {
    fn new(relative: CString, path: VPath, state: State, is_inside: bool) -> Self {
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
    fn forget(&mut self) {
        self.stamp = None;
        self.watch = None;
        self.is_settled = false;
    }

    /// See [`Tree::check`].
    fn check(
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
                // From here on, only its own move is reported.
                let is_known = self.is_settled && self.is_same_in(root, above);
                if let Some(watch) = self.watch.as_mut().filter(|_| is_known) {
                    watch.confirm(mounts);
                }
                is_known
            }
        }
    }

    /// Whether every change since it was listed is reported, or shows in its times.
    fn shows_changes(&self) -> bool {
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
    fn look_for(&self, root: &Root, above: Above) -> Missing {
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
    fn read(
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
    fn close(&mut self, root: &Root, rules: &Rules) {
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use backend_core::ops::View;
    use backend_core::search::Exclude;
    use rustix::fs::{CWD, RenameFlags};

    use super::*;
    use crate::LocalBackend;
    use crate::fs::RootedFs;

    const SECRET: &str = "g/p/c/.env";

    /// A tree with `g/p/c` and `other/p/c`, one of which has a denied file.
    struct Place {
        directory: tempfile::TempDir,
        local: RootedFs,
        rules: Rules,
        tree: Tree,
    }

    impl Place {
        fn new(secret: &str) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let at = |path: &str| directory.path().join(path);
            let directories = ["g/p/c", "other/p/c", "more/one", "more/two"];
            directories
                .iter()
                .for_each(|path| fs::create_dir_all(at(path)).unwrap());
            fs::write(at(secret), "").unwrap();
            // What has just changed is listed again in any case.
            let settled = |path: &str| {
                let found = rustix::fs::stat(at(path)).unwrap();
                Stamp::new(&found).is_settled(true)
            };
            let paths = ["", "g", "g/p", "g/p/c", "other/p", "other/p/c"];
            while !paths.into_iter().all(settled) {
                pause();
            }
            let deny = Exclude::hide([".env"]).unwrap();
            let local = RootedFs::open(&LocalBackend::builder(directory.path())).unwrap();
            let mut place = Self {
                directory,
                local,
                rules: Rules::new(&View::new(deny, Exclude::none())),
                tree: Tree::default(),
            };
            assert_eq!(place.found(), [secret]);
            place
        }

        /// Brings the tree up to date, and returns what is denied.
        fn found(&mut self) -> Vec<String> {
            let root = &self.local.roots()[0];
            self.tree.update(root, &self.rules, false).unwrap();
            let found = self.tree.with_found().flat_map(|one| one.entries());
            let names = found.map(|one| one.relative.to_str().unwrap().to_owned());
            names.collect()
        }

        /// Looks at one directory, as an update does.
        fn look(&mut self, path: &str) {
            let root = &self.local.roots()[0];
            let is_meant = |one: &Directory| one.relative.to_str() == Ok(path);
            let mut numbers = 0..self.tree.directories.len();
            let number = numbers
                .find(|number| self.tree.at(*number).is_some_and(is_meant))
                .unwrap();
            Watches::shared().unwrap().read();
            if !self.tree.check(root, number, true) {
                self.tree.list(root, number, &self.rules, false).unwrap();
            }
        }

        fn rename(&self, from: &str, to: &str) {
            let at = |path: &str| self.directory.path().join(path);
            fs::rename(at(from), at(to)).unwrap();
        }

        /// Has `g` and `other` change places.
        fn exchange(&self) {
            let [one, other] = ["g", "other"].map(|name| self.directory.path().join(name));
            rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
        }

        /// Has a directory listed in the next look.
        fn touch(&self, path: &str) {
            fs::write(self.directory.path().join(path).join("new"), "").unwrap();
        }
    }

    #[test]
    fn a_directory_that_was_away_for_a_moment_is_found_again() {
        let mut place = Place::new(SECRET);
        place.touch("g/p/c");
        place.rename("g", "away");
        place.look("g/p/c");
        place.rename("away", "g");
        assert_eq!(place.found(), [SECRET]);
    }

    #[test]
    fn a_directory_in_whose_place_another_was_for_a_moment_is_listed_again() {
        let mut place = Place::new(SECRET);
        place.touch("g/p/c");
        place.exchange();
        place.look("g/p/c");
        place.exchange();
        assert_eq!(place.found(), [SECRET]);
    }

    #[test]
    fn a_directory_that_was_back_for_a_moment_is_not_taken_for_the_one_that_is_there() {
        let mut place = Place::new("other/p/c/.env");
        place.exchange();
        [".", "g", "g/p"].iter().for_each(|path| place.look(path));
        place.exchange();
        place.look("g/p/c");
        place.exchange();
        assert_eq!(place.found(), [SECRET]);
    }

    #[test]
    #[allow(clippy::print_stdout, reason = "says what was not tested")]
    fn one_that_may_not_be_listed_counts_as_moved_until_it_is_read_again() {
        if rustix::process::geteuid().is_root() {
            println!("skipped: root may list everything");
            return;
        }
        let place = Place::new(SECRET);
        let at = place.directory.path().join("g/p/c");
        let mode = |bits| <fs::Permissions as PermissionsExt>::from_mode(bits);
        fs::set_permissions(&at, mode(0)).unwrap();
        let root = &place.local.roots()[0];
        let is_meant = |one: &Directory| one.relative.to_bytes() == b"g/p/c";
        let mut numbers = 0..place.tree.directories.len();
        let number = numbers.find(|number| place.tree.at(*number).is_some_and(is_meant));
        let above = place.tree.above(number.unwrap()).unwrap();
        let directory = place.tree.at(number.unwrap()).unwrap();
        assert!(matches!(directory.look_for(root, above), Missing::Moved));
        fs::set_permissions(&at, mode(0o755)).unwrap();
    }

    #[test]
    fn a_deleted_directory_leaves_the_one_above_as_it_is() {
        let mut place = Place::new(SECRET);
        fs::remove_dir_all(place.directory.path().join("g/p/c")).unwrap();
        place.look("g/p/c");
        let is_above = |one: &&Directory| one.relative.to_bytes() == b"g/p";
        let above = place.tree.directories.iter().flatten().find(is_above);
        assert!(above.unwrap().stamp.is_some());
        assert!(place.found().is_empty());
    }
}
