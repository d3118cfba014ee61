//! [`Watcher`]: turns events of the kernel into changes.
//!
//! A new directory is watched first and listed then. So nothing in it is missed, and what
//! both the listing and an event report is told once, because the tree knows the names.

mod scan;

use std::collections::HashSet;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use backend_core::ops::{Change, WatchQuery};
use backend_core::watch::ChangeSender;
use backend_core::{Error, Result, VPath};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::net::unix::pipe::Receiver;

use super::events::{Event, Events, Item, Name};
use super::tree::{Tree, Watch};
use crate::cancel::CancelFlag;
use crate::engine;
use crate::fs::{WatchRoot, errno, watch_refused};
use scan::{Found, Scan};

/// The events of a watched directory. Files without a name tell nothing.
const ENTRIES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);

/// The events of a directory above, after which the watched one may be gone.
const ABOVE: WatchFlags = WatchFlags::DELETE
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::MASK_ADD);

/// Files that were just moved to their name and may still be closed.
const SETTLING: usize = 1_024;

/// When to call [`Watcher::step`] again.
#[derive(Debug, Clone, Copy)]
pub(super) enum Next {
    /// When there are events.
    Idle,
    /// When there are events, or at this time.
    Until(Instant),
    /// Never: the watched directory is gone.
    End,
}

/// The state of one watch.
pub(super) struct Watcher {
    /// Read like a pipe, which the engine can wait for.
    inotify: Arc<Receiver>,
    root: WatchRoot,
    query: WatchQuery,
    sender: Arc<ChangeSender>,
    /// The call that started the watch, until it has returned.
    cancel: CancelFlag,
    tree: Tree,
    /// The watches of directories above.
    above: Vec<Watch>,
    events: Events,
    /// Whether a directory could not be opened where it was expected, because one above
    /// it was moved meanwhile. It is looked for once all events are handled.
    missed: bool,
    /// Files that were complete when they got their name. The writer may close them
    /// later, which changes nothing.
    settling: HashSet<(Watch, Box<str>)>,
}

impl Watcher {
    pub(super) fn begin(
        root: WatchRoot,
        query: WatchQuery,
        sender: Arc<ChangeSender>,
        cancel: &CancelFlag,
    ) -> Result<Self> {
        let flags = CreateFlags::NONBLOCK | CreateFlags::CLOEXEC;
        let inotify = inotify::init(flags).map_err(watch_refused)?;
        let mut above = Vec::new();
        let steps = root.steps.iter().map(|step| &step.directory);
        for directory in steps.chain(&root.above_root) {
            match add_watch(&inotify, directory, ABOVE) {
                Ok(watch) => above.push(watch),
                // Without it, only the end of the watched directory goes unnoticed.
                Err(Errno::ACCESS) => {}
                Err(error) => return Err(watch_refused(error)),
            }
        }
        let opened = root.open("").map_err(errno::error)?;
        let top = add_watch(&inotify, &opened, ENTRIES).map_err(watch_refused)?;
        let _engine = engine::handle()?.enter();
        let inotify = Receiver::from_owned_fd_unchecked(inotify).map_err(failed)?;
        let mut watcher = Self {
            inotify: Arc::new(inotify),
            root,
            query,
            sender,
            cancel: cancel.clone(),
            tree: Tree::new(top),
            above,
            events: Events::default(),
            missed: false,
            settling: HashSet::new(),
        };
        watcher.scan(top, Scan::First)?;
        watcher.cancel = CancelFlag::default();
        Ok(watcher)
    }

    pub(super) fn inotify(&self) -> Arc<Receiver> {
        Arc::clone(&self.inotify)
    }

    /// Handles all events that there are.
    pub(super) fn step(&mut self) -> Result<Next> {
        loop {
            let more = self.events.read(&*self.inotify).map_err(errno::error)?;
            while let Some(item) = self.events.next(Instant::now(), &self.above) {
                if self.sender.is_closed() || self.handle(item)? {
                    return Ok(Next::End);
                }
            }
            if more {
                continue;
            }
            if self.missed && self.events.is_empty() {
                if self.look_again()? {
                    return Ok(Next::End);
                }
                continue;
            }
            if !self.events.read_or_wait(&self.inotify).map_err(failed)? {
                return Ok(self.events.wait().map_or(Next::Idle, Next::Until));
            }
        }
    }

    /// Handles one event. Returns whether the watch has ended.
    fn handle(&mut self, item: Item) -> Result<bool> {
        match item {
            Item::Moved(from, to) => self.moved(&from, &to)?,
            Item::MovedOut(from) => self.left(&from),
            Item::Event(event) => return self.event(&event),
        }
        Ok(false)
    }

    fn is_above(&self, event: &Event) -> bool {
        self.above.contains(&event.watch)
    }

    fn event(&mut self, event: &Event) -> Result<bool> {
        if event.has(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
            return self.scan_again();
        }
        if self.is_above(event) || event.has(ReadFlags::IGNORED) && event.watch == self.tree.top() {
            return Ok(self.check_gone());
        }
        if event.has(ReadFlags::IGNORED) {
            self.forget(event.watch);
            return Ok(false);
        }
        let Some(name) = event.name.text() else {
            return Ok(false);
        };
        let is_directory = event.has(ReadFlags::ISDIR);
        if event.has(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            self.appeared(
                event.watch,
                name,
                is_directory,
                event.has(ReadFlags::MOVED_TO),
            )?;
        } else if event.has(ReadFlags::DELETE) {
            self.left(event);
        } else if event.has(ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE) && !is_directory {
            self.changed(event.watch, name, event.has(ReadFlags::MODIFY))?;
        }
        Ok(false)
    }

