//! The program on a pseudo-terminal: questions, pauses, colours, Ctrl-C.

use std::process::Stdio;

use nix::sys::wait::WaitStatus;
use rexpect::session::{PtySession, spawn_command};

use crate::support::{TestDir, names};

/// Timeout in milliseconds.
const PATIENCE: u64 = 60_000;

fn start(dir: &TestDir, arguments: &[&str], variables: &[(&str, &str)]) -> PtySession {
    let mut command = dir.command(arguments);
    command.env("TERM", "xterm").envs(variables.iter().copied());
    // All three standard streams are the terminal.
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit());
    command.stderr(Stdio::inherit());
    spawn_command(command, Some(PATIENCE)).unwrap()
}

/// Returns the rest of the output, and the exit code.
fn ended(mut terminal: PtySession) -> (String, i32) {
    let rest = terminal.exp_eof().unwrap();
    match terminal.process().wait().unwrap() {
        WaitStatus::Exited(_, code) => (rest, code),
        other => panic!("{other:?}"),
    }
}

fn dir() -> TestDir {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("work")).unwrap();
    dir
}

const WRITE: &str = r#"{"path":"a","content":"x"}"#;

#[test]
fn what_must_be_asked_is_asked_on_the_terminal() {
    let dir = dir();
    let asking = ["--backend", "local:work", "--permissions", "default"];
    let call = [&asking[..], &["call", "write_file", WRITE]].concat();
    for (answer, code) in [("n", 2), ("", 2), ("maybe", 2), ("y", 0)] {
        assert!(names(&dir.path("work")).is_empty(), "{answer:?} came first");
        let mut terminal = start(&dir, &call, &[]);
        terminal.exp_string("Write 1 char to /a").unwrap();
        terminal.exp_string("[y/N]").unwrap();
        terminal.send_line(answer).unwrap();
        assert_eq!(ended(terminal).1, code, "{answer:?}");
    }
    assert_eq!(dir.read("work/a"), "x");
    let run = [&asking[..], &["run", "--", "echo", "it runs"]].concat();
    let mut terminal = start(&dir, &run, &[]);
    terminal.exp_string("[y/N]").unwrap();
    terminal.send_line("yes").unwrap();
    let (shown, code) = ended(terminal);
    assert!(shown.contains("it runs") && code == 0, "{shown}");
}

#[test]
fn a_question_can_be_left_with_ctrl_c() {
    let dir = dir();
    let asking = ["--backend", "local:work", "--permissions", "default"];
    let call = [&asking[..], &["call", "write_file", WRITE]].concat();
    let mut terminal = start(&dir, &call, &[]);
    terminal.exp_string("[y/N]").unwrap();
    terminal.send_control('c').unwrap();
    assert_eq!(ended(terminal).1, 130);
    assert!(names(&dir.path("work")).is_empty());
}

#[test]
fn ctrl_c_ends_a_command_that_does_not_want_to() {
    let dir = dir();
    let script = "trap '' INT TERM; echo ready; while :; do sleep 1000; done";
    let run = ["--backend", "local:work", "run", "--", "sh", "-c", script];
    let mut terminal = start(&dir, &run, &[]);
    terminal.exp_string("ready").unwrap();
    terminal.send_control('c').unwrap();
    assert_eq!(ended(terminal).1, 130);
}

#[test]
fn the_tour_waits_for_enter() {
    let dir = dir();
    let temporary = dir.path("work");
    let variables = [("TMPDIR", temporary.to_str().unwrap())];
    let mut terminal = start(&dir, &["tour"], &variables);
    for step in 2..=8 {
        terminal.exp_string("[Enter]").unwrap();
        terminal.send_line("").unwrap();
        terminal.exp_string(&format!("{step}. ")).unwrap();
    }
    assert_eq!(ended(terminal).1, 0);
    let mut terminal = start(&dir, &["tour"], &variables);
    terminal.exp_string("[Enter]").unwrap();
    terminal.send_control('c').unwrap();
    assert_eq!(ended(terminal).1, 130);
    assert!(names(&temporary).is_empty());
}

#[test]
fn colours_are_for_terminals_and_for_those_who_want_them() {
    let dir = dir();
    let list = ["--backend", "local:work", "tools"];
    let (shown, _) = ended(start(&dir, &list, &[]));
    assert!(shown.contains("\u{1b}["), "{shown}");
    let (shown, _) = ended(start(&dir, &list, &[("NO_COLOR", "1")]));
    assert!(!shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn a_file_cannot_play_with_the_terminal() {
    let dir = dir();
    dir.file("work/evil", "\u{1b}]0;owned\u{7}\u{1b}[2Jtext\r\u{202e}");
    let read = [
        "--backend",
        "local:work",
        "call",
        "read_file",
        r#"{"path":"evil"}"#,
    ];
    let (shown, code) = ended(start(&dir, &read, &[]));
    assert_eq!(code, 0);
    assert!(
        shown.contains("text") && !shown.contains('\u{1b}'),
        "{shown:?}"
    );
    // A pipe gets the text unchanged.
    assert!(dir.run(&read).code(0).out.contains("\u{1b}[2J"));
}
