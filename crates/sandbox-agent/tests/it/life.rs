//! The program's lifecycle: its start, its service, and what it leaves behind.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command as HostCommand, Output, Stdio};

use backend_core::ops::{Command, StopMode};
use backend_core::{Backend as _, BackendExt as _, ErrorKind, Sandbox as _};
use backend_testkit::fails;
use backend_testkit::processes::{PATIENCE, gone, handle, token};
use futures::StreamExt as _;
use rustix::process::Signal;
use sandbox_wire::AgentSandbox;
use tokio::io::AsyncReadExt as _;

use crate::support::escapees::unleash;
use crate::support::machine::{AGENT, HostMachine, Way, ended};
use crate::support::open::{Open, end};

/// Returns a sandbox on a directory of its own.
fn start() -> (tempfile::TempDir, AgentSandbox<HostMachine>) {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = HostMachine::new(directory.path(), "/").sandbox();
    (directory, sandbox)
}

fn signal(pid: i32, signal: Signal) {
    let handle = handle(pid).unwrap();
    rustix::process::pidfd_send_signal(handle, signal).unwrap();
}

/// Runs the agent to its end with this input.
fn run(arguments: &[&str], input: Stdio) -> Output {
    let mut command = HostCommand::new(AGENT);
    command.args(arguments).stdin(input);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn it_copies_itself_completely_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("agent");
    let copied = run(&["--install", copy.to_str().unwrap()], Stdio::null());
    assert!(copied.status.success(), "{}", text(&copied.stderr));
    let same = |path: &Path| std::fs::read(path).unwrap();
    assert!(same(&copy) == same(Path::new(AGENT)));
    assert_eq!(copy.metadata().unwrap().mode() & 0o111, 0o111);
    let names = std::fs::read_dir(directory.path()).unwrap();
    assert_eq!(names.count(), 1);
    let nowhere = directory.path().join("missing/agent");
    let failed = run(&["--install", nowhere.to_str().unwrap()], Stdio::null());
    assert_eq!(failed.status.code(), Some(1));
    let said = text(&failed.stderr);
    assert!(said.contains("cannot be copied to"), "{said}");
}

#[tokio::test]
async fn whatever_it_started_goes_when_the_stream_ends() {
    let (_directory, sandbox) = start();
    let token = token();
    unleash(&sandbox, &token).await;
    let pid = sandbox.machine().started()[0].pid;
    drop(sandbox);
    assert!(ended(pid));
    gone(&token);
}

#[tokio::test]
async fn stopping_says_goodbye_and_the_next_call_starts_another() {
    let (_directory, sandbox) = start();
    let token = token();
    unleash(&sandbox, &token).await;
    sandbox.stop(StopMode::Keep).await.unwrap();
    assert!(ended(sandbox.machine().started()[0].pid));
    gone(&token);
    sandbox.start().await.unwrap();
    sandbox.write_file("a", "b").await.unwrap();
    assert_eq!(sandbox.machine().started().len(), 2);
}

#[tokio::test]
async fn a_signal_ends_it_like_the_end_of_the_stream() {
    for kind in [Signal::TERM, Signal::HUP, Signal::INT] {
        let (_directory, sandbox) = start();
        let token = token();
        unleash(&sandbox, &token).await;
        let pid = sandbox.machine().started()[0].pid;
        signal(pid, kind);
        assert!(ended(pid));
        gone(&token);
    }
}

#[tokio::test]
async fn commands_are_asked_to_end_before_they_are_killed() {
    let (directory, sandbox) = start();
    // The trap needs no other program, and nothing delays it: the time until the kill is
    // short on a busy machine.
    let line = "trap ': > asked; exit' TERM; echo > begun; sleep 1000 & wait";
    sandbox.shell_start(Command::new(line)).await.unwrap();
    let pid = sandbox.machine().started()[0].pid;
    while !directory.path().join("begun").exists() {
        tokio::task::yield_now().await;
    }
    drop(sandbox);
    assert!(ended(pid));
    assert!(directory.path().join("asked").exists());
}

/// The agent is not killed by the signal.
#[test]
fn a_signal_is_an_orderly_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = HostCommand::new(AGENT);
    command.arg("--root").arg(directory.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    for kind in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut agent = command.spawn().unwrap();
        // Waiting would close it, which would end the agent in another way.
        let _open = agent.stdin.take();
        let mut greeting = [0];
        agent
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut greeting)
            .unwrap();
        signal(i32::try_from(agent.id()).unwrap(), kind);
        assert_eq!(agent.wait().unwrap().code(), Some(0));
    }
}

