//! Ctrl-C ends everything and leaves nothing behind.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use backend_testkit::processes;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{TestDir, names};

/// Longest time a process may take to end.
const PATIENCE: Duration = Duration::from_secs(60);

fn interrupt(child: &Child, signal: Signal) {
    let pid = Pid::from_child(child);
    kill_process(pid, signal).unwrap();
}

/// Sends the signal until the process has ended: two at once may be merged into one.
fn insist(child: &mut Child, signal: Signal) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("no signal ends it");
        }
        interrupt(child, signal);
        std::thread::yield_now();
    }
}

/// Reads the process id that a command prints first. Returns it with a handle.
fn started(child: &mut Child) -> (i32, OwnedFd, BufReader<std::process::ChildStdout>) {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let pid: i32 = line.trim().parse().unwrap();
    let handle = processes::handle(pid).unwrap();
    (pid, handle, out)
}

/// Waits until a process has ended.
fn gone(handle: &OwnedFd) {
    assert!(processes::wait(handle, PATIENCE), "it still runs");
}

#[test]
fn once_ends_the_command_and_then_the_program() {
    let dir = TestDir::new();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let script = "echo $$; exec sleep 1000";
        let mut child = dir.start(&["--backend", "local:.", "run", "--", "sh", "-c", script]);
        let (pid, _handle, _out) = started(&mut child);
        interrupt(&child, signal);
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(code));
        // The process is gone already, not just soon.
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}

#[test]
fn a_terminal_that_goes_ends_it_unless_it_was_told_to_stay() {
    let dir = TestDir::new();
    let fifo = Command::new("mkfifo").arg(dir.path("fifo")).status();
    assert!(fifo.unwrap().success());
    let script = "echo $$; read -r word < fifo; exit 7";
    let run = ["--backend", "local:.", "run", "--", "sh", "-c", script];
    let start = |hangup: &str| {
        // A shell sets the signal's disposition for the program.
        let line = format!("trap '{hangup}' HUP; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_agentbox")]);
        shell.args(run).current_dir(dir.path(""));
        shell.env_clear().env("PATH", "/usr/bin:/bin");
        shell.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let (_, _handle, out) = started(&mut child);
        interrupt(&child, Signal::HUP);
        (child, out)
    };
    let (mut child, _out) = start("");
    std::fs::write(dir.path("fifo"), "go on\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    // A signal that this test inherited as ignored cannot be reset by the shell.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:\t"));
    if u64::from_str_radix(ignored.unwrap(), 16).unwrap() & 1 == 0 {
        let (mut child, _out) = start("-");
        assert_eq!(child.wait().unwrap().code(), Some(129));
    }
}

#[test]
fn twice_ends_the_program_whatever_the_command_does() {
    let dir = TestDir::new();
    let script = "trap '' INT TERM; setsid sh -c 'trap \"\" TERM; sleep 1000' & echo $$; while :; do sleep 1000; done";
    let mut child = dir.start(&["--backend", "local:.", "run", "--", "sh", "-c", script]);
    let (_, handle, mut out) = started(&mut child);
    let status = insist(&mut child, Signal::INT);
    assert_eq!(status.code(), Some(130));
    gone(&handle);
    // No process holds the output open any more, not even one hidden in another
    // session.
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
}

#[test]
fn the_program_killed_outright_leaves_nothing() {
    let dir = TestDir::new();
    let script = "trap '' INT TERM; echo $$; while :; do sleep 1000; done";
    let mut child = dir.start(&["--backend", "local:.", "run", "--", "sh", "-c", script]);
    let (_, handle, _out) = started(&mut child);
    interrupt(&child, Signal::KILL);
    child.wait().unwrap();
    gone(&handle);
}

#[test]
fn a_reader_that_stands_still_does_not_keep_it() {
    let dir = TestDir::new();
    let mut child = dir.start(&["--backend", "local:.", "run", "--", "yes"]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    // The pipe fills up, because the test does not read it.
    let status = insist(&mut child, Signal::INT);
    assert_eq!(status.code(), Some(130));
    drop(out);
}

#[test]
fn twice_ends_the_program_also_where_it_is_stuck() {
    let dir = TestDir::new();
    dir.file("big", &format!("{}\n", "x".repeat(100)).repeat(1_500));
    let read = r#"{"path":"big"}"#;
    let mut child = dir.start(&["--backend", "local:.", "call", "read_file", read, "--json"]);
    // More than a pipe holds, and the test stops reading: the program blocks in a
    // write.
    let mut byte = [0];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut byte).unwrap();
    let status = insist(&mut child, Signal::INT);
    assert_eq!(status.code(), Some(130));
}

#[test]
fn a_call_is_cancelled() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("work")).unwrap();
    let fifo = Command::new("mkfifo").arg(dir.path("work/fifo")).status();
    assert!(fifo.unwrap().success());
    let call = r#"{"command":"echo $$ > fifo; exec sleep 1000"}"#;
    let mut child = dir.start(&["--backend", "local:work", "call", "execute", call]);
    let pid = std::fs::read_to_string(dir.path("work/fifo")).unwrap();
    interrupt(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[test]
fn a_call_that_waits_for_its_arguments_is_cancelled() {
    let dir = TestDir::new();
    let mut command = dir.command(&["--backend", "state", "call", "ls", "-", "--log", "off"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let status = insist(&mut child, Signal::INT);
    // Until it watches for signals, the signal itself ends it.
    assert!(matches!(status.code(), Some(130) | None), "{status}");
    assert_eq!(names(&dir.path("")), ["home"]);
}
