//! `agentbox shell` on a pseudo-terminal.

use backend_testkit::processes;

use crate::support::TestDir;
use crate::support::terminal::Terminal;

fn dir() -> TestDir {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("work")).unwrap();
    dir
}

/// Starts the program on a directory.
fn start<'d>(dir: &'d TestDir, arguments: &str) -> Terminal<'d> {
    Terminal::start(dir, &dir.command(&["--backend", "local:work"]), arguments)
}

#[test]
fn keys_go_in_and_output_comes_out() {
    let dir = dir();
    let mut terminal = start(&dir, "shell -- sh");
    terminal.sees("> ");
    terminal.types("stty size; echo in=$((40+2)) > file\r");
    terminal.sees("33 99");
    terminal.types("cat file; exit 7\r");
    terminal.sees("in=42");
    terminal.ends(7);
    assert_eq!(dir.read("work/file"), "in=42\n");
}

#[test]
fn ctrl_c_goes_inside() {
    let dir = dir();
    let mut terminal = start(&dir, "shell -- sh");
    terminal.sees("> ");
    terminal.types("cat\r");
    terminal.types("typed\r");
    terminal.sees("typed\r\ntyped\r\n");
    terminal.control('c');
    // The terminal drops what is typed before the key has arrived.
    terminal.sees("> ");
    terminal.types("echo still $((1+1))\r");
    terminal.sees("still 2");
    terminal.control('d');
    terminal.ends(0);
}

#[test]
fn a_new_size_is_passed_on() {
    let dir = dir();
    let line =
        "shell -- sh -c 'trap \"stty size; exit\" WINCH; echo ready; while :; do sleep 0.05; done'";
    let mut terminal = start(&dir, line);
    terminal.sees("ready");
    terminal.resize(44, 111);
    terminal.sees("44 111");
    terminal.ends(0);
}

#[test]
fn enter_tilde_dot_leaves_and_ends_everything() {
    let dir = dir();
    let token = processes::token();
    let line = format!(
        "shell -- sh -c 'trap \"\" INT HUP TERM; stty raw; echo ready; sleep {token}; sleep {token}'"
    );
    let mut terminal = start(&dir, &line);
    terminal.sees("ready");
    terminal.types("\r~.");
    let rest = terminal.ends(0);
    assert!(rest.contains("you left the shell"), "{rest}");
    // A full-screen program had no chance to restore the screen.
    assert!(rest.contains("\x1b[?1047l"), "{rest:?}");
    processes::none(&token);
}

#[test]
fn the_terminal_is_restored_when_the_program_is_told_to_end() {
    let dir = dir();
    let token = processes::token();
    let line = format!("shell -- sh -c 'echo $PPID; echo ready; sleep {token}; :'");
    let mut terminal = start(&dir, &line);
    terminal.sees("ready");
    // The program whose arguments have the token and that is not in the sandbox.
    let found = processes::survivors(&token);
    let program = found.iter().copied().min().unwrap();
    let is_program = |pid: &i32| {
        let path = std::fs::read_link(format!("/proc/{pid}/exe"));
        path.is_ok_and(|path| path.ends_with("agentbox"))
    };
    let program = found.iter().copied().find(is_program).unwrap_or(program);
    let program = nix::unistd::Pid::from_raw(program);
    nix::sys::signal::kill(program, nix::sys::signal::Signal::SIGTERM).unwrap();
    terminal.ends(143);
    processes::gone(&token);
}

#[test]
fn a_terminal_is_asked_about() {
    let dir = dir();
    let mut terminal = start(&dir, "--permissions default shell -- cat");
    terminal.sees("Open a terminal for cat");
    terminal.sees("[y/N]");
    terminal.types("y\n");
    terminal.types("typed\r");
    terminal.sees("typed\r\ntyped");
    terminal.control('d');
    terminal.ends(0);
    let terminal = start(&dir, "--permissions readonly shell -- cat");
    terminal.ends(2);
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let dir = dir();
    let ended = dir.run(&["--backend", "local:work", "shell"]).code(64);
    ended.complains("agentbox run");
}