#[tokio::test]
async fn a_killed_agent_leaves_nothing_and_is_replaced() {
    let (directory, sandbox) = start();
    let token = token();
    unleash(&sandbox, &token).await;
    let pid = sandbox.machine().started()[0].pid;
    let running = sandbox.execute(Command::new(format!("echo > begun; sleep {token}")));
    let killed = async {
        while !directory.path().join("begun").exists() {
            tokio::task::yield_now().await;
        }
        signal(pid, Signal::KILL);
    };
    let (answer, ()) = tokio::join!(running, killed);
    fails(ErrorKind::Unavailable, answer);
    gone(&token);
    let done = sandbox.execute(Command::new("echo again")).await.unwrap();
    assert_eq!(done.stdout.text(), "again\n");
    assert_eq!(sandbox.machine().started().len(), 2);
}

/// A terminal, a watch and a connection end with an error, and what ran is gone.
#[tokio::test]
async fn a_killed_agent_ends_everything_that_is_open() {
    let (_directory, sandbox) = start();
    let token = token();
    let mut open = Open::everything(&sandbox, &token).await;
    let mut client = open.client.take().unwrap();
    signal(sandbox.machine().started()[0].pid, Signal::KILL);
    let ends = async {
        fails(ErrorKind::Unavailable, end(open.terminal.incoming).await);
        fails(ErrorKind::Unavailable, end(open.connection.incoming).await);
        let changed = open.changes.next().await.unwrap();
        fails(ErrorKind::Unavailable, changed);
        assert!(open.changes.next().await.is_none());
        for mut outgoing in [open.terminal.outgoing, open.connection.outgoing] {
            fails(ErrorKind::Unavailable, outgoing.send("x".into()).await);
        }
        // The server learns of it, too. Unread bytes would make it a reset.
        let _ = client.read_to_end(&mut Vec::new()).await;
    };
    tokio::time::timeout(PATIENCE, ends).await.unwrap();
    gone(&token);
    assert_eq!(sandbox.shell_list().await.unwrap(), []);
    drop(Open::everything(&sandbox, &token).await);
    assert_eq!(sandbox.machine().started().len(), 2);
}

#[tokio::test]
async fn commands_find_none_of_its_streams() {
    let directory = tempfile::tempdir().unwrap();
    for way in [Way::Pipes, Way::Socket] {
        let sandbox = HostMachine::new(directory.path(), "/").way(way).sandbox();
        let list = "for file in /proc/$$/fd/*; do readlink $file; done";
        let done = sandbox.execute(Command::new(list)).await.unwrap();
        let open = done.stdout.text();
        assert_eq!(open.lines().count(), 3, "{open}");
        let agent = &sandbox.machine().started()[0];
        assert!(!agent.streams.is_empty());
        for stream in &agent.streams {
            assert!(!open.contains(stream.as_str()), "{stream} in {open}");
        }
    }
}

/// Root may open anything, so the agent runs as another user if the test is
/// root.
#[tokio::test]
async fn commands_cannot_open_its_streams() {
    const NOBODY: u32 = 65534;
    let directory = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let mut machine = HostMachine::new(Path::new("/"), directory.path().to_str().unwrap());
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        let program = directory.path().join("agent");
        // By another process: a program that is still open for writing does not start, and
        // what other tests start here has a copy of every open file for a moment.
        let mut copy = HostCommand::new("cp");
        let copied = copy.arg("-p").arg(AGENT).arg(&program).status().unwrap();
        assert!(copied.success());
        machine = machine.run_by(program, NOBODY);
    }
    let sandbox = machine.sandbox();
    sandbox.start().await.unwrap();
    let pid = sandbox.machine().started()[0].pid;
    let tries =
        format!("echo >> /proc/{pid}/fd/1; cat /proc/{pid}/environ; cat < /proc/{pid}/fd/0");
    let done = sandbox.execute(Command::new(tries)).await.unwrap();
    let refused = done
        .stderr
        .text()
        .to_lowercase()
        .matches("permission denied")
        .count();
    assert_eq!(refused, 3, "{}{}", done.stdout.text(), done.stderr.text());
    // It still serves.
    sandbox.write_file("a", "b").await.unwrap();
    assert_eq!(sandbox.read_to_string("a").await.unwrap(), "b");
}

