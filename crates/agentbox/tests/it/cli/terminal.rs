//! The program on a pseudo-terminal: questions, pauses, colours, Ctrl-C.

use std::process::Stdio;

use nix::sys::wait::WaitStatus;
use rexpect::session::{PtySession, spawn_command};

use crate::support::{Place, names};

/// Timeout in milliseconds.
const PATIENCE: u64 = 60_000;

fn start(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> PtySession {
    let mut command = place.command(arguments);
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

fn place() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("work")).unwrap();
    place
}

const WRITE: &str = r#"{"path":"a","content":"x"}"#;

#[test]
fn what_must_be_asked_is_asked_on_the_terminal() {
    let place = place();
    let asking = ["--backend", "local:work", "--permissions", "default"];
    let call = [&asking[..], &["call", "write_file", WRITE]].concat();
    for (answer, code) in [("n", 2), ("", 2), ("maybe", 2), ("y", 0)] {
        assert!(
            names(&place.path("work")).is_empty(),
            "{answer:?} came first"
        );
        let mut terminal = start(&place, &call, &[]);
        terminal.exp_string("Write 1 char to /a").unwrap();
        terminal.exp_string("[y/N]").unwrap();
        terminal.send_line(answer).unwrap();
        assert_eq!(ended(terminal).1, code, "{answer:?}");
    }
    assert_eq!(place.read("work/a"), "x");
    let run = [&asking[..], &["run", "--", "echo", "it runs"]].concat();
    let mut terminal = start(&place, &run, &[]);
    terminal.exp_string("[y/N]").unwrap();
    terminal.send_line("yes").unwrap();
    let (shown, code) = ended(terminal);
    assert!(shown.contains("it runs") && code == 0, "{shown}");
}

#[test]
fn a_question_can_be_left_with_ctrl_c() {
    let place = place();
    let asking = ["--backend", "local:work", "--permissions", "default"];
    let call = [&asking[..], &["call", "write_file", WRITE]].concat();
    let mut terminal = start(&place, &call, &[]);
    terminal.exp_string("[y/N]").unwrap();
    terminal.send_control('c').unwrap();
    assert_eq!(ended(terminal).1, 130);
    assert!(names(&place.path("work")).is_empty());
}

#[test]
fn ctrl_c_ends_a_command_that_does_not_want_to() {
    let place = place();
    let script = "trap '' INT TERM; echo ready; while :; do sleep 1000; done";
    let run = ["--backend", "local:work", "run", "--", "sh", "-c", script];
    let mut terminal = start(&place, &run, &[]);
    terminal.exp_string("ready").unwrap();
    terminal.send_control('c').unwrap();
    assert_eq!(ended(terminal).1, 130);
}

#[test]
fn the_tour_waits_for_enter() {
    let place = place();
    let temporary = place.path("work");
    let variables = [("TMPDIR", temporary.to_str().unwrap())];
    let mut terminal = start(&place, &["tour"], &variables);
    for step in 2..=8 {
        terminal.exp_string("[Enter]").unwrap();
        terminal.send_line("").unwrap();
        terminal.exp_string(&format!("{step}. ")).unwrap();
    }
    assert_eq!(ended(terminal).1, 0);
    let mut terminal = start(&place, &["tour"], &variables);
    terminal.exp_string("[Enter]").unwrap();
    terminal.send_control('c').unwrap();
    assert_eq!(ended(terminal).1, 130);
    assert!(names(&temporary).is_empty());
}

#[test]
fn colours_are_for_terminals_and_for_those_who_want_them() {
    let place = place();
    let list = ["--backend", "local:work", "tools"];
    let (shown, _) = ended(start(&place, &list, &[]));
    assert!(shown.contains("\u{1b}["), "{shown}");
    let (shown, _) = ended(start(&place, &list, &[("NO_COLOR", "1")]));
    assert!(!shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn a_file_cannot_play_with_the_terminal() {
    let place = place();
    place.file("work/evil", "\u{1b}]0;owned\u{7}\u{1b}[2Jtext\r\u{202e}");
    let read = [
        "--backend",
        "local:work",
        "call",
        "read_file",
        r#"{"path":"evil"}"#,
    ];
    let (shown, code) = ended(start(&place, &read, &[]));
    assert_eq!(code, 0);
    assert!(
        shown.contains("text") && !shown.contains('\u{1b}'),
        "{shown:?}"
    );
    // A pipe gets the text unchanged.
    assert!(place.run(&read).code(0).out.contains("\u{1b}[2J"));
}
