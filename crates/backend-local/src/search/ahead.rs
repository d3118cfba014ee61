//! [`Ahead`]: decides which thread walks, and has directories listed that the walk will
//! ask for soon by the threads that wait for their turn.
//!
//! A directory listed ahead is opened beneath the same handle, and with the same flags,
//! as the walk itself would. A listing that fails is dropped: the walk then does it
//! again, and meets the error itself.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use backend_core::sync::lock;

use super::listing::Listing;

/// The number of directories that are listed ahead at once, and so the number of
/// handles and listings that wait for the walk.
pub(super) const AHEAD: usize = 16;

/// The turns of the threads of one search.
#[derive(Default)]
pub(super) struct Ahead {
    /// Whether there are other threads.
    shared: AtomicBool,
    state: Mutex<State>,
    /// Notified if a thread waits, when there is something to list or the walk is free.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    walking: bool,
    /// The number of threads that wait.
    idle: usize,
    /// Directories that the walk will ask for, the next one last.
    wanted: Vec<Wanted>,
    /// The number of them that are listed, or about to be.
    begun: usize,
}

struct Wanted {
    directory: Arc<Directory>,
    begun: bool,
}

struct Directory {
    parent: Arc<OwnedFd>,
    name: String,
    /// Locked while a thread lists it.
    listing: Mutex<Option<Listing>>,
}

impl Ahead {
    /// Begins to collect directories, for threads that start from now on.
    pub(super) fn share(&self) {
        self.shared.store(true, Ordering::Relaxed);
    }

    /// Waits until this thread may walk, which it may until the returned turn is
    /// dropped. Until then it lists directories.
    pub(super) fn turn(
        &self,
        mut list: impl FnMut(&OwnedFd, &str) -> Option<Listing>,
    ) -> WalkTurn<'_> {
        let mut state = lock(&self.state);
        loop {
            if !state.walking {
                state.walking = true;
                return WalkTurn(self);
            }
            state = match state.begin() {
                Some(directory) => {
                    // Locked before the walk can look for it.
                    let mut listing = lock(&directory.listing);
                    drop(state);
                    *listing = list(&directory.parent, &directory.name);
                    drop(listing);
                    lock(&self.state)
                }
                None => {
                    state.idle += 1;
                    let woken = self.changed.wait(state);
                    let mut state = woken.unwrap_or_else(PoisonError::into_inner);
                    state.idle -= 1;
                    state
                }
            };
        }
    }

    /// Whether the names of directories in `parent` that come next should be added.
    pub(super) fn wants(&self, parent: &Arc<OwnedFd>) -> bool {
        self.shared.load(Ordering::Relaxed)
            && lock(&self.state)
                .wanted
                .last()
                .is_none_or(|wanted| !Arc::ptr_eq(&wanted.directory.parent, parent))
    }

    /// Adds directories in `parent`, in the order in which the walk will ask for them.
    pub(super) fn add(&self, parent: &Arc<OwnedFd>, names: Vec<&str>) {
        let wanted = names.into_iter().rev().map(|name| Wanted {
            directory: Arc::new(Directory {
                parent: Arc::clone(parent),
                name: name.to_owned(),
                listing: Mutex::default(),
            }),
            begun: false,
        });
        let mut state = lock(&self.state);
        state.wanted.extend(wanted);
        if state.idle > 0 {
            self.changed.notify_all();
        }
    }

    /// Returns the listing of the directory that the walk asks for, if another thread
    /// has begun it.
    pub(super) fn take(&self, parent: &Arc<OwnedFd>, name: &str) -> Option<Listing> {
        if !self.shared.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = lock(&self.state);
        let wanted = state.wanted.pop_if(|wanted| {
            Arc::ptr_eq(&wanted.directory.parent, parent) && wanted.directory.name == name
        })?;
        if !wanted.begun {
            return None;
        }
        state.begun -= 1;
        drop(state);
        lock(&wanted.directory.listing).take()
    }
}

impl State {
    /// Returns the next directory to list, if not too many are listed already.
    fn begin(&mut self) -> Option<Arc<Directory>> {
        if self.begun >= AHEAD {
            return None;
        }
        let mut soon = self.wanted.iter_mut().rev().take(AHEAD);
        let wanted = soon.find(|wanted| !wanted.begun)?;
        wanted.begun = true;
        self.begun += 1;
        Some(Arc::clone(&wanted.directory))
    }
}

/// The turn of the thread that walks.
pub(super) struct WalkTurn<'a>(&'a Ahead);

impl Drop for WalkTurn<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.walking = false;
        if state.idle > 0 {
            self.0.changed.notify_one();
        }
    }
}
