//! Collects exits: those of commands are reported, those of orphans are not.

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, WaitStatus};

use super::process::group_exists;
use super::protocol::{Exit, Reply};
use super::shared::Shared;
use super::table::Table;

/// Collects exits in an endless loop.
pub(crate) fn run(shared: &Shared) {
    loop {
        let seen = shared.table().started;
        // Does not reap yet: until the table is locked, the process ID must not
        // be reused.
        match rustix::process::waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => collect(shared),
            Err(Errno::CHILD) => {
                let same = |table: &mut Table| table.started == seen;
                drop(shared.started.wait_while(shared.table(), same));
            }
            Err(_) => {}
        }
    }
}

/// Reaps ended processes and reports the commands among them.
fn collect(shared: &Shared) {
    let mut exits = Vec::new();
    let mut table = shared.table();
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        exits.extend(leader_ended(&mut table, pid, status));
    }
    drop(table);
    for reply in exits {
        shared.tell(&reply);
    }
}

fn leader_ended(table: &mut Table, pid: Pid, status: WaitStatus) -> Option<Reply> {
    let number = pid.as_raw_nonzero().get();
    let id = table.leaders.remove(&number)?;
    // The kernel does not reuse a group ID while the group has members, so this
    // is either the command's group or none.
    let group = group_exists(pid);
    if let Some(record) = table.commands.get_mut(&id) {
        record.exited = true;
        if !group && !record.ending {
            table.finish(id);
        }
    }
    let exit = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(0)),
    };
    Some(Reply::Exited { id, exit, group })
}
