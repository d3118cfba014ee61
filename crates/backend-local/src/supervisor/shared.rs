//! The state of one supervisor, shared by its threads.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use backend_core::sync::lock;

use super::kill::{self, Adopter, Marker, Scope, Target};
use super::protocol::{self, Reply};
use super::table::Table;

/// The state of one supervisor.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The connection to the host. Every message is sent as a whole.
    socket: Mutex<UnixStream>,
    /// Held while a command is started and while its exit is collected, so that
    /// no exit is reported before its command is known.
    table: Arc<Mutex<Table>>,
    /// Signals that there is a child to wait for.
    pub(crate) started: Condvar,
    /// The prefix of this supervisor's markers.
    pub(crate) marker: String,
    /// Whether everything is being ended and nothing may start.
    ending: AtomicBool,
}

impl Shared {
    pub(crate) fn new(socket: UnixStream, marker: String) -> Self {
        Self {
            socket: Mutex::new(socket),
            table: Arc::default(),
            started: Condvar::new(),
            marker,
            ending: AtomicBool::new(false),
        }
    }

    /// Sends a message to the host. A host that is gone is noticed elsewhere.
    pub(crate) fn tell(&self, reply: &Reply) {
        let _ = protocol::send(&lock(&self.socket), reply);
    }

    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    pub(crate) fn begin_ending(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    pub(crate) fn marker_of(&self, id: u64) -> String {
        format!("{}{id}", self.marker)
    }

    /// Returns a command as a target and marks it as being ended. Returns
    /// `None` if none of its processes can be left.
    pub(crate) fn target(&self, id: u64) -> Option<Target> {
        let (groups, since) = self.table().end(id)?;
        Some(Target {
            groups,
            marker: Marker::Is(self.marker_of(id).into_bytes()),
            since,
            supervisor: Some(self.adopter()),
        })
    }

    /// Returns all commands as one target.
    pub(crate) fn everything(&self) -> Target {
        Target {
            supervisor: Some(self.adopter()),
            ..Target::marked(self.marker.clone())
        }
    }

    fn adopter(&self) -> Adopter {
        Adopter {
            pid: rustix::process::getpid().as_raw_nonzero().get(),
            table: Arc::clone(&self.table),
            marker: self.marker.clone().into_bytes(),
        }
    }

    /// Ends or counts a command's processes, and reports the number.
    pub(crate) fn end(&self, end: protocol::End) {
        let scope = match end.scope {
            // Ending one command must not end the others.
            Scope::All => Scope::Tree,
            scope => scope,
        };
        let grace = end.grace.map(Duration::from_millis);
        if grace.is_some() {
            self.table().cancel(end.command);
        }
        let target = self.target(end.command);
        let count = target.map_or(0, |target| kill::end(&target, scope, grace));
        self.table().settle(end.command);
        self.tell(&Reply::Ended { id: end.id, count });
    }
}
