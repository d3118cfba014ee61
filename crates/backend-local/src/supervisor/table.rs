//! A supervisor's record of its commands.

use std::collections::{HashMap, HashSet, VecDeque};

/// The number of finished commands that are remembered.
const FINISHED: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Commands by the process ID of their first process, while it runs.
    pub(crate) leaders: HashMap<i32, u64>,
    /// Commands whose processes may have to be ended.
    pub(crate) commands: HashMap<u64, Record>,
    /// Commands that other threads were asked to start, and have not started.
    pending: HashSet<u64>,
    /// Those of them that are not to start any more.
    cancelled: HashSet<u64>,
    /// The number of commands started so far.
    pub(crate) started: u64,
    /// Commands with no process left in their group, with their start time. A
    /// request to end one may have crossed the report of its exit, and
    /// processes it hid outside its group must still be ended.
    finished: VecDeque<(u64, u64)>,
}

impl Table {
    /// Records that another thread will start a command.
    pub(crate) fn expect(&mut self, id: u64) {
        self.pending.insert(id);
    }

    /// Keeps a command from starting that another thread was asked to start.
    pub(crate) fn cancel(&mut self, id: u64) {
        if self.pending.remove(&id) {
            self.cancelled.insert(id);
        }
    }

    /// Whether a command is not to start any more. From now on it cannot be cancelled.
    pub(crate) fn begin(&mut self, id: u64) -> bool {
        self.pending.remove(&id);
        self.cancelled.remove(&id)
    }

    /// Records that a command's first process and its group are gone.
    pub(crate) fn finish(&mut self, id: u64) {
        if let Some(record) = self.commands.remove(&id) {
            self.finished.push_back((id, record.since));
            let over = self.finished.len().saturating_sub(FINISHED);
            self.finished.drain(..over);
        }
    }

    /// Records that a command's processes were ended or counted.
    pub(crate) fn settle(&mut self, id: u64) {
        if let Some(record) = self.commands.get_mut(&id) {
            record.ending = false;
            if record.exited {
                self.finish(id);
            }
        }
    }

    /// Returns the groups and the start time of a command to be ended.
    pub(crate) fn end(&mut self, id: u64) -> Option<(Vec<i32>, u64)> {
        if let Some(record) = self.commands.get_mut(&id) {
            record.ending = true;
            return Some((vec![record.pid], record.since));
        }
        let finished = self.finished.iter().find(|(finished, _)| *finished == id);
        finished.map(|&(_, since)| (Vec::new(), since))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_ended_before_it_starts_does_not_start() {
        let mut table = Table::default();
        table.expect(1);
        table.expect(2);
        table.cancel(1);
        // No thread was asked to start this one.
        table.cancel(3);
        assert!(table.begin(1));
        assert!(!table.begin(2) && !table.begin(3));
        // Once it has begun, its processes are ended.
        table.cancel(2);
        assert!(!table.begin(2));
        assert!(table.pending.is_empty() && table.cancelled.is_empty());
    }
}
