//! Process trees that try to survive. None may.
//!
//! Every process of a test sleeps for a unique number of seconds, so survivors
//! are found by their arguments, even if they hide everything else.

use std::io::{BufRead, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use backend_core::ops::{Command, CommandStatus, StopMode};
use backend_core::{ErrorKind, Sandbox};
use backend_local::Commands;
use backend_testkit::fails;
use fastrand::Rng;
use futures::StreamExt;
use futures::future::join_all;

use crate::support::commands::*;

/// Ways to escape from a command, with `@` for the time to sleep.
const ESCAPES: &[(&str, &str)] = &[
    ("plain", "sleep @"),
    ("ignores TERM", "trap '' TERM HUP INT; sleep @; sleep @"),
    ("setsid, parent alive", "setsid sleep @ & wait"),
    ("setsid, parent gone", "(setsid sleep @ &); sleep @"),
    (
        "daemon",
        "(setsid sh -c 'sleep @ & sleep @' >/dev/null 2>&1 </dev/null &); sleep @",
    ),
    (
        "env -i setsid, parent alive",
        "env -i setsid sleep @ & wait",
    ),
    (
        "keeps the output",
        "(setsid sleep @ &); exec sleep @ >/dev/null 2>&1",
    ),
    ("stopped", "sleep @ & kill -STOP $!; wait"),
    ("stops itself", "kill -STOP $$; sleep @"),
    ("chain", "exec env A=b sh -c 'exec env sleep @'"),
    ("forks on and on", "while :; do (setsid sleep @ &); done"),
];

/// Escapes that only a supervisor can prevent.
const HARD_ESCAPES: &[(&str, &str)] = &[
    (
        "env -i setsid, parent gone",
        "(env -i setsid sleep @ &); sleep @",
    ),
    (
        "unset",
        "(unset AGENTBOX_COMMAND; setsid sleep @ &); sleep @",
    ),
    (
        "env -i daemon that ignores TERM",
        "(env -i setsid sh -c 'trap \"\" TERM; sleep @; sleep @' &); sleep @",
    ),
    (
        "env -i forks on and on",
        "while :; do (env -i setsid sleep @ &); done",
    ),
    (
        "false marker",
        "(AGENTBOX_COMMAND=other setsid sleep @ &); sleep @",
    ),
];

fn escapes(place: &Place) -> Vec<(&'static str, &'static str)> {
    if place.supervised {
        [ESCAPES, HARD_ESCAPES].concat()
    } else {
        ESCAPES.to_vec()
    }
}

#[tokio::test]
async fn a_timeout_ends_every_kind() {
    for place in places() {
        for (name, script) in escapes(&place) {
            let token = token();
            let command =
                Command::new(script.replace('@', &token)).timeout(Duration::from_millis(150));
            let outcome = place.backend.execute(command).await.unwrap();
            assert_eq!(outcome.status, CommandStatus::TimedOut, "{name}");
            let left = survivors(&token);
            kill(&token);
            assert!(left.is_empty(), "{name}: {} left", left.len());
        }
    }
}

#[tokio::test]
async fn the_other_commands_go_on() {
    for place in places() {
        let (mine, other) = (token(), token());
        let fifo = fifo(place.directory.path());
        let inner = format!("echo > {}; sleep {other}; :", fifo.display());
        let line = format!("setsid sh -c {} & wait", quoted(&inner));
        let mut stream = place.backend.stream(Command::new(line)).await.unwrap();
        ready(fifo).await;
        let before = survivors(&other);
        assert!(before.len() >= 2);
        let line = format!("(setsid sleep {mine} &); sleep {mine}");
        let command = Command::new(line).timeout(Duration::from_millis(100));
        place.backend.execute(command).await.unwrap();
        none(&mine);
        let after = survivors(&other);
        assert!(before.iter().all(|pid| after.contains(pid)));
        let pending = tokio::time::timeout(Duration::from_millis(1), stream.next());
        assert!(pending.await.is_err());
        drop(stream);
        gone(&other);
    }
}

#[test]
fn a_dropped_future_is_cancelled_though_nobody_polls_any_more() {
    for place in places() {
        let token = token();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let fifo = fifo(place.directory.path());
        let line = format!(
            "trap '' TERM; echo > {}; sleep {token}; sleep {token}",
            fifo.display()
        );
        runtime.block_on(async {
            let execute = place.backend.execute(Command::new(line));
            tokio::select! {
                _ = execute => panic!("it ended"),
                _ = ready(fifo) => {}
            }
        });
        // The runtime exists, and nothing runs on it.
        gone(&token);
        drop(runtime);
    }
}

#[tokio::test]
async fn a_dropped_stream_ends_its_command() {
    for place in places() {
        let token = token();
        let line = format!("(setsid sleep {token} &); echo ready; sleep {token}");
        let mut stream = place.backend.stream(Command::new(line)).await.unwrap();
        stream.next().await.unwrap().unwrap();
        assert!(!survivors(&token).is_empty());
        drop(stream);
        gone(&token);
    }
}

#[tokio::test]
async fn a_dropped_backend_ends_everything() {
    for place in places() {
        let token = token();
        let line = format!("(setsid sleep {token} &); echo ready; sleep {token}");
        let mut stream = place
            .backend
            .stream(Command::new(line.as_str()))
            .await
            .unwrap();
        stream.next().await.unwrap().unwrap();
        let shell = place.backend.shell_start(Command::new(line)).await.unwrap();
        place.backend.shell_read(&shell.id, PATIENCE).await.unwrap();
        drop(place);
        gone(&token);
        fails(ErrorKind::Unavailable, stream.next().await.unwrap());
    }
}

#[tokio::test]
async fn a_stop_ends_everything_and_waits() {
    for place in places() {
        let token = token();
        let fifo = fifo(place.directory.path());
        let line = format!(
            "(setsid sleep {token} &); trap '' TERM; echo > {}; sleep {token}; sleep {token}",
            fifo.display()
        );
        let backend = place.backend.clone();
        let running = tokio::spawn(async move { backend.execute(Command::new(line)).await });
        ready(fifo).await;
        place.backend.stop(StopMode::Keep).await.unwrap();
        none(&token);
        fails(ErrorKind::Unavailable, running.await.unwrap());
        assert!(place.run("true").await.status.success());
    }
}

#[tokio::test]
async fn what_finished_commands_left_ends_with_the_sandbox() {
    let place = place();
    let token = token();
    for script in ["(env -i setsid sleep @ &)", "(setsid sleep @ >/dev/null &)"] {
        let outcome = place.run(script.replace('@', &token)).await;
        assert!(outcome.status.success());
    }
    assert_eq!(survivors(&token).len(), 2);
    place.backend.stop(StopMode::Keep).await.unwrap();
    none(&token);
}

#[tokio::test]
async fn a_command_that_kills_its_supervisor_harms_itself_only() {
    let place = place();
    let token = token();
    let line = format!("(setsid sleep {token} &); kill -9 $PPID; sleep {token}");
    fails(
        ErrorKind::Unavailable,
        place.backend.execute(Command::new(line)).await,
    );
    none(&token);
    assert!(place.run("true").await.status.success());
}

/// Quotes a script for `sh -c`.
fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', r"'\''"))
}

