//! What a supervisor knows about its commands, shared by its threads.

use std::collections::{HashMap, VecDeque};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::kill::{Adopter, Marker, Scope, Target};
use super::protocol::{self, Reply};

/// Finished commands that are remembered.
const FINISHED: usize = 256;

/// The state of one supervisor.
#[derive(Debug)]
pub(crate) struct Shared {
    /// To the host. Every message is sent whole.
    socket: Mutex<UnixStream>,
    /// Held while a command is started and while its exit is collected, so that
    /// no exit comes before its command is known.
    table: Arc<Mutex<Table>>,
    /// Says that there is a child to wait for.
    pub(crate) started: Condvar,
    /// How markers of this supervisor's commands begin.
    pub(crate) marker: String,
    /// Whether everything is being ended and nothing may start.
    ending: AtomicBool,
}

/// The commands.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Commands by the number of their first process, while it runs.
    pub(crate) leaders: HashMap<i32, u64>,
    /// Commands whose processes may have to be ended.
    pub(crate) commands: HashMap<u64, Record>,
    /// How many commands were started.
    pub(crate) started: u64,
    /// Commands of which nothing was left in their group, with their start. The
    /// order to end one may have crossed the news of its end, and what it hid
    /// outside of its group shall end all the same.
    finished: VecDeque<(u64, u64)>,
}

impl Table {
    /// Says that a command's first process and its group have gone.
    pub(crate) fn finish(&mut self, id: u64) {
        if let Some(record) = self.commands.remove(&id) {
            self.finished.push_back((id, record.since));
            let over = self.finished.len().saturating_sub(FINISHED);
            self.finished.drain(..over);
        }
    }

    /// The group and the start of a command that is to be ended.
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
    /// Its first process, whose number is that of its group too.
    pub(crate) pid: i32,
    /// When it started, in ticks.
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

    /// Tells the host something. A host that is gone is noticed elsewhere.
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

    /// The marker's value for a command.
    pub(crate) fn marker_of(&self, id: u64) -> String {
        format!("{}{id}", self.marker)
    }

    /// A command as a target, marked as being ended; `None` if nothing of it can
    /// be left.
    pub(crate) fn target(&self, id: u64) -> Option<Target> {
        let (groups, since) = self.table().end(id)?;
        Some(Target {
            groups,
            marker: Marker::Is(self.marker_of(id).into_bytes()),
            since,
            supervisor: Some(self.adopter()),
        })
    }

    /// Everything as a target.
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

    /// Says that a command's processes were dealt with.
    pub(crate) fn settled(&self, id: u64) {
        let mut table = self.table();
        if let Some(record) = table.commands.get_mut(&id) {
            record.ending = false;
            if record.exited {
                table.finish(id);
            }
        }
    }

    /// Ends a command's processes, or counts them, and says so.
    pub(crate) fn end(&self, end: protocol::End) {
        let count = match (self.target(end.id), end.grace) {
            (None, _) => 0,
            (Some(target), None) => super::kill::count(&target, end.scope),
            (Some(target), Some(grace)) => {
                let scope = match end.scope {
                    // One command's end is not that of the others.
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
