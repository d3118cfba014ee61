//! A supervisor's record of its commands, shared by its threads.

use std::collections::{HashMap, VecDeque};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::kill::{Adopter, Marker, Scope, Target};
use super::protocol::{self, Reply};

/// The number of finished commands that are remembered.
const FINISHED: usize = 256;

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

/// The commands.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Commands by the process ID of their first process, while it runs.
    pub(crate) leaders: HashMap<i32, u64>,
    /// Commands whose processes may have to be ended.
    pub(crate) commands: HashMap<u64, Record>,
    /// The number of commands started so far.
    pub(crate) started: u64,
    /// Commands with no process left in their group, with their start time. A
    /// request to end one may have crossed the report of its exit, and
    /// processes it hid outside its group must still be ended.
    finished: VecDeque<(u64, u64)>,
}

impl Table {
    /// Records that a command's first process and its group are gone.
    pub(crate) fn finish(&mut self, id: u64) {
        if let Some(record) = self.commands.remove(&id) {
            self.finished.push_back((id, record.since));
            let over = self.finished.len().saturating_sub(FINISHED);
            self.finished.drain(..over);
        }
    }

    /// Returns the groups and the start time of a command to be ended.
    fn end(&mut self, id: u64) -> Option<(Vec<i32>, u64)> {
        if let Some(record) = self.commands.get_mut(&id) {
            record.ending = true;
            return Some((vec![record.pid], record.since));
        }
        let finished = self.finished.iter().find(|(finished, _)| *finished == id);
        finished.map(|&(_, since)| (Vec::new(), since))
    }
}

/// A command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    /// Its first process, whose ID is also that of its group.
    pub(crate) pid: i32,
    /// Its start time, in ticks.
    pub(crate) since: u64,
    /// Whether its first process has ended.
    pub(crate) exited: bool,
    /// Whether its processes are being ended.
    pub(crate) ending: bool,
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
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = protocol::send(&socket, reply);
    }

    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin_ending(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Returns the marker's value for a command.
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
            groups: Vec::new(),
            marker: Marker::StartsWith(self.marker.clone().into_bytes()),
            since: 0,
            supervisor: Some(self.adopter()),
        }
    }

    fn adopter(&self) -> Adopter {
        Adopter {
            pid: rustix::process::getpid().as_raw_nonzero().get(),
            table: Arc::clone(&self.table),
            marker: self.marker.clone().into_bytes(),
        }
    }

    /// Records that a command's processes were ended or counted.
    pub(crate) fn settled(&self, id: u64) {
        let mut table = self.table();
        if let Some(record) = table.commands.get_mut(&id) {
            record.ending = false;
            if record.exited {
                table.finish(id);
            }
        }
    }

    /// Ends or counts a command's processes, and reports the number.
    pub(crate) fn end(&self, end: protocol::End) {
        let count = match (self.target(end.id), end.grace) {
            (None, _) => 0,
            (Some(target), None) => super::kill::count(&target, end.scope),
            (Some(target), Some(grace)) => {
                let scope = match end.scope {
                    // Ending one command must not end the others.
                    Scope::All => Scope::Tree,
                    scope => scope,
                };
                super::kill::end(&target, scope, std::time::Duration::from_millis(grace))
            }
        };
        self.settled(end.id);
        self.tell(&Reply::Ended { id: end.id, count });
    }
}
