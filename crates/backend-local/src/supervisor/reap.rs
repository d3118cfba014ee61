//! Collecting exits: those of commands are told, those of orphans are not.

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, WaitStatus};

use super::protocol::{Exit, Reply};
use super::table::{Shared, Table};

/// Collects exits for ever.
pub(crate) fn run(shared: &Shared) {
    loop {
        let seen = shared.table().started;
        // Only looks: until the table is locked, the number must stay taken.
        match rustix::process::waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => collect(shared),
            Err(Errno::CHILD) => {
                let mut table = shared.table();
                while table.started == seen {
                    table = match shared.started.wait(table) {
                        Ok(table) => table,
                        Err(poisoned) => poisoned.into_inner(),
                    };
                }
            }
            Err(_) => {}
        }
    }
}

/// Collects what has ended and tells of commands among it.
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
    // A group's number is not given away while somebody is in it, so this is
    // either the command's group or none.
    let group = !matches!(
        rustix::process::test_kill_process_group(pid),
        Err(Errno::SRCH)
    );
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
