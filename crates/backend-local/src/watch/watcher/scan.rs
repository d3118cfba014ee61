//! Finding and watching directories: when a watch begins, when a directory is new, and
//! after events were lost.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use backend_core::Result;
use backend_core::ops::Change;
use rustix::fs::inotify;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::{ENTRIES, Watcher, add_watch};
use crate::fs::{LIST, each_name, errno, is_temporary, kind_at, open_at, watch_refused};
use crate::watch::tree::Watch;

/// Reads that throw away old events after some were lost.
const DISCARDED_READS: usize = 64;

/// The reason for a scan, which decides what is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scan {
    /// The watch begins: nothing is told.
    First,
    /// Events were lost, which is told instead.
    Again,
    /// The directory is new, and so is everything in it.
    New,
    /// The directory was watched before. Its own events tell what is new, so only what no
    /// event tells is told: names that were left out at another path, and what is in
    /// directories that could not be opened.
    Repeated,
}

/// The directory that has a name.
pub(super) enum Found {
    /// It was not watched before.
    New(Watch),
    /// It is watched, at another place: it was moved from there.
    Elsewhere(Watch),
    /// It is watched at this place.
    Known,
    /// It cannot be watched, or a later event tells what became of it.
    Nothing,
}

impl Watcher {
    /// Ends the watches of a directory and of everything beneath it.
    pub(super) fn forget(&mut self, directory: Watch) {
        for watch in self.tree.remove(directory) {
            // The kernel has removed it already if the directory was deleted.
            let _ = inotify::remove_watch(&*self.inotify, watch);
        }
    }

    /// Watches and scans a directory that may be new.
    pub(super) fn enter(&mut self, parent: Watch, name: &str) -> Result<()> {
        let found = self.look(parent, name)?;
        self.entered(found, parent, name)
    }

    /// Watches a directory that may be new.
    pub(super) fn look(&mut self, parent: Watch, name: &str) -> Result<Found> {
        match self.open(parent)? {
            Some(directory) => self.attach(&directory, parent, name),
            None => Ok(Found::Nothing),
        }
    }

    /// Scans a directory that was found, if it is new.
    pub(super) fn entered(&mut self, found: Found, parent: Watch, name: &str) -> Result<()> {
        match found {
            Found::New(watch) => self.scan(watch, Scan::New),
            Found::Elsewhere(watch) => self.relocated(watch, parent, name),
            Found::Known | Found::Nothing => Ok(()),
        }
    }

