//! Serving on a port: who is let in, and what is left when they go.

use std::fs;
use std::io::{Read as _, Seek as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command as HostCommand, Output, Stdio};
use std::sync::Arc;
use std::time::Instant;

use backend_core::ops::Command;
use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_testkit::processes::{PATIENCE, describe, gone, survivors, token};
use futures::future::join_all;
use rustix::process::Signal;
use sandbox_wire::AgentSandbox;
use sandbox_wire::websocket::Token;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::escapees::unleash;
use crate::support::listening::{Listening, ListeningMachine, port_file, write_private};
use crate::support::machine::AGENT;

/// A request for a websocket.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Starts an agent that listens and serves a directory of its own. `None` if it has already
/// ended.
async fn try_start(more: &[&str]) -> Option<(TempDir, Arc<Listening>)> {
    let root = tempfile::tempdir().unwrap();
    let mut arguments = vec!["--root", root.path().to_str().unwrap(), "--directory", "/"];
    arguments.extend(more);
    let arguments: Vec<String> = arguments.into_iter().map(String::from).collect();
    let agent = Listening::start(&arguments).await?;
    Some((root, Arc::new(agent)))
}

async fn start() -> (TempDir, Arc<Listening>) {
    try_start(&[]).await.unwrap()
}

fn client(agent: &Arc<Listening>) -> AgentSandbox<ListeningMachine> {
    ListeningMachine::of(agent).sandbox()
}

#[tokio::test]
async fn it_takes_the_token_and_leaves_its_port() {
    let (_root, agent) = start().await;
    assert_eq!(agent.names(), ["messages", "token.port"]);
    let file = agent.files.path().join("token.port");
    let mode = file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        fs::read_to_string(file).unwrap(),
        format!("{}\n", agent.port)
    );
    let line = fs::read(format!("/proc/{}/cmdline", agent.pid())).unwrap();
    assert!(!String::from_utf8_lossy(&line).contains(agent.token.as_str()));
    let sandbox = client(&agent);
    sandbox.write_file("a", "b").await.unwrap();
    // No command gets a socket of it.
    let list = "for file in /proc/$$/fd/*; do readlink $file; done";
    let done = sandbox.execute(Command::new(list)).await.unwrap();
    let open = done.stdout.text();
    assert_eq!(open.lines().count(), 3, "{open}");
    assert!(!open.contains("socket"), "{open}");
    drop(sandbox);
    agent.signal(Signal::TERM);
    assert_eq!(agent.exit_code(), Some(0));
    assert_eq!(agent.names(), ["messages"]);
}

/// Runs the agent, which cannot use the token file.
fn refused(token_file: &Path) -> Output {
    let mut command = HostCommand::new(AGENT);
    command.args(["--root", "/", "--directory", "/", "--listen"]);
    command.arg(token_file).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!port_file(token_file).exists());
    output
}

#[test]
fn token_files_that_are_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let secret = "0123456789abcdef".repeat(4);
    let expect = |name: &str, expected: &str| {
        let said = String::from_utf8(refused(&path(name)).stderr).unwrap();
        assert!(said.contains(expected), "{name}: {said}");
        assert!(!said.contains(&secret), "{name}: {said}");
    };
    expect("missing", "No such file");
    fs::create_dir(path("directory")).unwrap();
    expect("directory", "not a file");
    for mode in [0o640, 0o604, 0o602, 0o620] {
        write_private(&path("open"), &secret);
        fs::set_permissions(path("open"), fs::Permissions::from_mode(mode)).unwrap();
        expect("open", "mode 0600");
        fs::remove_file(path("open")).unwrap();
    }
    write_private(&path("behind"), &secret);
    symlink(path("behind"), path("link")).unwrap();
    expect("link", "symbolic link");
    assert!(path("behind").exists());
    // A bad token is deleted all the same.
    for (at, bad) in ["", "short\n", &secret.repeat(5), "ä".repeat(40).as_str()]
        .into_iter()
        .enumerate()
    {
        let name = format!("bad{at}");
        write_private(&path(&name), bad);
        expect(&name, "32 to 256");
        assert!(!path(&name).exists(), "{name}");
    }
    // Nothing that is in the way is written to.
    write_private(&path("taken"), &secret);
    fs::write(path("taken.port.part"), "another's").unwrap();
    expect("taken", "cannot be written");
    assert_eq!(fs::read(path("taken.port.part")).unwrap(), b"another's");
}

