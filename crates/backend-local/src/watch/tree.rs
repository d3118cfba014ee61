//! The watched directories and the names in them, without I/O.
//!
//! The kernel tells a watch and a name. The tree knows the path of the watch, also after
//! a directory above it was moved, and whether the name was told before: then a file
//! that arrives under it replaces one. Only hashes of names are kept, so a file costs a
//! few bytes.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;

use backend_core::limits::WATCH_ENTRIES;
use backend_core::{Error, Result};

/// The number of a watch, as the kernel gives it.
pub(super) type Watch = i32;

/// A watched directory.
#[derive(Debug)]
struct Directory {
    /// The directory it is in; itself for the top.
    parent: Watch,
    name: Box<str>,
    /// Hashes of the names in it that are told.
    known: HashSet<u64>,
    /// The watched directories in it.
    directories: HashMap<Box<str>, Watch>,
    /// The scan that last found it.
    scan: u64,
}

/// The watched directories, by watch.
#[derive(Debug)]
pub(super) struct Tree {
    directories: HashMap<Watch, Directory>,
    top: Watch,
    /// Names that are known, and directories.
    entries: usize,
    hasher: RandomState,
    scan: u64,
}

impl Tree {
    pub(super) fn new(top: Watch) -> Self {
        let mut tree = Self {
            directories: HashMap::new(),
            top,
            entries: 0,
            hasher: RandomState::new(),
            scan: 0,
        };
        tree.insert(top, top, "");
        tree
    }

    pub(super) fn top(&self) -> Watch {
        self.top
    }

    fn insert(&mut self, watch: Watch, parent: Watch, name: &str) {
        let directory = Directory {
            parent,
            name: name.into(),
            known: HashSet::new(),
            directories: HashMap::new(),
            scan: self.scan,
        };
        self.directories.insert(watch, directory);
        self.entries += 1;
    }

    /// Returns the path of a directory relative to the top; `None` if it is not watched.
    pub(super) fn path(&self, mut watch: Watch) -> Option<String> {
        let mut names = Vec::new();
        while watch != self.top {
            let directory = self.directories.get(&watch)?;
            names.push(&*directory.name);
            watch = directory.parent;
        }
        names.reverse();
        Some(names.join("/"))
    }

    /// Returns the place of a directory: the one it is in, and its name there.
    pub(super) fn place(&self, watch: Watch) -> Option<(Watch, Box<str>)> {
        let directory = self.directories.get(&watch)?;
        Some((directory.parent, directory.name.clone()))
    }

    /// Whether the current scan has found a directory already.
    pub(super) fn was_found(&self, watch: Watch) -> bool {
        let directory = self.directories.get(&watch);
        directory.is_some_and(|directory| directory.scan == self.scan)
    }

    /// Records that a directory is in `parent` now. Returns whether that can be: not if
    /// `parent` is gone, or lies in it, because the same directory is mounted twice.
    pub(super) fn attach(&mut self, parent: Watch, name: &str, watch: Watch) -> bool {
        let mut above = parent;
        loop {
            if above == watch {
                return false;
            }
            match self.directories.get(&above) {
                Some(_) if above == self.top => break,
                Some(directory) => above = directory.parent,
                None => return false,
            }
        }
        if self.directories.contains_key(&watch) {
            self.detach(watch);
        } else {
            self.insert(watch, parent, name);
        }
        let scan = self.scan;
        if let Some(directory) = self.directories.get_mut(&watch) {
            directory.parent = parent;
            directory.name = name.into();
            directory.scan = scan;
        }
        if let Some(parent) = self.directories.get_mut(&parent) {
            parent.directories.insert(name.into(), watch);
        }
        true
    }

    /// Removes a directory from the one it is in.
    fn detach(&mut self, watch: Watch) {
        let Some(directory) = self.directories.get(&watch) else {
            return;
        };
        let (parent, name) = (directory.parent, directory.name.clone());
        if let Some(parent) = self.directories.get_mut(&parent)
            && parent.directories.get(&name) == Some(&watch)
        {
            parent.directories.remove(&name);
        }
    }

    /// Returns the watched directory `name` in `parent`.
    pub(super) fn child(&self, parent: Watch, name: &str) -> Option<Watch> {
        self.directories
            .get(&parent)?
            .directories
            .get(name)
            .copied()
    }

