//! Agents that connect to this process, past the daemon.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backend_core::ops::{Command, StopMode};
use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_docker::{DockerBuilder, DockerSandbox};
use backend_testkit::fails;
use tempfile::TempDir;

use crate::support::docker::{
    agent, builder, daemon, docker, outcome, purge, run, until, variable,
};

/// The directory in containers.
const INSIDE: &str = "/dev/.agentbox/sockets";

/// A directory for sockets.
struct Sockets(TempDir);

impl Sockets {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("sockets")
    }

    fn builder(&self) -> DockerBuilder {
        builder().socket_dir(self.path())
    }

    #[track_caller]
    fn are_gone(&self) {
        let left: Vec<_> = fs::read_dir(self.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The agents in a container: for each the name of its socket, if it was given one.
fn agents(sandbox: &DockerSandbox) -> Vec<Option<String>> {
    let all = docker(&["top", sandbox.container(), "-o", "pid,args"]);
    let agents = all
        .lines()
        .filter(|line| line.contains("sandbox-agent --directory"));
    let name = |line: &str| {
        let (_, path) = line.split_once(" --socket ")?;
        Some(
            path.trim()
                .strip_prefix(INSIDE)?
                .trim_start_matches('/')
                .to_owned(),
        )
    };
    agents.map(name).collect()
}

/// Checks that so many agents run, and that so many of them are connected.
#[track_caller]
fn connected(sandbox: &DockerSandbox, count: usize, of: usize) {
    const CONNECTED: &str = "03";
    let agents = agents(sandbox);
    // The socket itself is closed, and the end of a connection in this process counts where
    // the other one is. It is named after the socket.
    let ends = docker(&["exec", sandbox.container(), "cat", "/proc/net/unix"]);
    let is_connected = |name: &&String| {
        let mut lines = ends.lines().filter(|line| line.ends_with(name.as_str()));
        lines.any(|line| line.split_whitespace().nth(5) == Some(CONNECTED))
    };
    let connected = agents.iter().flatten().filter(is_connected).count();
    assert_eq!((connected, agents.len()), (count, of), "{agents:?}");
}

/// Kills the agents of a container, and waits until this process has noticed.
async fn kill_agents(sandbox: &DockerSandbox) {
    let all = docker(&["top", sandbox.container(), "-o", "pid,args"]);
    for line in all
        .lines()
        .filter(|line| line.contains("sandbox-agent --directory"))
    {
        let pid = line.split_whitespace().next().unwrap();
        let killed = std::process::Command::new("kill")
            .args(["-9", pid])
            .status();
        assert!(killed.unwrap().success());
    }
    until("the agent's end", async || agents(sandbox).is_empty()).await;
    // A call may have been on its way.
    let _ = sandbox.read_to_string("a.txt").await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn each_agent_has_a_socket_for_a_moment() {
    let sockets = Sockets::new();
    let first = sockets.builder().build().unwrap();
    first.write_file("a.txt", "one\n").await.unwrap();
    connected(&first, 1, 1);
    sockets.are_gone();

    let second = sockets
        .builder()
        .attach(first.container())
        .open()
        .await
        .unwrap();
    assert_eq!(second.read_to_string("a.txt").await.unwrap(), "one\n");
    connected(&first, 2, 2);
    sockets.are_gone();

    drop(second);
    until("the second agent's end", async || agents(&first).len() == 1).await;
    assert_eq!(run(&first, "cat a.txt").await, "one");
    first.stop(StopMode::Keep).await.unwrap();
    assert_eq!(run(&first, "cat a.txt").await, "one");
    connected(&first, 1, 1);
    purge(&first).await;
    sockets.are_gone();
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn one_that_is_created_is_found_again() {
    let sockets = Sockets::new();
    let created = sockets.builder().create().await.unwrap();
    created.write_file("a.txt", "one\n").await.unwrap();
    connected(&created, 1, 1);
    purge(&created).await;

    let name = format!("agentbox-sockets-{:x}", std::process::id());
    let named = sockets.builder().name(&name).build().unwrap();
    named.write_file("a.txt", "one\n").await.unwrap();
    // The same options but for the way to the agent: the same container.
    let plain = builder().name(&name).build().unwrap();
    assert_eq!(plain.read_to_string("a.txt").await.unwrap(), "one\n");
    connected(&named, 1, 2);
    let again = sockets.builder().name(&name).build().unwrap();
    assert_eq!(again.read_to_string("a.txt").await.unwrap(), "one\n");
    connected(&named, 2, 3);
    // Another directory is not the one that the container has.
    let other = Sockets::new();
    let other = other.builder().name(&name).build().unwrap();
    assert_eq!(other.read_to_string("a.txt").await.unwrap(), "one\n");
    connected(&named, 2, 4);
    purge(&named).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_killed_agent_takes_its_calls_along_and_is_started_anew() {
    let sockets = Sockets::new();
    let sandbox = sockets.builder().build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    let before = agents(&sandbox);
    let calls = async {
        fails(
            ErrorKind::Unavailable,
            outcome(&sandbox, "sleep 4331").await,
        );
    };
    let killer = async {
        until("the command's start", async || {
            docker(&["top", sandbox.container(), "-o", "pid,args"]).contains("sleep 4331")
        })
        .await;
        kill_agents(&sandbox).await;
    };
    futures::join!(calls, killer);
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    connected(&sandbox, 1, 1);
    assert_ne!(agents(&sandbox), before);
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_agent_that_cannot_connect_comes_through_the_daemon() {
    let sockets = Sockets::new();
    let sandbox = sockets.builder().build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    // The container keeps the directory that is gone.
    fs::remove_dir(sockets.path()).unwrap();
    kill_agents(&sandbox).await;
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    assert_eq!(run(&sandbox, "cat a.txt").await, "one");
    connected(&sandbox, 0, 1);
    sockets.are_gone();
    // The next start makes it anew, as after a reboot.
    sandbox.stop(StopMode::Keep).await.unwrap();
    fs::remove_dir(sockets.path()).unwrap();
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    connected(&sandbox, 1, 1);
    // One that others may write to is not used.
    let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777);
    fs::set_permissions(sockets.path(), open).unwrap();
    kill_agents(&sandbox).await;
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    assert_eq!(agents(&sandbox), [None]);
    purge(&sandbox).await;
}

/// The user of the image, and root without capabilities.
#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn commands_can_neither_write_there_nor_list_it() {
    let sockets = Sockets::new();
    for user in ["1000:1000", "0:0"] {
        let sandbox = sockets.builder().user(user).build().unwrap();
        run(&sandbox, &format!("test -d {INSIDE}")).await;
        for line in [
            "touch $D/a",
            "mkdir $D/a",
            "mkfifo $D/a",
            "chmod 777 $D",
            "rmdir $D",
        ] {
            let line = format!("D={INSIDE}; {line}");
            let refused = outcome(&sandbox, &line).await.unwrap();
            assert!(!refused.status.success(), "{user}: {line}");
        }
        let listed = outcome(&sandbox, &format!("ls {INSIDE}")).await.unwrap();
        // The directory belongs to the user that runs this test.
        let is_owner = user.starts_with(&format!("{}:", owner(&sockets.path())));
        assert_eq!(listed.status.success(), is_owner, "{user}");
        connected(&sandbox, 1, 1);
        purge(&sandbox).await;
    }
    sockets.are_gone();
}

fn owner(path: &Path) -> u32 {
    std::os::unix::fs::MetadataExt::uid(&fs::metadata(path).unwrap())
}

/// Connects to every socket that it finds, as fast as it can: with a wrong token, with
/// nothing, and with half of one.
const HOSTILE: &str = r#"
import os, socket, sys
where, kept = sys.argv[1], []
names = set()
print("up", flush=True)
while True:
    for found in os.listdir(where):
        names.add(found)
        for said in [b"x" * 64, b"", b"0" * 63, b"x" * 100000]:
            one = socket.socket(socket.AF_UNIX)
            one.setblocking(False)
            try:
                one.connect(os.path.join(where, found))
                one.send(said)
            except OSError:
                pass
            kept.append(one)
    del kept[:-200]
    if names:
        with open("/tmp/names", "w") as seen:
            seen.write(str(len(names)))
"#;

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn hostile_connections_do_not_get_in_and_stop_no_call() {
    let sockets = Sockets::new();
    // Root, who owns the directory if this test runs as root, and so can list it.
    let builder = sockets
        .builder()
        .user("0:0")
        .image(variable("TEST_IMAGE_PYTHON"));
    let sandbox = builder.build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    sandbox.write_file("hostile.py", HOSTILE).await.unwrap();
    let hostile = Command::new(format!("exec python3 hostile.py {INSIDE}"));
    let shell = sandbox.shell_start(hostile).await.unwrap();
    for _ in 0..10 {
        let other = sockets
            .builder()
            .attach(sandbox.container())
            .daemon(daemon());
        let other = other.agent(agent()).open().await.unwrap();
        let read = other.read_to_string("a.txt");
        let read = tokio::time::timeout(Duration::from_secs(60), read).await;
        assert_eq!(read.expect("it is not kept out").unwrap(), "one\n");
    }
    if owner(&sockets.path()) == 0 {
        until("that it has found a socket", async || {
            sandbox.exists("/tmp/names").await.unwrap()
        })
        .await;
    }
    sandbox.shell_kill(&shell.id).await.unwrap();
    sockets.are_gone();
    purge(&sandbox).await;
}