#[test]
fn a_directory_that_cannot_be_served_is_an_error_before_anything_else() {
    let directory = tempfile::tempdir().unwrap();
    let token_file = directory.path().join("token");
    write_private(&token_file, "x");
    let mut command = HostCommand::new(AGENT);
    command.args(["--root", "/nothing/here", "--listen"]);
    let output = command.arg(&token_file).stdin(Stdio::null()).output();
    assert_eq!(output.unwrap().status.code(), Some(1));
    assert!(token_file.exists());
}

#[tokio::test]
async fn when_a_client_goes_everything_it_started_ends_and_the_next_is_served() {
    let (root, agent) = start().await;
    for round in 0..3 {
        let sandbox = client(&agent);
        let token = token();
        unleash(&sandbox, &token).await;
        sandbox
            .write_file("round", round.to_string())
            .await
            .unwrap();
        drop(sandbox);
        gone(&token);
        let written = fs::read_to_string(root.path().join("round")).unwrap();
        assert_eq!(written, round.to_string());
    }
    assert!(agent.is_running());
    assert_eq!(agent.messages(), "");
}

#[tokio::test]
async fn a_cut_connection_is_a_lost_one_and_can_be_opened_again() {
    let (root, agent) = start().await;
    let sandbox = ListeningMachine::of(&agent).cuttable().sandbox();
    let token = token();
    unleash(&sandbox, &token).await;
    let running = sandbox.execute(Command::new(format!("echo > begun; sleep {token}")));
    let cut = async {
        while !root.path().join("begun").exists() {
            tokio::task::yield_now().await;
        }
        sandbox.machine().cut();
    };
    let (answer, ()) = tokio::join!(running, cut);
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("without a goodbye"), "{error}");
    gone(&token);
    let done = sandbox.execute(Command::new("echo again")).await.unwrap();
    assert_eq!(done.stdout.text(), "again\n");
    assert_eq!(sandbox.machine().connections(), 2);
    assert!(agent.is_running());
}

#[tokio::test]
async fn the_newest_client_with_the_token_is_served() {
    let (root, agent) = start().await;
    let (first, second) = (client(&agent), client(&agent));
    let token = token();
    unleash(&first, &token).await;
    let running = first.execute(Command::new(format!("echo > begun; sleep {token}")));
    let take_over = async {
        while !root.path().join("begun").exists() {
            tokio::task::yield_now().await;
        }
        second.write_file("second", "here").await.unwrap();
    };
    let (answer, ()) = tokio::join!(running, take_over);
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let reason = "serves another connection";
    assert!(error.to_string().contains(reason), "{error}");
    gone(&token);
    assert_eq!(second.read_to_string("second").await.unwrap(), "here");
    assert_eq!(second.machine().connections(), 1);
}

#[tokio::test]
async fn wrong_tokens_disturb_nobody() {
    let (_root, agent) = start().await;
    let sandbox = client(&agent);
    let token = token();
    unleash(&sandbox, &token).await;
    // Without the shell, which may have become the last of them.
    let asleep = || {
        let survivors = survivors(&token).into_iter();
        let sleeps = survivors.filter(|pid| describe(*pid).starts_with("sleep "));
        sleeps.count()
    };
    while asleep() < 5 {
        tokio::task::yield_now().await;
    }
    for _ in 0..4 {
        let wrong = |_| async {
            let stream = agent.dial().await.unwrap();
            let connected = agent.connect(stream, &Token::generate().unwrap()).await;
            assert_eq!(connected.unwrap_err().kind(), ErrorKind::Auth);
        };
        join_all((0..16).map(wrong)).await;
    }
    assert_eq!(asleep(), 5);
    sandbox.write_file("a", "b").await.unwrap();
    assert_eq!(sandbox.machine().connections(), 1);
    assert_eq!(agent.messages(), "", "strangers fill no log");
    drop(sandbox);
    gone(&token);
}

#[tokio::test]
async fn others_are_told_that_it_is_a_websocket() {
    let (_root, agent) = start().await;
    let mut stream = agent.dial().await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
}

