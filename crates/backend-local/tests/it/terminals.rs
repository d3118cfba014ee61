//! Shells in terminals: confined like other commands, and none is left when something
//! dies.

use std::io::{BufRead, Write};
use std::process::Stdio;

use backend_core::ErrorKind::Unsupported;
use backend_core::limits::ATTACHED_BYTES;
use backend_core::ops::{Command, CommandStatus, ShellInfo, ShellState, StopMode, TerminalSize};
use backend_core::{Backend, Connection, Sandbox};
use backend_local::{Confinement, Landlock, Limits};
use backend_testkit::fails;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;

use crate::support::commands::*;

const SIZE: TerminalSize = TerminalSize::new(24, 80);

/// Number of terminals at once.
const TERMINALS: usize = 50;

impl Place {
    async fn terminal(&self, line: impl Into<String>) -> ShellInfo {
        let command = Command::new(line).terminal(SIZE);
        self.backend.shell_start(command).await.unwrap()
    }

    /// Runs a line in a terminal to its end, and returns what it printed.
    async fn print(&self, line: impl Into<String>) -> (String, CommandStatus) {
        let shell = self.terminal(line).await;
        let attached = self.backend.shell_attach(&shell.id).await.unwrap();
        let printed = rest(attached).await;
        let listed = self.backend.shell_list().await.unwrap();
        match listed.iter().find(|one| one.id == shell.id).unwrap().state {
            ShellState::Ended(status) => (String::from_utf8(printed).unwrap(), status),
            state => panic!("{state:?}"),
        }
    }
}

async fn rest(mut attached: Connection) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(piece) = attached.incoming.next().await {
        all.extend_from_slice(&piece.unwrap());
    }
    all
}

/// Reads until the output contains `text`.
async fn until(attached: &mut Connection, text: &str) {
    let mut all = Vec::new();
    while !String::from_utf8_lossy(&all).contains(text) {
        all.extend_from_slice(&attached.incoming.next().await.unwrap().unwrap());
    }
}

#[tokio::test]
async fn without_a_supervisor_there_is_none() {
    let [supervised, direct] = places();
    assert!(supervised.backend.info().capabilities.terminals);
    assert!(!direct.backend.info().capabilities.terminals);
    let command = Command::new("true").terminal(SIZE);
    let started = direct.backend.shell_start(command).await;
    let error = started.as_ref().unwrap_err();
    assert!(error.message().contains("run_if_asked"), "{error}");
    fails(Unsupported, started);
}

#[tokio::test]
async fn finishing_the_input_closes_nothing() {
    let [supervised, _] = places();
    let shell = supervised.terminal("cat").await;
    let mut attached = supervised.backend.shell_attach(&shell.id).await.unwrap();
    attached.outgoing.finish().await.unwrap();
    attached.outgoing.send("typed\r".into()).await.unwrap();
    let mut shown = Vec::new();
    while !shown.ends_with(b"typed\r\ntyped\r\n") {
        shown.extend(attached.incoming.next().await.unwrap().unwrap());
    }
}

#[tokio::test]
async fn a_terminal_is_confined_and_limited_like_any_command() {
    let confinement = Confinement::Landlock(Landlock::new());
    let limits = Limits::default().file_bytes(1 << 20).cpu_seconds(77);
    let place = with(supervised().confinement(confinement).limits(limits));
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let line = format!(
        "cat {}/secret; ulimit -t; head -c 2000000 /dev/zero > big; wc -c < big; test -t 0 && echo tty",
        outside.path().display()
    );
    let (printed, _) = place.print(&line).await;
    assert!(!printed.contains("\nsecret"), "{printed}");
    assert!(printed.contains("ermission denied"), "{printed}");
    assert!(printed.contains("77\r\n"), "{printed}");
    assert!(printed.contains("1048576\r\n"), "{printed}");
    assert!(printed.ends_with("tty\r\n"), "{printed}");
}

#[tokio::test]
async fn a_confined_program_can_open_its_terminal_and_no_other() {
    let confinement = Confinement::Landlock(Landlock::new());
    let place = with(supervised().confinement(confinement));
    let other = place.terminal("tty; exec cat").await;
    let mut attached = place.backend.shell_attach(&other.id).await.unwrap();
    let mut name = Vec::new();
    while !name.ends_with(b"\n") {
        name.extend_from_slice(&attached.incoming.next().await.unwrap().unwrap());
    }
    let name = String::from_utf8(name).unwrap();
    let line = format!(
        "echo mine > /dev/tty; echo other > {} && echo reached",
        name.trim()
    );
    let (printed, status) = place.print(&line).await;
    assert!(printed.starts_with("mine\r\n"), "{printed}");
    assert!(!printed.contains("reached"), "{printed}");
    assert!(!status.success());
}

/// Puts a character into the input of a terminal, as if it was typed.
const TYPE: &str = "python3 -c 'import fcntl; fcntl.ioctl(0, 0x5412, b\"x\")'";

#[tokio::test]
async fn a_confined_program_cannot_type_into_a_terminal() {
    let confinement = Confinement::Landlock(Landlock::new());
    let place = with(supervised().confinement(confinement));
    let (printed, status) = place.print(TYPE).await;
    assert!(printed.contains("Operation not permitted"), "{printed}");
    assert_eq!(status, CommandStatus::Exited(1));
}

#[tokio::test]
async fn a_reader_that_never_reads_slows_the_program_down() {
    let place = place();
    let token = token();
    let line = format!("sleep {token} & yes");
    let shell = place.terminal(line).await;
    let attached = place.backend.shell_attach(&shell.id).await.unwrap();
    // Time for a program that is not slowed down to print much more.
    for _ in 0..50 {
        place.run("true").await;
    }
    assert!(place.backend.shell_kill(&shell.id).await.unwrap());
    none(&token);
    let printed = rest(attached).await.len();
    // Besides what waits in the log, one piece was read, and the device holds some.
    assert!(printed <= 4 * ATTACHED_BYTES, "{printed}");
}

