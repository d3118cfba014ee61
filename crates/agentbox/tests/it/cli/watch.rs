//! `watch`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::TestDir;

/// Starts the program and waits until it watches.
fn watch(dir: &TestDir, arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let all = [&["watch", "--backend", "local:tree"], arguments].concat();
    let mut child = dir.start(&all);
    let mut notes = BufReader::new(child.stderr.take().unwrap());
    let mut note = String::new();
    notes.read_line(&mut note).unwrap();
    assert!(note.starts_with("agentbox: watching /"), "{note}");
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

fn line(out: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line
}

#[test]
fn changes_are_printed_until_it_is_interrupted() {
    let dir = TestDir::new();
    dir.file("tree/old.txt", "old");
    // A directory that is new may be listed only after something was moved into it.
    std::fs::create_dir(dir.path("tree/e")).unwrap();
    let (mut child, mut out) = watch(&dir, &["--exclude", "*.log"]);
    std::fs::create_dir(dir.path("tree/d")).unwrap();
    assert_eq!(line(&mut out), "created /d\n");
    std::fs::write(dir.path("tree/noise.log"), "").unwrap();
    std::fs::rename(dir.path("tree/old.txt"), dir.path("tree/e/new.txt")).unwrap();
    assert_eq!(line(&mut out), "renamed /old.txt -> /e/new.txt\n");
    std::fs::remove_file(dir.path("tree/e/new.txt")).unwrap();
    assert_eq!(line(&mut out), "deleted /e/new.txt\n");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn the_end_of_the_directory_ends_it() {
    let dir = TestDir::new();
    dir.file("tree/d/e/a.txt", "");
    let (mut child, mut out) = watch(&dir, &["d", "--one-level"]);
    dir.file("tree/d/e/b.txt", "");
    std::fs::remove_dir_all(dir.path("tree/d")).unwrap();
    assert_eq!(line(&mut out), "deleted /d/e\n");
    assert_eq!(line(&mut out), "deleted /d\n");
    assert_eq!(line(&mut out), "");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_missing_directory_is_told() {
    let dir = TestDir::new();
    dir.file("tree/a.txt", "");
    let run = |path| dir.run(&["watch", "--backend", "local:tree", path]);
    run("missing").code(3).complains("watch '/missing'");
    run("a.txt").code(3).complains("not a directory");
}