    /// Opens a watched directory. Returns `None` if its path leads elsewhere by now,
    /// which later events tell.
    fn open(&mut self, watch: Watch) -> Result<Option<OwnedFd>> {
        let Some(relative) = self.tree.path(watch) else {
            return Ok(None);
        };
        let directory = match self.root.open(&relative) {
            Ok(directory) => directory,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                self.missed = true;
                return Ok(None);
            }
            Err(Errno::ACCESS | Errno::PERM) => return Ok(None),
            Err(error) => return Err(errno::error(error)),
        };
        match self.watch(&directory)? {
            Some(found) if found == watch => Ok(Some(directory)),
            found => {
                self.missed = true;
                self.unwatch(found);
                Ok(None)
            }
        }
    }

    /// Watches an open directory, or finds its watch. Returns `None` if that is not
    /// permitted.
    fn watch(&self, directory: &OwnedFd) -> Result<Option<Watch>> {
        match add_watch(&*self.inotify, directory, ENTRIES) {
            Ok(watch) => Ok(Some(watch)),
            Err(Errno::ACCESS) => Ok(None),
            Err(error) => Err(watch_refused(error)),
        }
    }

    /// Ends a watch that is not part of the tree.
    fn unwatch(&self, watch: Option<Watch>) {
        let is_used =
            |watch: &Watch| self.tree.place(*watch).is_some() || self.above.contains(watch);
        if let Some(watch) = watch.filter(|watch| !is_used(watch)) {
            let _ = inotify::remove_watch(&*self.inotify, watch);
        }
    }

    /// Watches the directory `name` in a watched directory, which is open.
    ///
    /// All events up to now are read after it was opened. If none of the later ones is
    /// about this name, the directory is the one that the events so far tell of.
    fn attach(&mut self, directory: &OwnedFd, parent: Watch, name: &str) -> Result<Found> {
        let opened = open_at(directory, OsStr::new(name), LIST | OFlags::NOFOLLOW);
        let found = match opened {
            Ok(opened) => self.watch(&opened)?,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM) => None,
            Err(error) => return Err(errno::error(error)),
        };
        self.events.read(&*self.inotify).map_err(errno::error)?;
        let is_certain = !self.events.has_later(parent, name);
        let Some(watch) = found.filter(|_| is_certain) else {
            self.unwatch(found);
            return Ok(Found::Nothing);
        };
        Ok(match self.tree.place(watch) {
            None if self.tree.attach(parent, name, watch) => Found::New(watch),
            None => Found::Nothing,
            Some((above, old)) if above == parent && *old == *name => Found::Known,
            Some(_) => Found::Elsewhere(watch),
        })
    }

    /// Tells the move of a directory that was found at another place than before. The
    /// kernel tells only that it left the old one, because the new one was not watched.
    fn relocated(&mut self, watch: Watch, parent: Watch, name: &str) -> Result<()> {
        let Some((above, old)) = self.tree.place(watch) else {
            return Ok(());
        };
        let from = self.path(above, &old);
        if !self.tree.attach(parent, name, watch) {
            // It lies in what was inside it: a move of that is told later.
            self.missed = true;
            return Ok(());
        }
        let was_told = self.tree.remove_name(above, &old);
        match (from, self.path(parent, name)) {
            (Some(from), Some(to)) if was_told && self.query.tells(&to) => {
                self.tree.add_name(parent, name)?;
                self.sender.tell(Change::renamed(from, to));
            }
            (Some(from), _) if was_told => self.sender.tell(Change::deleted(from)),
            _ => {}
        }
        if !was_told || !self.query.exclude.is_none() {
            self.scan(watch, Scan::Repeated)?;
        }
        Ok(())
    }

    /// Lists a watched directory and everything beneath it.
    pub(super) fn scan(&mut self, start: Watch, scan: Scan) -> Result<()> {
        let mut pending = vec![(start, scan)];
        while let Some((watch, scan)) = pending.pop() {
            self.cancel.check()?;
            let Some(directory) = self.open(watch)? else {
                continue;
            };
            let mut inside: Vec<Box<str>> = Vec::new();
            let mut unknown: Vec<Box<str>> = Vec::new();
            each_name(&directory, |name, kind| {
                if self.found(watch, name, kind, &directory, scan)? {
                    inside.extend(name.to_str().map(Box::from));
                }
                if scan == Scan::Repeated {
                    let name = name.to_str();
                    unknown.extend(
                        name.filter(|name| !self.tree.knows(watch, name))
                            .map(Box::from),
                    );
                }
                Ok(())
            })?;
            self.tell_missed(watch, &unknown)?;
            for name in inside {
                let is_quiet = matches!(scan, Scan::First | Scan::Again);
                let found = self.attach(&directory, watch, &name)?;
                if scan == Scan::New {
                    self.tell_new(watch, &name)?;
                }
                match found {
                    Found::New(watch) if is_quiet => pending.push((watch, scan)),
                    Found::New(watch) => pending.push((watch, Scan::New)),
                    Found::Elsewhere(found) if is_quiet => {
                        if !self.tree.was_found(found) && self.tree.attach(watch, &name, found) {
                            pending.push((found, scan));
                        }
                    }
                    Found::Elsewhere(found) => self.relocated(found, watch, &name)?,
                    Found::Known if scan == Scan::New => {}
                    Found::Known => {
                        if let Some(known) = self.tree.child(watch, &name) {
                            self.tree.attach(watch, &name, known);
                            pending.push((known, scan));
                        }
                    }
                    Found::Nothing => {}
                }
            }
        }
        Ok(())
    }

    /// Tells an entry, unless it is known.
    fn tell_new(&mut self, watch: Watch, name: &str) -> Result<()> {
        let path = self.path(watch, name);
        if let Some(path) = path.filter(|path| self.query.tells(path))
            && self.tree.add_name(watch, name)?
        {
            self.sender.tell(Change::created(path));
        }
        Ok(())
    }

    /// Tells entries of a directory that was watched before, unless a later event does.
    fn tell_missed(&mut self, watch: Watch, names: &[Box<str>]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        self.events.read(&*self.inotify).map_err(errno::error)?;
        for name in names {
            let path = self.path(watch, name);
            let path =
                path.filter(|path| !is_temporary(OsStr::new(&**name)) && self.query.tells(path));
            if let Some(path) = path
                && !self.events.has_later(watch, name)
                && self.tree.add_name(watch, name)?
            {
                self.sender.tell(Change::created(path));
            }
        }
        Ok(())
    }

    /// Records an entry that a scan found. Returns whether it is a directory to watch.
    fn found(
        &mut self,
        watch: Watch,
        name: &OsStr,
        kind: FileType,
        directory: &OwnedFd,
        scan: Scan,
    ) -> Result<bool> {
        self.cancel.check()?;
        let Some(text) = name.to_str().filter(|_| !is_temporary(name)) else {
            return Ok(false);
        };
        let Some(path) = self.path(watch, text) else {
            return Ok(false);
        };
        let is_told = self.query.tells(&path);
        if !is_told {
            self.tree.remove_name(watch, text);
        }
        let kind = match kind {
            FileType::Unknown => kind_at(directory, name)?.unwrap_or(FileType::Unknown),
            kind => kind,
        };
        let is_watched = kind == FileType::Directory && !self.prunes(&path);
        // A new directory is watched before it is told.
        if is_told && scan != Scan::Repeated && !(is_watched && scan == Scan::New) {
            let is_new = self.tree.add_name(watch, text)?;
            if is_new && scan == Scan::New {
                self.sender.tell(Change::created(path));
            }
        }
        if kind == FileType::Directory
            && !is_watched
            && let Some(directory) = self.tree.child(watch, text)
        {
            self.forget(directory);
        }
        Ok(is_watched)
    }

    /// Looks for directories that could not be opened where they were expected. Returns
    /// whether the watched directory is gone.
    pub(super) fn look_again(&mut self) -> Result<bool> {
        self.missed = false;
        self.scan(self.tree.top(), Scan::Repeated)?;
        // If no event explains it, the tree is not what it was thought to be.
        let is_lost = self.missed && self.events.is_empty();
        let is_gone = is_lost && self.scan_again()?;
        self.missed &= !is_lost;
        Ok(is_gone)
    }

    /// Begins anew after events were lost, and says so. Returns whether the watched
    /// directory is gone.
    pub(super) fn scan_again(&mut self) -> Result<bool> {
        for _ in 0..DISCARDED_READS {
            self.events.clear();
            if !self.events.read(&*self.inotify).map_err(errno::error)? {
                break;
            }
        }
        self.events.clear();
        self.settling.clear();
        self.missed = false;
        if self.check_gone() {
            return Ok(true);
        }
        self.tree.begin_scan();
        self.scan(self.tree.top(), Scan::Again)?;
        for watch in self.tree.end_scan() {
            let _ = inotify::remove_watch(&*self.inotify, watch);
        }
        self.sender.overflow();
        Ok(false)
    }
}
