//! An agent that connects to a socket of its host.

use std::fs::read_to_string;
use std::io::Write as _;
use std::process::{Command as Program, Stdio};

use backend_core::ops::Command;
use backend_core::{BackendExt as _, Sandbox as _};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::machine::{AGENT, HostMachine, Way, ended};

#[tokio::test]
async fn calls_go_over_the_socket_or_else_over_the_streams() {
    for way in [Way::Direct, Way::Refused, Way::Missing] {
        let directory = tempfile::tempdir().unwrap();
        let sandbox = HostMachine::new(directory.path(), "/").way(way).sandbox();
        sandbox.write_file("/a.txt", "one\n").await.unwrap();
        let outcome = sandbox.execute(Command::new("cat a.txt")).await.unwrap();
        assert_eq!(outcome.stdout.text(), "one\n", "{way:?}");
        let agents = sandbox.machine().started();
        assert_eq!(agents.len(), 1, "{way:?}");
        drop(sandbox);
        assert!(ended(agents[0].pid), "{way:?}");
    }
}

#[test]
fn what_is_not_a_token_ends_it() {
    for line in ["short\n", "", &"x".repeat(1000)] {
        let mut agent = agent();
        let mut stdin = agent.stdin.take().unwrap();
        // It may have ended before the end of the line.
        let _ = stdin.write_all(line.as_bytes());
        drop(stdin);
        let output = agent.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert_eq!(output.stdout, b"", "{line}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("token"), "{said}");
        assert!(line.is_empty() || !said.contains(line.trim()), "{said}");
    }
}

#[test]
fn it_waits_for_the_token_until_it_is_asked_to_end() {
    let mut agent = agent();
    // Waiting would close it, which would end the agent in another way.
    let _open = agent.stdin.take();
    let status = format!("/proc/{}/status", agent.id());
    let catches = |line: &str| {
        let caught = line.strip_prefix("SigCgt:").map(str::trim)?;
        Some(u64::from_str_radix(caught, 16).unwrap() & 1 << (Signal::TERM.as_raw() - 1) != 0)
    };
    while !read_to_string(&status)
        .unwrap()
        .lines()
        .find_map(catches)
        .unwrap()
    {
        std::thread::yield_now();
    }
    let pid = i32::try_from(agent.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.unwrap(), Signal::TERM).unwrap();
    assert_eq!(agent.wait().unwrap().code(), Some(0));
}

fn agent() -> std::process::Child {
    Program::new(AGENT)
        .args(["--directory", "/", "--socket", "/nowhere"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}
