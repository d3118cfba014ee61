//! Systems that refuse what a view needs, as the default profiles of containers do: the
//! level sinks, with the cause, and what demands more does not run.
//!
//! Each test starts itself again beneath a filter that refuses system calls.

use std::collections::BTreeMap;
use std::fs;

use backend_core::ErrorKind::PermissionDenied;
use backend_core::ops::{Command, View};
use backend_core::{Backend as _, Enforcement, Sandbox as _};
use backend_local::Landlock;
use backend_testkit::fails;
use nix::libc;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::support::views::*;

/// Refuses a system call to a new run of `test`. Returns `true` in that run.
fn is_refused(call: i64, errno: i32, test: &str) -> bool {
    if is_again() {
        return true;
    }
    let test = format!("refused_views::{test}");
    // A filter is of one thread, and of what that starts.
    let starter = std::thread::spawn(move || {
        let refuse = SeccompAction::Errno(errno.unsigned_abs());
        let rules = BTreeMap::from([(call, Vec::new())]);
        let here = std::env::consts::ARCH.try_into().unwrap();
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, here).unwrap();
        let program: BpfProgram = filter.try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();
        let own = std::process::Command::new(std::env::current_exe().unwrap());
        run_again(own, &test);
    });
    starter.join().unwrap();
    false
}

/// Checks that there is no view, for this cause, that what demands one is refused, and
/// that all else runs at the lower level.
async fn has_sunk(cause: &str) {
    let place = Place::with(Landlock::new().views(true));
    let info = place.backend.info();
    assert_eq!(info.enforcement, Enforcement::Landlock);
    let limit = info.enforcement_limit.unwrap();
    assert!(limit.contains(cause), "{limit}");
    assert!(limit.contains("seccomp"), "no next step: {limit}");

    let strict = || Command::new("echo x > ran").view(rules().required(Enforcement::View));
    let backend = &place.backend;
    let said = backend.execute(strict()).await.unwrap_err().to_string();
    for part in ["'view'", "'landlock'", cause] {
        assert!(said.contains(part), "{part}: {said}");
    }
    fails(PermissionDenied, backend.execute(strict()).await);
    fails(PermissionDenied, backend.stream(strict()).await.map(drop));
    fails(PermissionDenied, backend.shell_start(strict()).await);
    // A view without rules is demanded just the same.
    let bare = Command::new("echo x > ran").view(View::default().required(Enforcement::View));
    fails(PermissionDenied, backend.execute(bare).await);
    assert!(!place.inside.join("ran").exists());

    // The level that is told is the one that there is: inside nothing is kept, and
    // outside everything is.
    assert_eq!(place.says("cat .env").await, SECRET);
    fs::write(place.outside("secret"), SECRET).unwrap();
    let line = format!("cat {}", place.outside("secret").display());
    assert!(place.says(&line).await.contains("Permission denied"));
    let landlock = Command::new("true").view(rules().required(Enforcement::Landlock));
    assert!(backend.execute(landlock).await.unwrap().status.success());
}

#[tokio::test]
async fn refused_namespaces_lower_the_level() {
    let test = "refused_namespaces_lower_the_level";
    if is_refused(libc::SYS_unshare, libc::EPERM, test) {
        has_sunk("enter a mount namespace").await;
    }
}

#[tokio::test]
async fn exhausted_namespaces_lower_the_level() {
    let test = "exhausted_namespaces_lower_the_level";
    if is_refused(libc::SYS_unshare, libc::ENOSPC, test) {
        has_sunk("enter a mount namespace").await;
    }
}

#[tokio::test]
async fn a_refused_change_of_mounts_lowers_the_level() {
    let test = "a_refused_change_of_mounts_lowers_the_level";
    if is_refused(libc::SYS_mount, libc::EPERM, test) {
        has_sunk("change how mounts spread").await;
    }
}

#[tokio::test]
async fn a_refused_file_system_lowers_the_level() {
    let test = "a_refused_file_system_lowers_the_level";
    if is_refused(libc::SYS_fsopen, libc::EPERM, test) {
        has_sunk("mount a file system").await;
    }
}

/// Namespaces are let pass, and the masks are not: only a real mount shows it.
#[tokio::test]
async fn a_refused_mask_lowers_the_level() {
    let test = "a_refused_mask_lowers_the_level";
    if is_refused(libc::SYS_open_tree, libc::EPERM, test) {
        has_sunk("mask ").await;
    }
}
