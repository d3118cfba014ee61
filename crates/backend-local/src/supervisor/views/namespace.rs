//! Entering mount namespaces.

use std::fs;
use std::path::Path;

use nix::sched::CloneFlags;
use rustix::io::Errno;
use rustix::mount::MountPropagationFlags;
use rustix::process::{getegid, geteuid};

use super::super::threads;
use super::mounts::{self, refused};

/// Enters a mount namespace of the supervisor's own, and mounts the masks at `masks`.
/// Threads that start later are in it too. A user who is not root needs a user
/// namespace for it, in which everything else is as before: the user and the group
/// are the same, and others' files are others'.
pub(crate) fn enter(masks: &Path) -> Result<(), String> {
    if geteuid().is_root() {
        unshare(CloneFlags::CLONE_NEWNS)?;
    } else {
        enter_user_namespace()?;
    }
    // Mounts and unmounts of the host still arrive. None goes back.
    let flags = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", flags)
        .map_err(|error| refused("change how mounts spread", error))?;
    mounts::make_masks(masks)
}

/// Enters a copy of this thread's mount namespace.
pub(super) fn copy() -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNS)
}

fn enter_user_namespace() -> Result<(), String> {
    if threads::count() != Some(1) {
        return Err(
            "only a process with one thread can enter a user namespace; call \
             `supervisor::run_if_asked` first thing in `main`, before a runtime starts, or \
             install agentbox-supervisor beside this program"
                .into(),
        );
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| format!("the user namespace takes no {file}: {error}"))?;
    }
    Ok(())
}

fn unshare(flags: CloneFlags) -> Result<(), String> {
    nix::sched::unshare(flags).map_err(|error| {
        let error = Errno::from_raw_os_error(error as i32);
        refused("enter a mount namespace", error)
    })
}
