//! Background shells: started, read, written to, listed and ended.

use std::time::Duration;

use backend_core::ErrorKind::{Conflict, NotFound, TooLarge, Unavailable};
use backend_core::Sandbox;
use backend_core::limits::{SHELL_LOG_BYTES, SHELLS};
use backend_core::ops::{
    Command, CommandStatus, ShellId, ShellInfo, ShellState, StopMode, Streams,
};
use backend_testkit::fails;
use bytes::Bytes;

use crate::support::commands::*;

impl Place {
    async fn shell(&self, line: impl Into<String>) -> ShellInfo {
        self.backend.shell_start(Command::new(line)).await.unwrap()
    }

    /// Reads until `end` returns `true`.
    async fn read_until(
        &self,
        id: &ShellId,
        end: impl Fn(&str, ShellState) -> bool,
    ) -> (String, ShellState) {
        let mut all = Vec::new();
        loop {
            let output = self.backend.shell_read(id, PATIENCE).await.unwrap();
            all.extend_from_slice(&output.stdout);
            let text = String::from_utf8_lossy(&all).into_owned();
            if end(&text, output.state) {
                return (text, output.state);
            }
            assert_eq!(output.state, ShellState::Running, "{text}");
        }
    }

    async fn read_all(&self, id: &ShellId) -> (String, ShellState) {
        self.read_until(id, |_, state| state != ShellState::Running)
            .await
    }
}

#[tokio::test]
async fn a_shell_answers_what_is_written_to_it() {
    for place in places() {
        let shell = place
            .shell("while read line; do echo got $line; done; echo end")
            .await;
        assert_eq!(shell.id, ShellId::new("bg_1"));
        assert_eq!(shell.state, ShellState::Running);
        for word in ["one", "two"] {
            let input = Bytes::from(format!("{word}\n"));
            place
                .backend
                .shell_write(&shell.id, Some(input))
                .await
                .unwrap();
            let wanted = format!("got {word}\n");
            let (text, _) = place
                .read_until(&shell.id, |text, _| text.ends_with('\n'))
                .await;
            assert_eq!(text, wanted);
        }
        place.backend.shell_write(&shell.id, None).await.unwrap();
        let (text, state) = place.read_all(&shell.id).await;
        assert_eq!(text, "end\n");
        assert_eq!(state, ShellState::Ended(CommandStatus::Exited(0)));
        for input in [None, Some(Bytes::from("x"))] {
            fails(Conflict, place.backend.shell_write(&shell.id, input).await);
        }
        // Reading again returns the same end and no new output, at once.
        let again = place.backend.shell_read(&shell.id, PATIENCE).await.unwrap();
        assert!(again.stdout.is_empty() && again.state == state);
    }
}

#[tokio::test]
async fn a_read_waits_no_longer_than_it_may() {
    for place in places() {
        let token = token();
        let shell = place.shell(format!("sleep {token}")).await;
        for wait in [Duration::ZERO, Duration::from_millis(20)] {
            let output = place.backend.shell_read(&shell.id, wait).await.unwrap();
            assert!(output.stdout.is_empty());
            assert_eq!(output.state, ShellState::Running);
        }
        assert!(place.backend.shell_kill(&shell.id).await.unwrap());
        assert!(!place.backend.shell_kill(&shell.id).await.unwrap());
        none(&token);
    }
}

#[test]
fn a_read_needs_no_runtime_of_the_caller() {
    for place in places() {
        futures::executor::block_on(async {
            let shell = place.shell("cat").await;
            let wait = Duration::from_millis(20);
            let output = place.backend.shell_read(&shell.id, wait).await.unwrap();
            assert_eq!(output.state, ShellState::Running);
            let input = Some(Bytes::from("x\n"));
            place.backend.shell_write(&shell.id, input).await.unwrap();
            let (text, _) = place
                .read_until(&shell.id, |text, _| !text.is_empty())
                .await;
            assert_eq!(text, "x\n");
            assert!(place.backend.shell_kill(&shell.id).await.unwrap());
        });
    }
}

#[tokio::test]
async fn a_kill_ends_the_whole_tree() {
    for place in places() {
        let token = token();
        let line = format!(
            "(setsid sleep {token} &); trap '' TERM; echo ready; sleep {token}; sleep {token}"
        );
        let shell = place.shell(line).await;
        place
            .read_until(&shell.id, |text, _| text == "ready\n")
            .await;
        assert!(place.backend.shell_kill(&shell.id).await.unwrap());
        none(&token);
        let output = place.backend.shell_read(&shell.id, PATIENCE).await.unwrap();
        assert_eq!(output.state, ShellState::Ended(CommandStatus::Signalled(9)));
    }
}

