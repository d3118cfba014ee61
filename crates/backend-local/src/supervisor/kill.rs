//! Ending processes: finds the processes of a command without missing one.
//!
//! Membership is decided by evidence, because a process may leave its group,
//! its session and its parent, and drop its environment. The evidence is the
//! command's process group, the groups and sessions that its processes lead,
//! their children, and the marker variable. A supervisor adds one more: orphans
//! become its children. An orphan without a marker that started after the
//! command is ended with it, even if another command started it. A process that
//! hides its origin is ended with the first command it may belong to.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use backend_core::sync::lock;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::process::{self, Process};
use super::table::Table;

/// The time after which one call gives up on processes that cannot be ended,
/// such as a process that waits for a broken disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest wait for killed processes before the next scan.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Processes waited for at once. Each takes a descriptor.
const HANDLES: usize = 128;

/// Scans that must find no living process before a command counts as gone.
const CLEAN_LOOKS: u32 = 2;

/// Give up after this many inconclusive scans. On a busy machine some process
/// always ends during a scan.
const UNSURE_LOOKS: u32 = 50;

/// The set of processes to end or count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Scope {
    /// Those in the command's process group.
    Group,
    /// Everything the command started.
    Tree,
    /// Everything that runs under a supervisor.
    All,
}

/// The evidence by which a command's processes are recognised.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Process groups that the command started with.
    pub(crate) groups: Vec<i32>,
    pub(crate) marker: Marker,
    /// The start of the command, in [`process::ticks`].
    pub(crate) since: u64,
    /// The supervisor it runs under, if any.
    pub(crate) supervisor: Option<Adopter>,
}

impl Target {
    /// Everything whose marker starts with `marker`, without a supervisor.
    pub(crate) fn marked(marker: impl Into<Vec<u8>>) -> Self {
        Self {
            groups: Vec::new(),
            marker: Marker::StartsWith(marker.into()),
            since: 0,
            supervisor: None,
        }
    }
}

/// The comparison with a marker's value.
#[derive(Debug, Clone)]
pub(crate) enum Marker {
    /// The marker of one command.
    Is(Vec<u8>),
    /// The prefix shared by all commands of one supervisor.
    StartsWith(Vec<u8>),
}

impl Marker {
    fn matches(&self, value: &[u8]) -> bool {
        match self {
            Self::Is(marker) => value == marker,
            Self::StartsWith(marker) => value.starts_with(marker),
        }
    }
}

/// A supervisor, which adopts orphans.
#[derive(Debug, Clone)]
pub(crate) struct Adopter {
    pub(crate) pid: i32,
    /// Holds the first processes of commands, which are not orphans.
    pub(crate) table: Arc<Mutex<Table>>,
    /// The prefix of its commands' markers.
    pub(crate) marker: Vec<u8>,
}

impl Adopter {
    /// Returns the first processes of running commands, including one that is
    /// just being started.
    fn leaders(&self) -> HashSet<i32> {
        lock(&self.table).leaders.keys().copied().collect()
    }
}

/// Ends the processes with TERM, then KILL after `grace`, until none is left.
/// Without a grace period, only counts them. Returns the number found at first.
pub(crate) fn end(target: &Target, scope: Scope, grace: Option<Duration>) -> u32 {
    let began = Instant::now();
    let mut scan = ProcessScan::new(target, scope);
    let first = scan.scan();
    let count = first.len().try_into().unwrap_or(u32::MAX);
    let Some(grace) = grace else {
        return count;
    };
    if !grace.is_zero() {
        for process in &first {
            let _ = process.signal(Signal::TERM);
            // A stopped process handles TERM only after it continues.
            let _ = process.signal(Signal::CONT);
        }
        wait(&first, began + grace);
    }
    let (mut clean, mut unsure) = (0, 0);
    while clean < CLEAN_LOOKS && unsure < UNSURE_LOOKS && began.elapsed() < grace + PATIENCE {
        let living = scan.freeze();
        if !living.is_empty() {
            (clean, unsure) = (0, 0);
        } else if scan.quiet {
            clean += 1;
        } else {
            unsure += 1;
        }
        for process in &living {
            let _ = process.signal(Signal::KILL);
        }
        wait(&living, Instant::now() + LOOK_AGAIN);
    }
    count
}

