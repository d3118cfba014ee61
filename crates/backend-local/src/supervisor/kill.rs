//! Ending processes: who belongs to a command, and how none is missed.
//!
//! Belonging is a matter of evidence, for a process may leave its group, its
//! session and its parent, and drop its environment. What counts: the command's
//! process group, the groups and sessions that its processes lead, their
//! children, and the marker variable. A supervisor adds one more: whatever loses
//! its parent becomes its child. Such an orphan without a marker that started
//! after the command is ended with it, even if another command made it: a
//! process that hides where it comes from is ended with the first command it may
//! belong to.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::process::{self, Process};
use super::table::Table;

/// How long one call tries before it gives up on what cannot be ended, such as
/// a process that waits for a broken disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest wait for killed processes before the next look.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Processes waited for at once. Each takes a descriptor.
const HANDLES: usize = 128;

/// Looks that must find nobody alive before a command counts as gone.
const CLEAN_LOOKS: u32 = 2;

/// Looks that find nobody after which it does so in any case. On a busy machine
/// something always ends during a look.
const UNSURE_LOOKS: u32 = 50;

/// Which processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Scope {
    /// Those in the command's process group.
    Group,
    /// Everything the command started.
    Tree,
    /// Everything that runs under a supervisor.
    All,
}

/// A command, as far as its processes can be known by it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Process groups that the command began with.
    pub(crate) groups: Vec<i32>,
    /// The marker's value.
    pub(crate) marker: Marker,
    /// When the command started, in [`process::ticks`].
    pub(crate) since: u64,
    /// The supervisor under which it runs, if one does.
    pub(crate) supervisor: Option<Adopter>,
}

/// How a marker's value is compared.
#[derive(Debug, Clone)]
pub(crate) enum Marker {
    /// One command's.
    Is(Vec<u8>),
    /// That of all commands of one supervisor.
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

/// A supervisor, which orphans become children of.
#[derive(Debug, Clone)]
pub(crate) struct Adopter {
    pub(crate) pid: i32,
    /// Knows the first processes of commands: these are no orphans.
    pub(crate) table: Arc<Mutex<Table>>,
    /// How markers of its commands begin.
    pub(crate) marker: Vec<u8>,
}

impl Adopter {
    /// The first processes of commands that run, also of one that is just being
    /// started.
    fn leaders(&self) -> HashSet<i32> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.leaders.keys().copied().collect()
    }
}

/// How many living processes there are.
pub(crate) fn count(target: &Target, scope: Scope) -> u32 {
    let living = Hunt::new(target, scope).look();
    living.len().try_into().unwrap_or(u32::MAX)
}

/// Ends the processes: TERM, then KILL after `grace`, until none is left.
/// Returns how many there were at first.
pub(crate) fn end(target: &Target, scope: Scope, grace: Duration) -> u32 {
    let began = Instant::now();
    let mut hunt = Hunt::new(target, scope);
    let first = hunt.look();
    if !grace.is_zero() {
        for process in &first {
            let _ = process.signal(Signal::TERM);
            // A stopped process takes TERM only when it goes on.
            let _ = process.signal(Signal::CONT);
        }
        wait(&first, began + grace);
    }
    let (mut clean, mut unsure) = (0, 0);
    while clean < CLEAN_LOOKS && unsure < UNSURE_LOOKS && began.elapsed() < grace + PATIENCE {
        let living = hunt.freeze();
        if !living.is_empty() {
            (clean, unsure) = (0, 0);
        } else if hunt.quiet {
            clean += 1;
        } else {
            unsure += 1;
        }
        for process in &living {
            let _ = process.signal(Signal::KILL);
        }
        wait(&living, Instant::now() + LOOK_AGAIN);
    }
    first.len().try_into().unwrap_or(u32::MAX)
}

/// Repeated looks for a target's processes.
struct Hunt<'a> {
    target: &'a Target,
    scope: Scope,
    /// Who was found so far, by number and start time. It stays a member though
    /// it may lose what made it one.
    known: HashMap<i32, u64>,
    /// First processes of commands before and after the last look. One that is
    /// just being started has no marker yet.
    leaders: HashSet<i32>,
    /// Who was dead at the last look.
    dead: HashSet<(i32, u64)>,
    /// Whether nobody ended during the last look. Numbers are listed in rising
    /// order, so somebody of a chain of processes, each of which starts the next
    /// and ends, is always listed; but it may be gone when it is looked at.
    quiet: bool,
}

impl<'a> Hunt<'a> {
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

    /// Stops the processes until a look finds no new one, so that none can start
    /// others while they are killed one after another.
    fn freeze(&mut self) -> Vec<Process> {
        let mut stopped = HashSet::new();
        let began = Instant::now();
        loop {
            let living = self.look();
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

    /// The living processes that belong to the target now.
    fn look(&mut self) -> Vec<Process> {
        let target = self.target;
        // Only a tree has orphans to tell from commands.
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
                if !family.has(place) && process.alive && self.suspicious(process) {
                    family.add(place);
                }
            }
            family.close();
        }
        family.living()
    }

    /// Whether a process that nothing else ties to the target belongs to it.
    fn suspicious(&self, process: &Process) -> bool {
        let target = self.target;
        let Some(adopter) = &target.supervisor else {
            return process
                .marker()
                .is_some_and(|marker| target.marker.matches(&marker));
        };
        // What descends from another command or from an orphan goes with that.
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

/// Waits until all of these (of very many: the first) have ended.
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

/// Those of `all` that descend from `root`, without itself.
fn descendants(all: &[Process], root: i32) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
    for process in all.iter().filter(|process| process.pid != root) {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        // Taken out, so that numbers that changed hands during the look cannot
        // make a circle.
        for process in children.remove(&parent).unwrap_or_default() {
            parents.push(process.pid);
            found.push(*process);
        }
    }
    found
}

/// A set of processes that grows by what its members started.
struct Family<'a> {
    all: &'a [Process],
    member: Vec<bool>,
    /// Members whose kin has not been looked up yet.
    fresh: Vec<usize>,
    /// Who has this number as parent, group or session.
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
            member: vec![false; all.len()],
            fresh: Vec::new(),
            kin,
        }
    }

    fn has(&self, place: usize) -> bool {
        self.member.get(place).copied().unwrap_or(false)
    }

    fn add(&mut self, place: usize) {
        if let Some(member) = self.member.get_mut(place).filter(|member| !**member) {
            *member = true;
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
        let pairs = self.all.iter().zip(self.member);
        pairs
            .filter(|(process, member)| *member && process.alive)
            .map(|(process, _)| *process)
            .collect()
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
            // Lost its parent, but stands in a session that a member leads.
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
            // Moved itself into the group of another command.
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
