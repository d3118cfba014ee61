//! The directories that rules may concern, as they were when they were last listed.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::time::{Duration, Instant};

use backend_core::{Error, Result};
use rustix::io::Errno;

use super::directory::{Above, Directory, Missing, Stamp};
use super::rules::Rules;
use super::watches::Watches;
use crate::fs::{Root, errno};

/// Looks at a tree that keeps changing before it counts as known.
const ROUNDS: usize = 4;

/// The time to look further while directories are missing that were there. Large trees
/// take a while to be deleted, which looks the same.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause between these looks.
const PAUSE: Duration = Duration::from_millis(2);

/// Up to this many directories, comparing is faster than reading reports.
const FEW: usize = 4;

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

    /// Returns whether a directory needs no listing: see [`Directory::check`].
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use backend_core::ops::View;
    use backend_core::search::Exclude;
    use rustix::fs::{CWD, RenameFlags};
    use rustix::thread::CapabilitySet;

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
            // A directory that has just changed would be listed again, with or without
            // the check that is tested.
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
    fn one_that_may_not_be_listed_counts_as_moved_until_it_is_read_again() {
        // Root's capabilities list everything. They are given up for good, by this thread.
        let checked = std::thread::spawn(look_without_capabilities);
        checked.join().unwrap();
    }

    fn look_without_capabilities() {
        let mut sets = rustix::thread::capabilities(None).unwrap();
        sets.effective = CapabilitySet::empty();
        rustix::thread::set_capabilities(None, sets).unwrap();
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