    /// Forgets a directory and everything in it. Returns their watches.
    pub(super) fn remove(&mut self, watch: Watch) -> Vec<Watch> {
        self.detach(watch);
        let mut removed = Vec::new();
        let mut pending = vec![watch];
        while let Some(watch) = pending.pop() {
            if let Some(directory) = self.directories.remove(&watch) {
                self.entries -= directory.known.len() + 1;
                pending.extend(directory.directories.values());
                removed.push(watch);
            }
        }
        removed
    }

    fn hash(&self, name: &str) -> u64 {
        self.hasher.hash_one(name)
    }

    /// Records that a name was told. Returns whether it is new.
    ///
    /// Fails if the tree is larger than a watch may be.
    pub(super) fn add_name(&mut self, watch: Watch, name: &str) -> Result<bool> {
        let hash = self.hash(name);
        let Some(directory) = self.directories.get_mut(&watch) else {
            return Ok(false);
        };
        let is_new = directory.known.insert(hash);
        self.entries += usize::from(is_new);
        if self.entries > WATCH_ENTRIES {
            return Err(Error::too_large(format!(
                "the tree has more than the {WATCH_ENTRIES} entries that one watch takes; watch or exclude a part of it"
            )));
        }
        Ok(is_new)
    }

    pub(super) fn knows(&self, watch: Watch, name: &str) -> bool {
        let directory = self.directories.get(&watch);
        directory.is_some_and(|directory| directory.known.contains(&self.hash(name)))
    }

    /// Forgets a name. Returns whether it was known.
    pub(super) fn remove_name(&mut self, watch: Watch, name: &str) -> bool {
        let hash = self.hash(name);
        let Some(directory) = self.directories.get_mut(&watch) else {
            return false;
        };
        let was_known = directory.known.remove(&hash);
        self.entries -= usize::from(was_known);
        was_known
    }

    /// Begins a scan of the whole tree, after which everything that it did not find is
    /// removed by [`end_scan`](Self::end_scan).
    pub(super) fn begin_scan(&mut self) {
        self.scan += 1;
        for directory in self.directories.values_mut() {
            self.entries -= directory.known.len();
            directory.known = HashSet::new();
        }
        if let Some(top) = self.directories.get_mut(&self.top) {
            top.scan = self.scan;
        }
    }

    /// Ends a scan. Returns the watches of directories that are gone.
    pub(super) fn end_scan(&mut self) -> Vec<Watch> {
        let scan = self.scan;
        let gone = self.directories.iter();
        let gone = gone.filter(|(_, directory)| directory.scan != scan);
        let gone: Vec<Watch> = gone.map(|(watch, _)| *watch).collect();
        gone.into_iter()
            .flat_map(|watch| self.remove(watch))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_moves() {
        let mut tree = Tree::new(1);
        assert!(tree.attach(1, "a", 2));
        assert!(tree.attach(2, "b", 3));
        assert_eq!(tree.path(3).as_deref(), Some("a/b"));
        assert!(tree.attach(1, "c", 2));
        assert_eq!(tree.path(3).as_deref(), Some("c/b"));
        assert_eq!((tree.child(1, "a"), tree.child(1, "c")), (None, Some(2)));
        assert!(!tree.attach(3, "loop", 2));
        assert!(!tree.attach(9, "x", 4));
        let mut removed = tree.remove(2);
        removed.sort_unstable();
        assert_eq!(removed, [2, 3]);
        assert_eq!((tree.path(3), tree.entries), (None, 1));
    }

    #[test]
    fn names_are_known_once() {
        let mut tree = Tree::new(1);
        assert!(tree.add_name(1, "a").unwrap());
        assert!(!tree.add_name(1, "a").unwrap());
        assert!(tree.knows(1, "a") && !tree.knows(1, "b"));
        assert!(tree.remove_name(1, "a") && !tree.remove_name(1, "a"));
        assert_eq!(tree.entries, 1);
    }

    #[test]
    fn a_scan_removes_what_it_does_not_find() {
        let mut tree = Tree::new(1);
        tree.attach(1, "a", 2);
        tree.attach(1, "b", 3);
        tree.add_name(1, "a").unwrap();
        tree.begin_scan();
        tree.attach(1, "c", 3);
        assert_eq!(tree.end_scan(), [2]);
        assert_eq!(tree.path(3).as_deref(), Some("c"));
        assert_eq!(tree.entries, 2);
    }
}
