//! `agentbox shell` on a pseudo-terminal.

use std::process::Stdio;

use backend_testkit::processes;
use nix::sys::wait::WaitStatus;
use rexpect::session::{PtySession, spawn_command};

use crate::support::TestDir;

/// Timeout in milliseconds.
const PATIENCE: u64 = 60_000;

fn dir() -> TestDir {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("work")).unwrap();
    dir
}

/// Starts the program on a terminal, within a script that records the state of the
/// terminal before and after.
fn start(dir: &TestDir, arguments: &str) -> PtySession {
    let script = format!(
        "stty rows 33 columns 99; stty -a > before; \
         \"$0\" --backend local:work {arguments}; code=$?; stty -a > after; exit $code"
    );
    let program = dir.command(&[]);
    let mut command = dir.command(&[]);
    command = {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script]).arg(program.get_program());
        shell.env_clear();
        let variables = command.get_envs();
        shell.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        shell.current_dir(dir.path("."));
        shell
    };
    command.env("TERM", "xterm").env("PS1", "> ");
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit());
    command.stderr(Stdio::inherit());
    spawn_command(command, Some(PATIENCE)).unwrap()
}

fn types(terminal: &mut PtySession, text: &str) {
    terminal.send(text).unwrap();
    terminal.flush().unwrap();
}

/// Checks the exit code, and that the terminal is as it was.
#[track_caller]
fn ends(dir: &TestDir, mut terminal: PtySession, code: i32) -> String {
    let rest = terminal.exp_eof().unwrap();
    match terminal.process().wait().unwrap() {
        WaitStatus::Exited(_, exited) => assert_eq!(exited, code, "{rest}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(dir.read("before"), dir.read("after"));
    rest
}

#[test]
fn keys_go_in_and_output_comes_out() {
    let dir = dir();
    let mut terminal = start(&dir, "shell -- sh");
    terminal.exp_string("> ").unwrap();
    types(&mut terminal, "stty size; echo in=$((40+2)) > file\r");
    terminal.exp_string("33 99").unwrap();
    types(&mut terminal, "cat file; exit 7\r");
    terminal.exp_string("in=42").unwrap();
    ends(&dir, terminal, 7);
    assert_eq!(dir.read("work/file"), "in=42\n");
}

#[test]
fn ctrl_c_goes_inside() {
    let dir = dir();
    let mut terminal = start(&dir, "shell -- sh");
    terminal.exp_string("> ").unwrap();
    types(&mut terminal, "cat\r");
    types(&mut terminal, "typed\r");
    terminal.exp_string("typed\r\ntyped\r\n").unwrap();
    terminal.send_control('c').unwrap();
    // The terminal drops what is typed before the key has arrived.
    terminal.exp_string("> ").unwrap();
    types(&mut terminal, "echo still $((1+1))\r");
    terminal.exp_string("still 2").unwrap();
    terminal.send_control('d').unwrap();
    ends(&dir, terminal, 0);
}

#[test]
fn a_new_size_is_passed_on() {
    let dir = dir();
    let line =
        "shell -- sh -c 'trap \"stty size; exit\" WINCH; echo ready; while :; do sleep 0.05; done'";
    let mut terminal = start(&dir, line);
    terminal.exp_string("ready").unwrap();
    let size = rustix::termios::Winsize {
        ws_row: 44,
        ws_col: 111,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let device = terminal.process().get_file_handle().unwrap();
    rustix::termios::tcsetwinsize(&device, size).unwrap();
    terminal.exp_string("44 111").unwrap();
    terminal.exp_eof().unwrap();
}

#[test]
fn enter_tilde_dot_leaves_and_ends_everything() {
    let dir = dir();
    let token = processes::token();
    let line = format!(
        "shell -- sh -c 'trap \"\" INT HUP TERM; stty raw; echo ready; sleep {token}; sleep {token}'"
    );
    let mut terminal = start(&dir, &line);
    terminal.exp_string("ready").unwrap();
    types(&mut terminal, "\r~.");
    let rest = ends(&dir, terminal, 0);
    assert!(rest.contains("you left the shell"), "{rest}");
    processes::none(&token);
}

#[test]
fn the_terminal_is_restored_when_the_program_is_told_to_end() {
    let dir = dir();
    let token = processes::token();
    let line = format!("shell -- sh -c 'echo $PPID; echo ready; sleep {token}; :'");
    let mut terminal = start(&dir, &line);
    terminal.exp_string("ready").unwrap();
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
    ends(&dir, terminal, 143);
    processes::gone(&token);
}

#[test]
fn a_terminal_is_asked_about() {
    let dir = dir();
    let mut terminal = start(&dir, "--permissions default shell -- cat");
    terminal.exp_string("Open a terminal for cat").unwrap();
    terminal.exp_string("[y/N]").unwrap();
    terminal.send_line("y").unwrap();
    types(&mut terminal, "typed\r");
    terminal.exp_string("typed\r\ntyped").unwrap();
    terminal.send_control('d').unwrap();
    ends(&dir, terminal, 0);
    let terminal = start(&dir, "--permissions readonly shell -- cat");
    ends(&dir, terminal, 2);
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let dir = dir();
    let ended = dir.run(&["--backend", "local:work", "shell"]).code(64);
    ended.complains("agentbox run");
}
