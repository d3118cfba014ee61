//! A supervisor's record of its commands.

use std::collections::{HashMap, VecDeque};

/// The number of finished commands that are remembered.
const FINISHED: usize = 256;

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