#[tokio::test]
async fn a_timeout_applies_to_shells() {
    for place in places() {
        let token = token();
        let mut printed = String::new();
        // A busy machine may need the later limits to print at all.
        for limit in LIMITS {
            let command = Command::new(format!("echo x; sleep {token}")).timeout(limit);
            let shell = place.backend.shell_start(command).await.unwrap();
            let (text, state) = place.read_all(&shell.id).await;
            assert_eq!(state, ShellState::Ended(CommandStatus::TimedOut));
            none(&token);
            printed = text;
            if !printed.is_empty() {
                break;
            }
        }
        assert_eq!(printed, "x\n");
    }
}

#[tokio::test]
async fn a_log_keeps_the_newest_and_counts_the_rest() {
    for place in places() {
        let fifo = fifo(place.directory.path());
        let print = "head -c 3000000 /dev/zero; echo end; echo error >&2";
        let shell = place
            .shell(format!("{print}; echo > {}", fifo.display()))
            .await;
        // All output but what a pipe holds was printed before the first read.
        ready(fifo).await;
        let (mut stdout, mut stderr, mut dropped) = (Vec::new(), Vec::new(), 0);
        loop {
            let output = place.backend.shell_read(&shell.id, PATIENCE).await.unwrap();
            assert!(output.stdout.len() <= SHELL_LOG_BYTES);
            stdout.extend_from_slice(&output.stdout);
            stderr.extend_from_slice(&output.stderr);
            dropped += output.dropped;
            if output.state != ShellState::Running {
                break;
            }
        }
        assert!(stdout.ends_with(b"\0end\n"));
        assert_eq!(stderr, b"error\n");
        assert!(dropped > 1_000_000);
        assert_eq!(stdout.len() as u64 + dropped, 3_000_004);
    }
}

#[tokio::test]
async fn merged_streams_keep_their_order() {
    for place in places() {
        let command = Command::new("echo a; echo b >&2; echo c").streams(Streams::Merged);
        let shell = place.backend.shell_start(command).await.unwrap();
        assert_eq!(place.read_all(&shell.id).await.0, "a\nb\nc\n");
    }
}

#[tokio::test]
async fn a_write_that_nobody_reads_waits_and_can_be_given_up() {
    for place in places() {
        let token = token();
        let shell = place.shell(format!("sleep {token}")).await;
        let much = Bytes::from(vec![b'x'; 1_000_000]);
        let writing = place.backend.shell_write(&shell.id, Some(much.clone()));
        let given_up = tokio::time::timeout(Duration::from_millis(50), writing).await;
        assert!(given_up.is_err());
        // A pending write does not hang when the shell ends.
        let (written, killed) = tokio::join!(
            place.backend.shell_write(&shell.id, Some(much)),
            place.backend.shell_kill(&shell.id)
        );
        fails(Conflict, written);
        assert!(killed.unwrap());
        none(&token);
    }
}

#[tokio::test]
async fn a_shell_that_closed_its_input_is_a_conflict() {
    for place in places() {
        let token = token();
        let shell = place
            .shell(format!("exec <&-; echo ready; sleep {token}"))
            .await;
        place
            .read_until(&shell.id, |text, _| text == "ready\n")
            .await;
        let input = Some(Bytes::from("x"));
        fails(Conflict, place.backend.shell_write(&shell.id, input).await);
        place.backend.shell_kill(&shell.id).await.unwrap();
        none(&token);
    }
}

#[tokio::test]
async fn ended_shells_make_room_and_running_ones_do_not() {
    let place = place();
    let token = token();
    let first = place.shell("true").await;
    place.read_all(&first.id).await;
    for _ in 1..SHELLS {
        place.shell(format!("sleep {token}")).await;
    }
    assert_eq!(place.backend.shell_list().await.unwrap().len(), SHELLS);
    place.shell(format!("sleep {token}")).await;
    let list = place.backend.shell_list().await.unwrap();
    assert_eq!(list.len(), SHELLS);
    assert_eq!(list[0].id, ShellId::new("bg_2"));
    assert_eq!(
        list[SHELLS - 1].id,
        ShellId::new(format!("bg_{}", SHELLS + 1))
    );
    fails(
        TooLarge,
        place.backend.shell_start(Command::new("true")).await,
    );
    fails(
        NotFound,
        place.backend.shell_read(&first.id, Duration::ZERO).await,
    );
    place.backend.stop(StopMode::Purge).await.unwrap();
    none(&token);
    assert!(place.backend.shell_list().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_shell_that_cannot_start_takes_no_room() {
    let place = with(supervised().shell("/no/such/shell"));
    for _ in 0..SHELLS + 1 {
        fails(
            Unavailable,
            place.backend.shell_start(Command::new("true")).await,
        );
    }
    assert!(place.backend.shell_list().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_unknown_shell_is_not_found() {
    let place = place();
    let id = ShellId::new("bg_1");
    let backend = &place.backend;
    let kinds = [
        backend.shell_read(&id, PATIENCE).await.map(drop),
        backend.shell_write(&id, None).await,
        backend.shell_kill(&id).await.map(drop),
    ];
    for result in kinds {
        fails(NotFound, result);
    }
}