/// Returns a script that starts a random tree and stays.
fn tree(rng: &mut Rng, token: &str, depth: usize, hard: bool) -> String {
    if depth == 0 {
        let leaf = rng.choice([
            "sleep @",
            "exec sleep @",
            "trap '' TERM; sleep @",
            "sleep @ >/dev/null 2>&1",
            "sleep @ & kill -STOP $!; wait",
            "exec env A=b sleep @",
        ]);
        return leaf.unwrap().replace('@', token);
    }
    let mut script = String::new();
    for _ in 0..rng.usize(1..3) {
        let inner = quoted(&tree(rng, token, depth - 1, hard));
        let soft = [
            "sh -c % &",
            "(sh -c % &);",
            "setsid sh -c % &",
            "(setsid sh -c % >/dev/null 2>&1 &);",
            "(trap '' TERM; exec sh -c %) &",
            "sh -c % & kill -STOP $!;",
        ];
        let hidden = [
            "env -i sh -c % &",
            "(env -i setsid sh -c % &);",
            "env -i setsid sh -c % &",
            "(unset AGENTBOX_COMMAND; setsid sh -c % &);",
        ];
        let shape = if hard && rng.bool() {
            rng.choice(hidden).unwrap()
        } else {
            rng.choice(soft).unwrap()
        };
        script.push_str(&shape.replace('%', &inner));
        script.push(' ');
    }
    let stay = ["wait; sleep @", "sleep @", "trap '' TERM; wait; sleep @"];
    script.push_str(&rng.choice(stay).unwrap().replace('@', token));
    script
}

/// Runs a random tree and ends it after a random time, by a timeout or by
/// dropping the future.
async fn run_tree(place: &Place, mut rng: Rng) {
    let token = token();
    let depth = rng.usize(0..3);
    let script = tree(&mut rng, &token, depth, place.supervised);
    let time = Duration::from_millis(rng.u64(1..150));
    let command = Command::new(script.as_str());
    if rng.bool() {
        let outcome = place.backend.execute(command.timeout(time)).await.unwrap();
        assert_eq!(outcome.status, CommandStatus::TimedOut, "{script}");
        let left: Vec<String> = survivors(&token).into_iter().map(describe).collect();
        kill(&token);
        assert!(left.is_empty(), "{script}: {left:#?}");
    } else {
        let ended = tokio::time::timeout(time, place.backend.execute(command)).await;
        assert!(ended.is_err(), "{script}: {ended:?}");
        tokio::task::spawn_blocking(move || gone(&token))
            .await
            .unwrap();
    }
}

