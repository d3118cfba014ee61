//! `tour`.

use std::io::{BufRead as _, BufReader};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{TestDir, names};

#[test]
fn the_tour_runs_through_and_leaves_nothing() {
    let dir = TestDir::new();
    let temporary = dir.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let ended = dir
        .run_with(&["tour"], &[("TMPDIR", temporary.to_str().unwrap())])
        .code(0);
    assert_eq!(ended.err, "");
    for shown in [
        "Wrote 6 lines",
        "was not found",
        "replaced 1 occurrence",
        "1:",
        "the hash given is",
        "3: def greet(name):",
        "exit code 3",
        "left running was ended",
        "hello agent",
        "Killed background shell",
        "climbs above the root",
        "leads outside",
        "? Edit /src/app.py",
        "Permission denied",
    ] {
        assert!(
            ended.out.contains(shown),
            "{shown} is not in\n{}",
            ended.out
        );
    }
    assert!(names(&temporary).is_empty());
    assert_eq!(names(&dir.path("")), ["home", "tmp"]);
}

#[test]
fn a_tour_that_is_broken_off_leaves_nothing() {
    let dir = TestDir::new();
    let temporary = dir.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = dir.command(&["tour"]);
    let mut child = command.env("TMPDIR", &temporary).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let rest: Vec<_> = out.lines().collect();
    drop(rest);
    let code = child.wait().unwrap().code();
    // The tour may have ended before the signal.
    assert!(matches!(code, Some(130 | 0)), "{code:?}");
    assert!(names(&temporary).is_empty());
}