#[tokio::test]
async fn a_reader_that_never_reads_delays_no_end() {
    let place = place();
    let shell = place.terminal("yes | head -c 1000000").await;
    let attached = place.backend.shell_attach(&shell.id).await.unwrap();
    for _ in 0..50 {
        place.run("true").await;
    }
    let listed = place.backend.shell_list().await.unwrap();
    assert_eq!(listed[0].state, ShellState::Running, "it waits");
    // Every line gains a character in a terminal.
    assert_eq!(rest(attached).await.len(), 1_500_000);
    place.backend.stop(StopMode::Keep).await.unwrap();
}

/// Counts the terminals that this process holds.
fn held() -> usize {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets
        .filter(|target| target.ends_with("ptmx") || target.starts_with("/dev/pts"))
        .count()
}

/// Runs in a separate process, where no other test has terminals.
#[test]
#[ignore = "a part of another test, which starts it"]
fn part_fifty_terminals() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    // The process itself may have been started in one.
    let before = held();
    runtime.block_on(async {
        let place = place();
        let shells = join_all((0..TERMINALS).map(|_| place.terminal("cat"))).await;
        let attached = shells
            .iter()
            .map(|shell| place.backend.shell_attach(&shell.id));
        let mut attached = join_all(attached).await;
        let typed = attached.iter_mut().enumerate().map(async |(number, one)| {
            let one = one.as_mut().unwrap();
            let line = Bytes::from(format!("line {number}\n"));
            one.outgoing.send(line).await.unwrap();
            let echoed = format!("line {number}\r\n");
            until(one, &echoed.repeat(2)).await;
        });
        join_all(typed).await;
        assert!(held() >= before + TERMINALS);
        let killed = shells
            .iter()
            .map(|shell| place.backend.shell_kill(&shell.id));
        assert!(join_all(killed).await.into_iter().all(|ran| ran.unwrap()));
        place.backend.stop(StopMode::Purge).await.unwrap();
        drop(attached);
    });
    assert_eq!(held(), before, "no terminal stays open");
}

#[test]
fn fifty_terminals_work_at_once() {
    passes(&mut this_test("terminals::part_fifty_terminals"));
}

/// Runs in a separate process, which is killed.
#[test]
#[ignore = "a part of another test, which starts it"]
fn part_host_that_is_killed() {
    let mut input = String::new();
    std::io::stdin().read_line(&mut input).unwrap();
    let token = input.trim();
    let place = place();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let line = format!(
            "set -m; (trap '' HUP TERM; echo job; sleep {token}; sleep {token}) & \
             (setsid sleep {token} &); trap '' HUP TERM; echo shell; sleep {token}; sleep {token}"
        );
        let shell = place.terminal(line).await;
        let mut attached = place.backend.shell_attach(&shell.id).await.unwrap();
        until(&mut attached, "shell\r\n").await;
        println!("ready {}", place.directory.path().display());
        std::io::stdout().flush().unwrap();
        futures::future::pending::<()>().await;
    });
}

#[test]
fn a_killed_host_leaves_nothing() {
    for _ in 0..5 {
        let token = token();
        let mut host = this_test("terminals::part_host_that_is_killed")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(host.stdin.take().unwrap(), "{token}").unwrap();
        let output = std::io::BufReader::new(host.stdout.take().unwrap());
        let ready = output.lines().map_while(Result::ok).find_map(|line| {
            let (_, directory) = line.split_once("ready ")?;
            Some(directory.to_string())
        });
        host.kill().unwrap();
        host.wait().unwrap();
        gone(&token);
        std::fs::remove_dir_all(ready.unwrap()).unwrap();
    }
}

#[tokio::test]
async fn a_killed_supervisor_ends_its_terminals() {
    let place = place();
    let token = token();
    let line = format!("trap '' HUP TERM; echo up; sleep {token}; sleep {token}");
    let shell = place.terminal(line).await;
    let mut attached = place.backend.shell_attach(&shell.id).await.unwrap();
    until(&mut attached, "up\r\n").await;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", shell.pid.unwrap())).unwrap();
    let parent: i32 = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split(' ')
        .nth(2)
        .unwrap()
        .parse()
        .unwrap();
    let parent = rustix::process::Pid::from_raw(parent).unwrap();
    rustix::process::kill_process(parent, rustix::process::Signal::KILL).unwrap();
    rest(attached).await;
    gone(&token);
    // The next one starts another supervisor.
    assert_eq!(place.print("echo again").await.0, "again\r\n");
}

#[tokio::test]
async fn terminals_end_with_the_backend() {
    let place = place();
    let token = token();
    let shell = place.terminal(format!("echo up; sleep {token}; :")).await;
    let mut attached = place.backend.shell_attach(&shell.id).await.unwrap();
    until(&mut attached, "up\r\n").await;
    drop(place);
    rest(attached).await;
    gone(&token);
}

#[tokio::test]
async fn the_launchers_variable_does_not_reach_the_command() {
    let place = place();
    let line = "echo \"[$TOKIO_WORKER_THREADS][$AGENTBOX_TOKIO_WORKER_THREADS]\"";
    assert_eq!(place.print(line).await.0, "[][]\r\n");
    let command = Command::new(line).terminal(SIZE);
    let command = command.env("TOKIO_WORKER_THREADS", "3");
    let shell = place.backend.shell_start(command).await.unwrap();
    let attached = place.backend.shell_attach(&shell.id).await.unwrap();
    assert_eq!(rest(attached).await, b"[3][]\r\n");
}