#[tokio::test]
async fn no_zombies_gather() {
    let (_directory, sandbox) = start();
    let orphans = "for i in 1 2 3 4 5; do (setsid true &); (true &); done";
    for _ in 0..10 {
        sandbox.execute(Command::new(orphans)).await.unwrap();
    }
    let agent = sandbox.machine().started()[0].pid;
    let since = std::time::Instant::now();
    loop {
        // Zombies may be about to be reaped. Commands in between give them
        // time.
        sandbox.execute(Command::new("true")).await.unwrap();
        let left = zombies(agent);
        if left.is_empty() {
            return;
        }
        assert!(since.elapsed() < PATIENCE, "{left:?}");
    }
}

/// Returns the zombies among the children of a process and of its children.
fn zombies(agent: i32) -> Vec<i32> {
    let processes: Vec<(i32, String, i32)> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let (start, rest) = stat.rsplit_once(") ")?;
            let mut fields = rest.split(' ');
            let pid = start.split(' ').next()?.parse().ok()?;
            Some((pid, fields.next()?.to_owned(), fields.next()?.parse().ok()?))
        })
        .collect();
    let children = processes.iter().filter(|(_, _, parent)| *parent == agent);
    let family: Vec<i32> = children.map(|(pid, ..)| *pid).chain([agent]).collect();
    let zombies = processes
        .iter()
        .filter(|(_, state, parent)| state == "Z" && family.contains(parent));
    zombies.map(|(pid, ..)| *pid).collect()
}

#[tokio::test]
async fn commands_get_the_whole_environment_and_a_directory_that_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = HostMachine::new(directory.path(), "/made/here")
        .environment("OPENAI_API_KEY", "k")
        .environment("PAGER", "most")
        .sandbox();
    let line = "echo $OPENAI_API_KEY $PAGER $GIT_PAGER; pwd";
    let done = sandbox.execute(Command::new(line)).await.unwrap();
    let place = directory.path().canonicalize().unwrap().join("made/here");
    assert_eq!(
        done.stdout.text(),
        format!("k most cat\n{}\n", place.display())
    );
    // A replaced directory is used by the next command.
    std::fs::rename(&place, directory.path().join("old")).unwrap();
    std::fs::create_dir(&place).unwrap();
    sandbox.execute(Command::new("touch new")).await.unwrap();
    assert!(place.join("new").exists());
    assert!(sandbox.exists("new").await.unwrap());
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_missed_only_by_who_needs_it() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "content").unwrap();
    let sandbox = HostMachine::new(directory.path(), "/file/beneath").sandbox();
    assert_eq!(sandbox.read_to_string("/file").await.unwrap(), "content");
    fails(
        ErrorKind::NotADirectory,
        sandbox.execute(Command::new("true")).await,
    );
    assert_eq!(sandbox.info().name, "host");
}

#[test]
fn garbage_ends_it_with_a_message() {
    let file = |content: &[u8]| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        Stdio::from(file)
    };
    let piped = |content: &[u8]| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(content).unwrap();
        Stdio::from(reader)
    };
    let directory = tempfile::tempdir().unwrap();
    let arguments = [
        "--root",
        directory.path().to_str().unwrap(),
        "--directory",
        "/",
    ];
    for content in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", &[0xff; 4096]] {
        for input in [file(content), piped(content)] {
            let ended = run(&arguments, input);
            assert_eq!(ended.status.code(), Some(1));
            let said = text(&ended.stderr);
            assert!(said.starts_with("sandbox-agent: "), "{said}");
            assert!(!said.contains("panicked"), "{said}");
        }
    }
}

#[test]
fn it_says_what_it_is_and_what_is_wrong() {
    let version = run(&["--version"], Stdio::null());
    let expected = format!("sandbox-agent {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (version.status.code(), text(&version.stdout)),
        (Some(0), expected)
    );
    let help = run(&["--help"], Stdio::null());
    assert!(text(&help.stdout).contains("--directory PATH"));
    let wrong = run(&["--nonsense"], Stdio::null());
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("--nonsense"));
    let nowhere = run(&["--root", "/nothing/here"], Stdio::null());
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).contains("does not exist"));
}