/// Repeated scans for a target's processes.
struct ProcessScan<'a> {
    target: &'a Target,
    scope: Scope,
    /// Processes found so far, by process ID and start time. A process stays a
    /// member even if the evidence for it disappears.
    known: HashMap<i32, u64>,
    /// First processes of commands before and after the last scan. One that is
    /// just being started has no marker yet.
    leaders: HashSet<i32>,
    /// Processes that were dead in the last scan.
    dead: HashSet<(i32, u64)>,
    /// Whether no process ended during the last scan.
    ///
    /// Process IDs are listed in rising order, so in a chain of processes, each
    /// of which starts the next and ends, one is always listed. But it may be
    /// gone when it is examined.
    quiet: bool,
}

impl<'a> ProcessScan<'a> {
    fn new(target: &'a Target, scope: Scope) -> Self {
        Self {
            target,
            scope,
            known: HashMap::new(),
            leaders: HashSet::new(),
            dead: HashSet::new(),
            quiet: false,
        }
    }

    /// Stops the processes until a scan finds no new one, so that none can
    /// start others while they are killed one by one.
    fn freeze(&mut self) -> Vec<Process> {
        let mut stopped = HashSet::new();
        let began = Instant::now();
        loop {
            let living = self.scan();
            let mut new = false;
            for process in &living {
                if stopped.insert((process.pid, process.start)) {
                    new = true;
                    let _ = process.signal(Signal::STOP);
                }
            }
            if !new || began.elapsed() > PATIENCE {
                return living;
            }
        }
    }

    /// Returns the living processes that belong to the target now.
    fn scan(&mut self) -> Vec<Process> {
        let target = self.target;
        // Orphans only have to be told from commands if the scope is a tree.
        let adopter = target.supervisor.as_ref();
        let adopter = adopter.filter(|_| self.scope == Scope::Tree);
        self.leaders = adopter.map(Adopter::leaders).unwrap_or_default();
        let Ok((mut all, vanished)) = process::all() else {
            return Vec::new();
        };
        self.leaders
            .extend(adopter.map(Adopter::leaders).unwrap_or_default());
        if let Some(adopter) = &target.supervisor {
            all = descendants(&all, adopter.pid);
        } else {
            let me = std::process::id();
            all.retain(|one| one.pid.cast_unsigned() != me && one.start >= target.since);
        }
        let dead = all.iter().filter(|process| !process.alive);
        let dead: HashSet<_> = dead.map(|process| (process.pid, process.start)).collect();
        self.quiet = !vanished && dead.is_subset(&self.dead);
        self.dead = dead;
        let living = self.members(&all);
        self.known
            .extend(living.iter().map(|process| (process.pid, process.start)));
        living
    }

    fn members(&self, all: &[Process]) -> Vec<Process> {
        let mut family = Family::new(all);
        for (place, process) in all.iter().enumerate() {
            let is_known = self.known.get(&process.pid) == Some(&process.start);
            let in_group = self.target.groups.contains(&process.group);
            if self.scope == Scope::All || is_known || in_group {
                family.add(place);
            }
        }
        if self.scope == Scope::Tree {
            family.close();
            for (place, process) in all.iter().enumerate() {
                if !family.members.contains(&place) && process.alive && self.suspicious(process) {
                    family.add(place);
                }
            }
            family.close();
        }
        family.living()
    }

    /// Whether a process without other evidence belongs to the target.
    fn suspicious(&self, process: &Process) -> bool {
        let target = self.target;
        let Some(adopter) = &target.supervisor else {
            return process
                .marker()
                .is_some_and(|marker| target.marker.matches(&marker));
        };
        // A descendant of another command or of an orphan is ended with that.
        if process.parent != adopter.pid || self.leaders.contains(&process.pid) {
            return false;
        }
        match process.marker() {
            Some(marker) if target.marker.matches(&marker) => true,
            Some(marker) if marker.starts_with(&adopter.marker) => false,
            _ => process.start >= target.since,
        }
    }
}

