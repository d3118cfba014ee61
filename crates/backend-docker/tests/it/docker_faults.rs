//! Failures around a sandbox, and what its callers see.

use std::sync::Arc;
use std::time::Duration;

use backend_core::ops::{Command, CommandStatus, Event, StopMode, TerminalSize, WatchQuery};
use backend_core::{
    Backend as _, BackendExt as _, Connection, ErrorKind, Sandbox as _, WatchStream,
};
use backend_docker::{ContainerState, Delivery, DockerSandbox, Mode};
use backend_testkit::fails;
use futures::StreamExt as _;

use crate::support::docker;
use crate::support::docker::{builder, outcome, purge, run, until};

/// Returns the pids, on this host, of a container's processes whose command line
/// contains a text.
fn pids(container: &str, text: &str) -> Vec<String> {
    let all = docker::docker(&["top", container, "-o", "pid,args"]);
    let lines = all.lines().skip(1).filter(|line| line.contains(text));
    lines
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

fn kill(pid: &str) {
    let killed = std::process::Command::new("kill")
        .args(["-9", pid])
        .status();
    assert!(killed.unwrap().success());
}

/// Waits until a command in the sandbox is running.
async fn begun(sandbox: &DockerSandbox, text: &str) {
    let name = sandbox.container();
    until("the command's start", async || !pids(name, text).is_empty()).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_killed_agent_takes_its_calls_along_and_is_started_anew() {
    let sandbox = builder().build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    let calls = async {
        let running = outcome(&sandbox, "sleep 4321").await;
        fails(ErrorKind::Unavailable, running);
    };
    let killer = async {
        begun(&sandbox, "sleep 4321").await;
        let agents = pids(sandbox.container(), "sandbox-agent --directory");
        assert_eq!(agents.len(), 1);
        kill(&agents[0]);
    };
    futures::join!(calls, killer);
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    let name = sandbox.container();
    until("the command's end", async || {
        pids(name, "sleep 4321").is_empty()
    })
    .await;
    purge(&sandbox).await;
}

/// A terminal, a watch and a connection to a port, open in one sandbox.
struct Open {
    terminal: Connection,
    changes: WatchStream,
    connection: Connection,
}

impl Open {
    async fn everything(sandbox: &DockerSandbox) -> Self {
        let server = Command::new("exec nc -ll -p 4325 -e cat");
        sandbox.shell_start(server).await.unwrap();
        let line = "setsid sleep 4325 & echo up; exec cat";
        let command = Command::new(line).terminal(TerminalSize::default());
        let shell = sandbox.shell_start(command).await.unwrap();
        let mut terminal = sandbox.shell_attach(&shell.id).await.unwrap();
        printed(&mut terminal, b"up\r\n").await;
        let query = WatchQuery::new(sandbox.working_dir());
        let changes = sandbox.watch(query).await.unwrap();
        let mut connection = None;
        until("the server's start", async || {
            connection = sandbox.connect(4325).await.ok();
            connection.is_some()
        })
        .await;
        let mut connection = connection.unwrap();
        connection.outgoing.send("here".into()).await.unwrap();
        printed(&mut connection, b"here").await;
        Self {
            terminal,
            changes,
            connection,
        }
    }

    /// Everything must end with an error that says that the agent is gone.
    async fn ends(mut self) {
        for mut connection in [self.terminal, self.connection] {
            let ended = connection.incoming.next().await.unwrap();
            fails(ErrorKind::Unavailable, ended);
            assert!(connection.incoming.next().await.is_none());
            let sent = connection.outgoing.send("x".into()).await;
            fails(ErrorKind::Unavailable, sent);
        }
        let told = self.changes.next().await.unwrap();
        fails(ErrorKind::Unavailable, told);
        assert!(self.changes.next().await.is_none());
    }
}

/// Reads until exactly this was printed.
async fn printed(connection: &mut Connection, text: &[u8]) {
    let mut all = Vec::new();
    while all != text {
        all.extend_from_slice(&connection.incoming.next().await.unwrap().unwrap());
        assert!(text.starts_with(&all), "{}", all.escape_ascii());
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_killed_agent_ends_terminals_watches_and_connections() {
    let sandbox = builder().build().unwrap();
    let open = Open::everything(&sandbox).await;
    let name = sandbox.container();
    let agents = pids(name, "sandbox-agent --directory");
    assert_eq!(agents.len(), 1);
    kill(&agents[0]);
    let ended = tokio::time::timeout(Duration::from_secs(120), open.ends()).await;
    ended.expect("something hangs");
    for text in ["sleep 4325", "nc -ll"] {
        until("its end", async || pids(name, text).is_empty()).await;
    }
    // All of it can be opened again.
    let again = Open::everything(&sandbox).await;
    assert_eq!(sandbox.shell_list().await.unwrap().len(), 2);
    drop(again);
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_killed_init_is_told_and_the_next_call_starts_again() {
    for mode in [Mode::Agent, Mode::Portable] {
        let sandbox = builder().mode(mode).build().unwrap();
        sandbox.write_file("a.txt", "one\n").await.unwrap();
        let calls = async {
            let told = outcome(&sandbox, "sleep 4322").await;
            let error = told.expect_err(&format!("{mode:?}"));
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(error.to_string().contains("ended"), "{mode:?}: {error}");
        };
        let killer = async {
            begun(&sandbox, "sleep 4322").await;
            let pid = docker::docker(&["inspect", "-f", "{{.State.Pid}}", sandbox.container()]);
            kill(&pid);
        };
        futures::join!(calls, killer);
        assert_eq!(
            sandbox.read_to_string("a.txt").await.unwrap(),
            "one\n",
            "{mode:?}"
        );
        purge(&sandbox).await;
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_container_removed_under_a_command_is_told() {
    for mode in [Mode::Agent, Mode::Portable] {
        let sandbox = builder().mode(mode).build().unwrap();
        sandbox.start().await.unwrap();
        let calls = async {
            let told = outcome(&sandbox, "sleep 4323").await;
            let error = told.expect_err(&format!("{mode:?}"));
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{mode:?}: {error}");
        };
        let remover = async {
            begun(&sandbox, "sleep 4323").await;
            docker::docker(&["rm", "-f", sandbox.container()]);
        };
        futures::join!(calls, remover);
        let error = sandbox.exists("a.txt").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{mode:?}: {error}");
        assert!(
            error.to_string().contains("was removed"),
            "{mode:?}: {error}"
        );
        assert!(
            !error.to_string().contains("call start"),
            "models have no such call: {error}"
        );
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_pause_is_survived_by_what_runs() {
    let sandbox = builder().build().unwrap();
    sandbox.start().await.unwrap();
    let command = async { outcome(&sandbox, "sleep 1; echo done").await.unwrap() };
    let pauser = async {
        begun(&sandbox, "sleep 1").await;
        sandbox.pause().await.unwrap();
        assert_eq!(sandbox.state().await.unwrap(), ContainerState::Paused);
        sandbox.unpause().await.unwrap();
    };
    let (done, ()) = futures::join!(command, pauser);
    assert_eq!(done.stdout.text(), "done\n");
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_full_disk_changes_nothing() {
    for mode in [Mode::Agent, Mode::Portable] {
        let sandbox = builder()
            .tmpfs("/small", "size=256k,mode=1777")
            .mode(mode)
            .build()
            .unwrap();
        sandbox.write_file("/small/a.txt", "one\n").await.unwrap();
        let error = sandbox
            .write_file("/small/a.txt", vec![7u8; 1 << 20])
            .await
            .unwrap_err();
        assert!(!error.to_string().is_empty());
        assert_eq!(
            sandbox.read_to_string("/small/a.txt").await.unwrap(),
            "one\n",
            "{mode:?}"
        );
        let left = run(&sandbox, "ls -A /small").await;
        assert_eq!(left, "a.txt", "{mode:?}: nothing half written stays");
        purge(&sandbox).await;
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_command_out_of_memory_is_a_result() {
    for mode in [Mode::Agent, Mode::Portable] {
        let sandbox = builder().memory(64 << 20).mode(mode).build().unwrap();
        let hog = "dd if=/dev/zero of=/dev/null bs=300M count=1";
        let ended = outcome(&sandbox, &format!("exec {hog}")).await.unwrap();
        assert_eq!(
            ended.status,
            CommandStatus::Signalled(9),
            "{mode:?}: {ended:?}"
        );
        assert_eq!(run(&sandbox, "echo alive").await, "alive");
        purge(&sandbox).await;
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_flood_of_output_is_bounded_and_slowed() {
    let sandbox = builder().build().unwrap();
    let flood = Command::new("yes").hard_output_bytes(64 << 20);
    let ended = sandbox.execute(flood).await.unwrap();
    assert_eq!(ended.status, CommandStatus::OutputLimited);
    assert!(ended.stdout.is_truncated());
    // A stream that is not read blocks; other calls are answered meanwhile.
    let mut stream = sandbox.stream(Command::new("yes")).await.unwrap();
    let first = stream.next().await.unwrap().unwrap();
    assert!(matches!(first, Event::Stdout(_)));
    for _ in 0..20 {
        assert_eq!(run(&sandbox, "echo through").await, "through");
    }
    drop(stream);
    let name = sandbox.container();
    until("the flood's end", async || pids(name, "yes").is_empty()).await;
    purge(&sandbox).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn two_hundred_operations_at_once() {
    let sandbox = builder().build().unwrap();
    mixed(&sandbox, 200).await;
    purge(&sandbox).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn two_hundred_operations_on_twenty_sandboxes() {
    let all: Vec<_> = (0..20).map(|_| builder().build().unwrap()).collect();
    let work = all.iter().map(|sandbox| mixed(sandbox, 10));
    futures::future::join_all(work).await;
    futures::future::join_all(all.iter().map(purge)).await;
    for sandbox in &all {
        assert_eq!(sandbox.state().await.unwrap(), ContainerState::Missing);
    }
}

/// Writes, edits, reads, lists, searches and runs, all concurrently.
async fn mixed(sandbox: &DockerSandbox, count: usize) {
    let work = (0..count).map(|number| async move {
        let name = format!("d{}/f{number}.txt", number % 7);
        let text = format!("number {number}\n");
        sandbox.write_file(&name, text.clone()).await.unwrap();
        match number % 4 {
            0 => assert_eq!(sandbox.read_to_string(&name).await.unwrap(), text),
            1 => drop(sandbox.replace_text(&name, "number", "n").await.unwrap()),
            2 => assert_eq!(run(sandbox, &format!("cat {name}")).await, text.trim_end()),
            _ => assert!(
                !sandbox
                    .search_text("number")
                    .await
                    .unwrap()
                    .files
                    .is_empty()
            ),
        }
    });
    futures::future::join_all(work).await;
    assert_eq!(
        sandbox.find_files("*.txt").await.unwrap().files.len(),
        count
    );
}

/// Replaces the agent with a script, whose output is taken for responses.
async fn forger(script: &str) -> DockerSandbox {
    let real = builder()
        .delivery(Delivery::Upload)
        .user("0")
        .build()
        .unwrap();
    run(&real, "true").await;
    let forged = format!(
        "for a in /.agentbox/*; do rm $a; printf '%s\\n' '#!/bin/sh' '{script}' > $a; chmod 755 $a; done"
    );
    run(&real, &forged).await;
    for pid in pids(real.container(), "sandbox-agent-") {
        kill(&pid);
    }
    real
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn forged_answers_are_errors_and_never_harm_the_host() {
    for script in [
        "exit 0",
        "echo hello; sleep 1",
        "cat /bin/busybox",
        "yes",
        "cat",
        "head -c 1000000 /dev/urandom",
    ] {
        let sandbox = forger(script).await;
        let asked = async {
            for _ in 0..3 {
                match sandbox.read_to_string("/etc/hostname").await {
                    Ok(_) => {}
                    Err(error) => return error,
                }
            }
            panic!("{script}: a forged agent was believed");
        };
        let error = tokio::time::timeout(Duration::from_secs(50), asked)
            .await
            .unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{script}: {error}");
        purge(&sandbox).await;
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_image_without_any_program_has_files() {
    let tag = format!("agentbox-test/empty:{:x}", std::process::id());
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("empty.tar");
    tar::Builder::new(std::fs::File::create(&archive).unwrap())
        .finish()
        .unwrap();
    docker::docker(&["import", archive.to_str().unwrap(), &tag]);
    let sandbox = builder().image(&tag).build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    sandbox.stop(StopMode::Keep).await.unwrap();
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    purge(&sandbox).await;
    docker::docker(&["rmi", &tag]);
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn calls_need_nobody_to_poll_them_to_the_end() {
    let sandbox = Arc::new(builder().build().unwrap());
    sandbox.start().await.unwrap();
    // A runtime that is dropped during a call.
    let other = Arc::clone(&sandbox);
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let call = other.execute(Command::new("sleep 4324"));
            let _ = tokio::time::timeout(Duration::from_millis(300), call).await;
        });
    });
    thread.join().unwrap();
    let name = sandbox.container();
    until("the end of the abandoned command", async || {
        pids(name, "sleep 4324").is_empty()
    })
    .await;
    purge(&sandbox).await;
}
