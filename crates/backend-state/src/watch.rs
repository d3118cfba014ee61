//! Tells watchers what a change did, by comparing the trees before and after it.
//!
//! Both share everything that did not change, so the comparison costs about as much
//! as the change.

use std::sync::{Arc, Mutex};

use backend_core::VPath;
use backend_core::ops::{Change, WatchQuery};
use backend_core::sync::lock;
use backend_core::watch::{ChangeSender, ChangeStream, channel};
use imbl::ordmap::DiffItem;

use crate::tree::{Directory, Node, Tree};

/// The watches of a store.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<Vec<Watcher>>);

#[derive(Debug)]
struct Watcher {
    query: WatchQuery,
    sender: ChangeSender,
}

impl Watchers {
    /// Adds a watch of a directory that exists.
    pub(crate) fn add(&self, query: WatchQuery) -> ChangeStream {
        let (sender, stream) = channel();
        lock(&self.0).push(Watcher { query, sender });
        stream
    }

    /// Tells a change of the tree. `moved` is the move that it was, if it was one.
    ///
    /// Called while the tree is locked, so that changes are told in their order.
    pub(crate) fn tell(&self, before: &Tree, after: &Tree, moved: Option<(&VPath, &VPath)>) {
        let mut watchers = lock(&self.0);
        watchers.retain(|watcher| {
            if !watcher.sender.is_closed() {
                watcher.tell(before, after, moved);
            }
            !watcher.sender.is_closed()
        });
    }
}

impl Watcher {
    fn tell(&self, before: &Tree, after: &Tree, moved: Option<(&VPath, &VPath)>) {
        let path = &self.query.path;
        let (Ok(Node::Directory(old)), Ok(Node::Directory(new))) =
            (before.get(path), after.get(path))
        else {
            self.sender.gone(path.clone());
            return;
        };
        match moved {
            Some((from, to)) => self.moved(before, after, from, to),
            None => self.compare(path, &old, &new),
        }
    }

    fn change(&self, change: Change) {
        if self.query.tells(&change.path) {
            self.sender.tell(change);
        }
    }

    fn moved(&self, before: &Tree, after: &Tree, from: &VPath, to: &VPath) {
        for parent in to.ancestors() {
            if before.get(&parent).is_err() {
                self.change(Change::created(parent));
            }
        }
        let shown = |path: &VPath| self.query.tells(path);
        let replaced = before.get(to).is_ok();
        match Change::renamed(from.clone(), to.clone()).narrowed(shown) {
            Some(change) if replaced && change == Change::created(to.clone()) => {
                self.sender.tell(Change::changed(to.clone()));
            }
            Some(change) => self.sender.tell(change),
            None => {}
        }
        // Entries that were left out at their old path may be told at the new one.
        let all_told = shown(from) && self.query.exclude.is_none();
        if self.query.recursive
            && !all_told
            && let Ok(Node::Directory(directory)) = after.get(to)
        {
            self.appeared(to, &directory, &|path| {
                path.rebase(to, from).is_ok_and(|old| shown(&old))
            });
        }
    }

    /// Tells the entries of a new directory, except those that `known` accepts.
    fn appeared(&self, path: &VPath, directory: &Directory, known: &dyn Fn(&VPath) -> bool) {
        for (name, node) in &directory.entries {
            let Ok(path) = path.child(name) else { continue };
            if self.sender.is_overflowed() {
                return;
            }
            if !known(&path) {
                self.change(Change::created(path.clone()));
            }
            if let Node::Directory(directory) = node {
                self.appeared(&path, directory, known);
            }
        }
    }

    fn created(&self, path: VPath, node: &Node) {
        self.change(Change::created(path.clone()));
        if let (Node::Directory(directory), true) = (node, self.query.recursive) {
            self.appeared(&path, directory, &|_| false);
        }
    }

    /// Tells that an entry is gone, after everything that was in it.
    fn deleted(&self, path: VPath, node: &Node) {
        if let (Node::Directory(directory), true) = (node, self.query.recursive) {
            for (name, node) in &directory.entries {
                if self.sender.is_overflowed() {
                    return;
                }
                if let Ok(path) = path.child(name) {
                    self.deleted(path, node);
                }
            }
        }
        self.change(Change::deleted(path));
    }

    /// Tells the differences of two states of a directory.
    fn compare(&self, path: &VPath, old: &Arc<Directory>, new: &Arc<Directory>) {
        if Arc::ptr_eq(old, new) {
            return;
        }
        for difference in old.entries.diff(&new.entries) {
            let (DiffItem::Add(name, _)
            | DiffItem::Remove(name, _)
            | DiffItem::Update { new: (name, _), .. }) = &difference;
            let Ok(path) = path.child(name) else { continue };
            match difference {
                DiffItem::Add(_, node) => self.created(path, node),
                DiffItem::Remove(_, node) => self.deleted(path, node),
                DiffItem::Update {
                    old: (_, old),
                    new: (_, new),
                } => match (old, new) {
                    (Node::File(_), Node::File(_)) => self.change(Change::changed(path)),
                    (Node::Directory(old), Node::Directory(new)) => {
                        if self.query.recursive {
                            self.compare(&path, old, new);
                        }
                    }
                    _ => {
                        self.deleted(path.clone(), old);
                        self.created(path, new);
                    }
                },
            }
        }
    }
}