/// Waits until these processes have ended. Of very many, waits only for the
/// first ones.
fn wait(processes: &[Process], until: Instant) {
    let mut handles: Vec<OwnedFd> = processes
        .iter()
        .take(HANDLES)
        .filter_map(|process| process.handle().ok())
        .collect();
    while !handles.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let mut polled: Vec<PollFd<'_>> = handles
            .iter()
            .map(|handle| PollFd::new(handle, PollFlags::IN))
            .collect();
        let Ok(left) = Timespec::try_from(left) else {
            return;
        };
        match rustix::event::poll(&mut polled, Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        let ended: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        handles.retain(|_| !ended.next().unwrap_or(false));
    }
}

/// Returns the descendants of `root` in `all`, without `root` itself.
fn descendants(all: &[Process], root: i32) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
    for process in all.iter().filter(|process| process.pid != root) {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        // Removed, so that process IDs reused during the scan cannot form a
        // cycle.
        for process in children.remove(&parent).unwrap_or_default() {
            parents.push(process.pid);
            found.push(*process);
        }
    }
    found
}

/// A set of processes that grows by the processes its members started.
struct Family<'a> {
    all: &'a [Process],
    members: BTreeSet<usize>,
    /// Members whose relatives have not been added yet.
    fresh: Vec<usize>,
    /// The processes with this number as parent, group or session.
    kin: HashMap<i32, Vec<usize>>,
}

impl<'a> Family<'a> {
    fn new(all: &'a [Process]) -> Self {
        let mut kin: HashMap<i32, Vec<usize>> = HashMap::new();
        for (place, process) in all.iter().enumerate() {
            for number in [process.parent, process.group, process.session] {
                kin.entry(number).or_default().push(place);
            }
        }
        Self {
            all,
            members: BTreeSet::new(),
            fresh: Vec::new(),
            kin,
        }
    }

    fn add(&mut self, place: usize) {
        if self.members.insert(place) {
            self.fresh.push(place);
        }
    }

    /// Adds children, and the groups and sessions that members lead.
    fn close(&mut self) {
        while let Some(place) = self.fresh.pop() {
            let number = self.all.get(place).map_or(0, |process| process.pid);
            for place in self.kin.remove(&number).unwrap_or_default() {
                self.add(place);
            }
        }
    }

    fn living(self) -> Vec<Process> {
        let members = self.members.iter();
        let members = members.filter_map(|place| self.all.get(*place));
        members.filter(|process| process.alive).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, group: i32, session: i32) -> Process {
        Process {
            pid,
            parent,
            group,
            session,
            start: 10,
            alive: true,
        }
    }

    fn grown(all: &[Process], first: usize) -> Vec<i32> {
        let mut family = Family::new(all);
        family.add(first);
        family.close();
        family.living().iter().map(|process| process.pid).collect()
    }

    #[test]
    fn children_groups_and_sessions_of_members_are_members() {
        let all = [
            process(10, 1, 10, 1),
            process(11, 10, 10, 1),
            process(20, 11, 20, 20),
            // Lost its parent, but is in a session that a member leads.
            process(30, 1, 30, 20),
            process(40, 1, 40, 1),
        ];
        assert_eq!(grown(&all, 0), [10, 11, 20, 30]);
        assert_eq!(grown(&all, 4), [40]);
    }

    #[test]
    fn joining_a_foreign_group_does_not_make_its_members_ours() {
        let all = [
            process(10, 1, 10, 1),
            // Moved itself into another command's group.
            process(11, 10, 50, 1),
            process(50, 1, 50, 1),
        ];
        assert_eq!(grown(&all, 0), [10, 11]);
    }

    #[test]
    fn only_descendants_count_and_circles_end() {
        let all = [
            process(5, 1, 5, 5),
            process(10, 5, 10, 5),
            process(11, 10, 10, 5),
            process(70, 71, 10, 5),
            process(71, 70, 10, 5),
        ];
        let found: Vec<i32> = descendants(&all, 5).iter().map(|one| one.pid).collect();
        assert_eq!(found, [10, 11]);
    }

    #[test]
    fn markers_are_compared_whole_or_by_beginning() {
        assert!(Marker::Is(b"a-1".into()).matches(b"a-1"));
        assert!(!Marker::Is(b"a-1".into()).matches(b"a-11"));
        assert!(Marker::StartsWith(b"a-".into()).matches(b"a-11"));
    }
}