/// Returns the most memory that a process has had, in KiB.
fn peak(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

/// Writes until the agent has had enough.
async fn flood(mut stream: TcpStream, first: &[u8], endless: &[u8]) {
    let flood = async {
        stream.write_all(first).await?;
        loop {
            stream.write_all(endless).await?;
        }
    };
    let ended: std::io::Result<()> = flood.await;
    assert!(ended.is_err());
}

#[tokio::test]
async fn strangers_cost_little_and_keep_nobody_out() {
    let (_root, agent) = start().await;
    client(&agent).write_file("a", "before").await.unwrap();
    let before = peak(agent.pid());
    // They say a part of a request, or nothing after it, and stay.
    let mut slow = Vec::new();
    for at in 0..200 {
        let mut stream = agent.dial().await.unwrap();
        // The agent may have closed it already, in favour of a later one.
        let _ = stream.write_all(&REQUEST[..at.min(REQUEST.len())]).await;
        slow.push(stream);
    }
    let header = b"endless: header\r\n".repeat(1024);
    let large = [
        &[0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0][..],
        &[0; 65536],
    ]
    .concat();
    let pings = [0x89, 0x80, 0, 0, 0, 0].repeat(1024);
    let unmasked = [0x82, 4, 0, 0, 0, 0].repeat(1024);
    for (first, endless) in [
        (&b"GET / HTTP/1.1\r\n"[..], &header),
        (REQUEST, &large),
        (REQUEST, &pings),
        (REQUEST, &unmasked),
        (b"\x16\x03\x01", &large),
    ] {
        flood(agent.dial().await.unwrap(), first, endless).await;
    }
    let sandbox = client(&agent);
    sandbox.write_file("a", "after").await.unwrap();
    let grown = peak(agent.pid()) - before;
    assert!(grown < 16 * 1024, "{grown} KiB");
    // Those who come now do not end the client's connection.
    for _ in 0..100 {
        slow.push(agent.dial().await.unwrap());
    }
    assert_eq!(sandbox.read_to_string("a").await.unwrap(), "after");
    assert_eq!(sandbox.machine().connections(), 1);
}

#[tokio::test]
async fn it_exits_if_only_strangers_come() {
    let Some((_root, agent)) = try_start(&["--wait", "1"]).await else {
        // It came to its end before this test could look.
        return;
    };
    let began = Instant::now();
    while agent.is_running() {
        if let Ok(stream) = agent.dial().await {
            let connected = agent.connect(stream, &Token::generate().unwrap()).await;
            assert!(connected.is_err());
        }
        assert!(began.elapsed() < PATIENCE);
    }
    assert_eq!(agent.exit_code(), Some(0));
    assert!(agent.messages().contains("no client came for 1 s"));
    assert_eq!(agent.names(), ["messages"]);
}

#[tokio::test]
async fn it_exits_some_time_after_its_client_has_gone() {
    for wait in ["1", "8", "64"] {
        let Some((_root, agent)) = try_start(&["--wait", wait]).await else {
            continue;
        };
        let sandbox = client(&agent);
        if sandbox.write_file("a", "b").await.is_err() {
            // On a busy machine the client may come too late.
            continue;
        }
        let token = token();
        unleash(&sandbox, &token).await;
        drop(sandbox);
        assert_eq!(agent.exit_code(), Some(0));
        gone(&token);
        return;
    }
    panic!("no client came in time");
}

#[tokio::test]
async fn a_signal_ends_it_with_everything_it_started() {
    for kind in [Signal::TERM, Signal::HUP, Signal::INT] {
        let (_root, agent) = start().await;
        let sandbox = client(&agent);
        let token = token();
        unleash(&sandbox, &token).await;
        agent.signal(kind);
        assert_eq!(agent.exit_code(), Some(0));
        gone(&token);
        assert_eq!(agent.names(), ["messages"]);
    }
}

#[tokio::test]
async fn a_killed_one_leaves_no_process() {
    let (_root, agent) = start().await;
    let sandbox = client(&agent);
    let token = token();
    unleash(&sandbox, &token).await;
    agent.signal(Signal::KILL);
    gone(&token);
}

#[test]
fn nothing_is_read_from_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let token_file = directory.path().join("token");
    write_private(&token_file, &"0123456789abcdef".repeat(4));
    let mut input = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut input, b"the rest of a script").unwrap();
    input.rewind().unwrap();
    let mut command = HostCommand::new(AGENT);
    command.args(["--root", "/", "--directory", "/", "--wait", "1", "--listen"]);
    command.arg(&token_file).stdin(input.try_clone().unwrap());
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    let mut rest = String::new();
    // A copy of the file has the same position.
    input.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "the rest of a script");
}