    /// Ends the stream if the watched directory is gone. Returns whether it is.
    fn check_gone(&self) -> bool {
        let is_gone = !self.root.is_there();
        if is_gone {
            self.sender.gone(self.query.path.clone());
        }
        is_gone
    }

    /// Returns the path of an entry; `None` if its directory is not watched, or the path
    /// would not be valid.
    fn path(&self, watch: Watch, name: &str) -> Option<VPath> {
        let directory = self.tree.path(watch)?;
        let mut path = self.query.path.clone();
        if !directory.is_empty() {
            path = path.join(&directory).ok()?;
        }
        path.child(name).ok()
    }

    /// Whether nothing beneath a directory is told.
    fn prunes(&self, directory: &VPath) -> bool {
        let exclude = &self.query.exclude;
        !self.query.recursive
            || !exclude.is_none() && exclude.prunes(&exclude.state_for(directory), directory)
    }

    /// Tells an entry that is new, or that a file replaced.
    fn appeared(
        &mut self,
        watch: Watch,
        name: &str,
        is_directory: bool,
        replaces: bool,
    ) -> Result<()> {
        let Some(path) = self.path(watch, name) else {
            return Ok(());
        };
        // A directory is watched before it is told, so that a reader's own changes in it
        // are told one by one.
        let found = if is_directory && !self.prunes(&path) {
            self.look(watch, name)?
        } else {
            Found::Nothing
        };
        if self.query.tells(&path) {
            if self.tree.add_name(watch, name)? {
                self.sender.tell(Change::created(path));
            } else if replaces && !is_directory {
                self.sender.tell(Change::changed(path));
            }
        }
        self.entered(found, watch, name)
    }

    fn changed(&mut self, watch: Watch, name: &str, is_write: bool) -> Result<()> {
        let settled = !self.settling.is_empty() && self.settling.remove(&(watch, name.into()));
        if settled && !is_write {
            return Ok(());
        }
        match self.path(watch, name) {
            Some(path) if self.query.tells(&path) => {
                // It is known, unless its creation was never reported.
                if self.tree.add_name(watch, name)? {
                    self.sender.tell(Change::created(path));
                } else {
                    self.sender.tell(Change::changed(path));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Tells an entry that is gone.
    fn left(&mut self, event: &Event) {
        let Some(name) = event.name.text() else {
            return;
        };
        if self.tree.remove_name(event.watch, name)
            && let Some(path) = self.path(event.watch, name)
        {
            self.sender.tell(Change::deleted(path));
        }
        if event.has(ReadFlags::ISDIR)
            && let Some(directory) = self.tree.child(event.watch, name)
        {
            self.forget(directory);
        }
    }

    fn moved(&mut self, from: &Event, to: &Event) -> Result<()> {
        let is_directory = to.has(ReadFlags::ISDIR);
        let target = to.name.text();
        let target = target.and_then(|name| Some((name, self.path(to.watch, name)?)));
        let Some((name, path)) = target else {
            self.left(from);
            return Ok(());
        };
        let source = from.name.text();
        let Some(source) = source.filter(|name| self.tree.knows(from.watch, name)) else {
            if from.name == Name::Temporary && !is_directory {
                self.settles(to.watch, name);
            }
            // A directory that was not told may be watched all the same.
            self.left(from);
            return self.appeared(to.watch, name, is_directory, true);
        };
        if !self.query.tells(&path) {
            self.left(from);
            if is_directory && !self.prunes(&path) {
                self.enter(to.watch, name)?;
            }
            return Ok(());
        }
        let old = self.path(from.watch, source);
        self.tree.remove_name(from.watch, source);
        self.tree.add_name(to.watch, name)?;
        self.sender.tell(match old {
            Some(old) => Change::renamed(old, path.clone()),
            None => Change::created(path.clone()),
        });
        if is_directory {
            self.moved_directory((from.watch, source), (to.watch, name), &path)?;
        }
        Ok(())
    }

    /// Moves the watches of a directory that was told as moved.
    fn moved_directory(
        &mut self,
        (from, source): (Watch, &str),
        (to, name): (Watch, &str),
        path: &VPath,
    ) -> Result<()> {
        let directory = self.tree.child(from, source);
        if let Some(replaced) = self
            .tree
            .child(to, name)
            .filter(|old| Some(*old) != directory)
        {
            self.forget(replaced);
        }
        match directory {
            Some(directory) if self.prunes(path) => self.forget(directory),
            None if self.prunes(path) => {}
            Some(directory) => {
                self.tree.attach(to, name, directory);
                // Other names may be told at the new place.
                if !self.query.exclude.is_none() {
                    self.scan(directory, Scan::Repeated)?;
                }
            }
            None => self.enter(to, name)?,
        }
        Ok(())
    }

    fn settles(&mut self, watch: Watch, name: &str) {
        if self.settling.len() >= SETTLING {
            self.settling.clear();
        }
        self.settling.insert((watch, name.into()));
    }
}

/// Watches a directory by its handle: no host path is followed.
fn add_watch(
    inotify: impl AsFd,
    directory: &OwnedFd,
    flags: WatchFlags,
) -> rustix::io::Result<Watch> {
    let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    inotify::add_watch(inotify, path, flags)
}

pub(super) fn failed(error: std::io::Error) -> Error {
    errno::error(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