const TREES_AT_ONCE: usize = 25;

#[tokio::test]
async fn seven_hundred_random_trees_leave_nothing() {
    let seed = 0x5eed;
    let mut rng = Rng::with_seed(seed);
    for _ in 0..28 {
        let place = place();
        let runs = (0..TREES_AT_ONCE).map(|_| run_tree(&place, rng.fork()));
        join_all(runs).await;
    }
}

#[tokio::test]
async fn random_trees_that_do_not_hide_leave_nothing_without_a_supervisor() {
    let mut rng = Rng::with_seed(0xface);
    let [_, place] = places();
    for _ in 0..4 {
        let runs = (0..TREES_AT_ONCE).map(|_| run_tree(&place, rng.fork()));
        join_all(runs).await;
    }
}

/// Runs in a separate process, which is killed.
#[test]
#[ignore = "a part of another test, which starts it"]
fn part_host_that_is_killed() {
    let mut input = String::new();
    std::io::stdin().read_line(&mut input).unwrap();
    let (seed, token) = input.trim().split_once(' ').unwrap();
    let mut rng = Rng::with_seed(seed.parse().unwrap());
    let place = place();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut streams = Vec::new();
        for _ in 0..TREES_AT_ONCE {
            let depth = rng.usize(0..3);
            let script = tree(&mut rng, token, depth, true);
            streams.push(place.backend.stream(Command::new(script)).await.unwrap());
        }
        println!("ready {}", place.directory.path().display());
        std::io::stdout().flush().unwrap();
        futures::future::pending::<()>().await;
    });
}

/// Starts a host with running commands, and returns its working directory.
fn start_host(seed: u64, token: &str) -> (Child, String) {
    let mut host = this_test("process_trees::part_host_that_is_killed")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(host.stdin.take().unwrap(), "{seed} {token}").unwrap();
    let output = std::io::BufReader::new(host.stdout.take().unwrap());
    let ready = output.lines().map_while(Result::ok).find_map(|line| {
        let (_, directory) = line.split_once("ready ")?;
        Some(directory.to_string())
    });
    (host, ready.unwrap())
}

#[test]
fn three_hundred_random_trees_of_killed_hosts_leave_nothing() {
    for seed in 0..12 {
        let token = token();
        let (mut host, directory) = start_host(seed, &token);
        host.kill().unwrap();
        host.wait().unwrap();
        gone(&token);
        std::fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn a_host_ends_with_its_process_though_another_holds_its_socket() {
    let token = token();
    let (mut host, directory) = start_host(99, &token);
    let handle = handle(host.id() as i32).unwrap();
    let mut sockets = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{}/fd", host.id())).unwrap() {
        let path = entry.unwrap().path();
        let Ok(target) = std::fs::read_link(&path) else {
            continue;
        };
        if target.to_str().unwrap().starts_with("socket:") {
            let number = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
            let flags = rustix::process::PidfdGetfdFlags::empty();
            sockets.extend(rustix::process::pidfd_getfd(&handle, number, flags).ok());
        }
    }
    host.kill().unwrap();
    host.wait().unwrap();
    gone(&token);
    drop(sockets);
    std::fs::remove_dir_all(directory).unwrap();
}

/// Runs in a separate process, with a supervisor next to its program.
#[test]
#[ignore = "a part of another test, which starts it"]
fn part_host_beside_a_supervisor() {
    let place = with(Commands::new());
    let outcome = futures::executor::block_on(place.run("cat /proc/$PPID/cmdline"));
    assert!(outcome.stdout.text().starts_with("agentbox-supervisor\0"));
}

#[test]
fn a_supervisor_beside_the_program_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("host");
    let here = std::env::current_exe().unwrap();
    std::fs::copy(here, &program).unwrap();
    let supervisor = directory.path().join("agentbox-supervisor");
    std::fs::copy(env!("CARGO_BIN_EXE_agentbox-supervisor"), supervisor).unwrap();
    let part = "process_trees::part_host_beside_a_supervisor";
    passes(&mut this_program(&program, part));
}

#[tokio::test]
async fn commands_that_start_while_others_are_ended_go_on() {
    let place = place();
    let token = token();
    let ending = async {
        for _ in 0..60 {
            let command = Command::new(format!("exec sleep {token}"));
            place.run(command.timeout(Duration::from_millis(1))).await;
        }
    };
    let starting = || async {
        loop {
            assert_eq!(place.run("true").await.status, CommandStatus::Exited(0));
        }
    };
    tokio::select! {
        () = ending => {}
        () = starting() => {}
        () = starting() => {}
    }
    none(&token);
}
