//! Signals: commands start with default handling, the supervisor reacts to
//! none, and the host's handling is left alone.

use std::process::Command as HostCommand;
use std::time::Duration;

use backend_core::Sandbox;
use backend_core::ops::{Command, CommandStatus, ShellState, StopMode};

use backend_local::Limits;

use crate::support::commands::*;

#[tokio::test]
async fn a_supervisor_takes_no_other_signal() {
    let place = place();
    let names = "HUP INT QUIT TERM USR1 USR2 PIPE ALRM CHLD TSTP TTIN TTOU ABRT 34 50 64";
    let line = format!("for s in {names}; do /bin/kill -$s $PPID; done; echo x");
    assert_eq!(place.run(line).await.stdout.text(), "x\n");
    assert_eq!(place.run("echo y").await.stdout.text(), "y\n");
}

#[tokio::test]
async fn commands_start_with_ordinary_signals_and_no_foreign_descriptors() {
    for place in places() {
        let outcome = place
            .run("ls /proc/self/fd; exec grep -E 'SigBlk|SigIgn' /proc/self/status")
            .await;
        let text = outcome.stdout.text();
        assert!(text.contains("SigBlk:\t0000000000000000\n"), "{text}");
        let text = text.as_str();
        let mask = |text: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix("SigIgn:\t"));
            let mask = u64::from_str_radix(line.unwrap(), 16).unwrap();
            // The C library reserves two signals.
            mask & !(3 << (32 - 1))
        };
        // Without a supervisor, the dispositions that this process was started
        // with, except the one that Rust itself sets.
        let expected = if place.supervised {
            0
        } else {
            mask(&dispositions().join("\n")) & !(1 << (13 - 1))
        };
        assert_eq!(mask(text), expected, "{text}");
        // The three streams and the listing itself. Without a supervisor,
        // commands inherit the descriptors that this process inherited.
        if place.supervised {
            assert!(text.starts_with("0\n1\n2\n3\nSig"), "{text}");
        }
    }
}

/// Runs in a separate process that ignores and blocks all signals it can: see
/// `a_host_that_ignores_signals_keeps_them_to_itself`.
#[tokio::test]
#[ignore = "a part of another test, which starts it"]
async fn part_host_that_ignores_signals() {
    let ignored = dispositions()
        .into_iter()
        .find(|line| line.starts_with("SigIgn"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim_start_matches("SigIgn:\t"), 16);
    let (hup, ill, fpe) = (1, 1 << 3, 1 << 7);
    assert_eq!(ignored.unwrap() & (hup | ill | fpe), hup | ill | fpe);
    let limited = supervised().limits(Limits::default().file_bytes(1 << 20));
    for place in [place(), with(limited)] {
        let line = "exec grep -E 'SigBlk|SigIgn' /proc/self/status";
        let shown = place.run(line).await.stdout.text();
        let masks = shown.lines().map(|line| {
            let mask = line.split('\t').nth(1).unwrap();
            u64::from_str_radix(mask, 16).unwrap() & !(3 << (32 - 1))
        });
        assert_eq!(masks.collect::<Vec<_>>(), [0, 0], "{shown}");
    }
}

#[test]
fn a_host_that_ignores_signals_keeps_them_to_itself() {
    let part = this_test("signals::part_host_that_ignores_signals");
    let script = "import os, signal, sys\n\
        every = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}\n\
        for number in every: signal.signal(number, signal.SIG_IGN)\n\
        signal.pthread_sigmask(signal.SIG_BLOCK, every)\n\
        os.execv(sys.argv[1], sys.argv[1:])";
    let mut host = HostCommand::new("/usr/bin/python3");
    host.args(["-c", script]).arg(part.get_program());
    passes(host.args(part.get_args()));
}

/// Returns the kernel's record of this thread's and this process's signals.
fn dispositions() -> Vec<String> {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let lines = status.lines().filter(|line| line.starts_with("Sig"));
    let wanted = ["SigBlk", "SigIgn", "SigCgt"];
    lines
        .filter(|line| wanted.iter().any(|name| line.starts_with(name)))
        .map(String::from)
        .collect()
}

/// Runs in a separate process: see `the_host_is_left_alone`.
#[test]
#[ignore = "a part of another test, which starts it"]
fn part_host_that_compares_its_signals() {
    let mut own = HostCommand::new("sh")
        .args(["-c", "exit 9"])
        .spawn()
        .unwrap();
    let before = dispositions();
    for place in places() {
        let token = token();
        futures::executor::block_on(async {
            place.run("true").await;
            let line = format!("(setsid sleep {token} &); sleep {token}");
            let command = Command::new(line).timeout(Duration::from_millis(50));
            place.run(command).await;
            let stream = place.backend.stream(Command::new("yes")).await.unwrap();
            drop(stream);
            place.backend.stop(StopMode::Keep).await.unwrap();
        });
        drop(place);
        gone(&token);
    }
    assert_eq!(before, dispositions());
    // It can still wait for its own child.
    assert_eq!(own.wait().unwrap().code(), Some(9));
}

#[test]
fn the_host_is_left_alone() {
    passes(&mut this_test(
        "signals::part_host_that_compares_its_signals",
    ));
}

#[tokio::test]
async fn a_command_that_its_shell_became_heeds_term() {
    for place in places() {
        for line in ["exec sleep @", "sleep @"] {
            let token = token();
            let command = Command::new(line.replace('@', &token));
            let shell = place.backend.shell_start(command).await.unwrap();
            place.backend.shell_kill(&shell.id).await.unwrap();
            let output = place.backend.shell_read(&shell.id, PATIENCE).await.unwrap();
            let ended = ShellState::Ended(CommandStatus::Signalled(15));
            assert_eq!(output.state, ended, "{line}");
            none(&token);
        }
    }
}
