//! Processes of the machine: which belong to which sandbox, and their end.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// A process that has not ended.
#[derive(Debug)]
struct Entry {
    id: i32,
    parent: i32,
    group: i32,
}

/// Returns a child of a process.
pub(crate) fn child_of(parent: u32) -> Option<u32> {
    let parent = i32::try_from(parent).ok()?;
    let child = all().into_iter().find(|it| it.parent == parent)?;
    u32::try_from(child.id).ok()
}

/// Returns the processes of a group, and all that descend from its leader or from them.
pub(crate) fn family(leader: u32) -> BTreeSet<i32> {
    let leader = match i32::try_from(leader) {
        Ok(leader) if leader > 1 => leader,
        _ => return BTreeSet::new(),
    };
    let entries = all();
    let mut found: BTreeSet<i32> = entries
        .iter()
        .filter(|it| it.id == leader || it.group == leader)
        .map(|it| it.id)
        .collect();
    loop {
        let n_before = found.len();
        for entry in &entries {
            if found.contains(&entry.parent) {
                found.insert(entry.id);
            }
        }
        if found.len() == n_before {
            return found;
        }
    }
}

/// Kills a family. All are stopped first: a process that starts another one while it is
/// killed would leave a child whose origin can no longer be seen.
pub(crate) fn kill_family(leader: u32) {
    let mut stopped = BTreeSet::new();
    loop {
        let found = family(leader);
        let new: BTreeSet<i32> = found.difference(&stopped).copied().collect();
        if new.is_empty() {
            break;
        }
        signal(&new, Signal::STOP);
        stopped.extend(new);
    }
    signal(&stopped, Signal::KILL);
}

/// Returns the processes whose environment has this variable with this value.
pub(crate) fn with_variable(variable: &str) -> BTreeSet<i32> {
    let has_it = |id: i32| {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|it| it == variable.as_bytes())
    };
    all()
        .into_iter()
        .map(|it| it.id)
        .filter(|id| has_it(*id))
        .collect()
}

/// Returns those of the processes that have not ended.
pub(crate) fn alive(ids: &BTreeSet<i32>) -> BTreeSet<i32> {
    ids.iter()
        .copied()
        .filter(|id| entry(*id).is_some())
        .collect()
}

/// Sends a signal to processes. Those that have ended are left out.
pub(crate) fn signal(ids: &BTreeSet<i32>, signal: Signal) {
    for id in ids.iter().filter_map(|id| Pid::from_raw(*id)) {
        let _ = kill_process(id, signal);
    }
}

fn all() -> Vec<Entry> {
    let Ok(listed) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let ids = listed.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
    ids.filter_map(entry).collect()
}

fn entry(id: i32) -> Option<Entry> {
    // `12 (name) S 1 12 …`: a name can hold spaces and brackets.
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut words = text.rsplit_once(") ")?.1.split(' ');
    let state = words.next()?;
    let (parent, group) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (!matches!(state, "Z" | "X")).then_some(Entry { id, parent, group })
}
