//! Commands through the contract: their environment, output and end.

use std::time::Duration;

use backend_core::ErrorKind::{
    self, Config, InvalidInput, NotFound, PermissionDenied, Unavailable, Unsupported,
};
use backend_core::ops::{Command, CommandStatus, Event, StopMode, Streams};
use backend_core::{Sandbox, VPath};
use backend_local::{Commands, Environment, LocalBackend, Supervisor};
use backend_testkit::fails;
use futures::StreamExt;

use crate::support::commands::*;

#[tokio::test]
async fn codes_signals_and_missing_programs_are_results() {
    for place in places() {
        for (line, status) in [
            ("true", CommandStatus::Exited(0)),
            ("exit 7", CommandStatus::Exited(7)),
            ("kill -9 $$", CommandStatus::Signalled(9)),
            // Sent by the process itself: a signal from another process may end
            // it while the sender still exists.
            ("exec /bin/kill -40 $$", CommandStatus::Signalled(40)),
            ("no-such-program-anywhere", CommandStatus::Exited(127)),
            ("/etc/passwd", CommandStatus::Exited(126)),
        ] {
            let outcome = place.run(line).await;
            assert_eq!(outcome.status, status, "{line}");
            assert_eq!(outcome.leftovers, 0, "{line}");
        }
    }
}

#[tokio::test]
async fn runs_in_its_directory() {
    for place in places() {
        let sub = place.directory.path().join("sub dir");
        std::fs::create_dir(&sub).unwrap();
        let command = Command::new("pwd -P; pwd").directory(VPath::parse("/sub dir").unwrap());
        let outcome = place.run(command).await;
        let real = sub.canonicalize().unwrap();
        let real = real.to_str().unwrap();
        assert_eq!(outcome.stdout.text(), format!("{real}\n{real}\n"));
        let outcome = place.run("pwd -P").await;
        let root = place.directory.path().canonicalize().unwrap();
        assert_eq!(outcome.stdout.text().trim(), root.to_str().unwrap());
        let missing = Command::new("true").directory(VPath::parse("/missing").unwrap());
        fails(NotFound, place.backend.execute(missing).await);
    }
}

#[tokio::test]
async fn when_memory_runs_out_commands_go_first() {
    let place = place();
    let ours = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    let ours: i32 = ours.trim().parse().unwrap();
    let more = (ours + 500).min(1_000);
    // The supervisor restores its own score after the command has started.
    let line = format!(
        "cd /proc; cat $$/oom_score_adj; \
         until grep -qx -e {ours} $PPID/oom_score_adj; do sleep 0.01; done; \
         cat $PPID/oom_score_adj; sh -c 'cat $$/oom_score_adj'"
    );
    let outcome = place.run(Command::new(line).timeout(PATIENCE)).await;
    let shown = outcome.stdout.text();
    let shown: Vec<i32> = shown.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(shown, [more, ours, more]);
}

#[tokio::test]
async fn nonsense_is_refused() {
    for place in places() {
        for command in [
            Command::new("true").timeout(Duration::ZERO),
            Command::new("a\0b"),
            Command::new("true").env("A=B", "c"),
            Command::new("true").env("BIG", "x".repeat(200_000)),
            Command::new("true").env("HUGE", "x".repeat(20_000_000)),
        ] {
            fails(InvalidInput, place.backend.execute(command).await);
        }
        assert!(place.run("true").await.status.success());
    }
}

#[tokio::test]
async fn layers_of_the_environment_win_in_order() {
    for supervisor in [supervised(), Commands::new().supervisor(Supervisor::None)] {
        let environment = Environment::empty().set("A", "backend").set("B", "backend");
        let place = with(supervisor.environment(environment));
        let command = Command::new("echo $A $B $PAGER $TERM; cat").env("B", "command");
        let outcome = place.run(command).await;
        assert_eq!(outcome.stdout.text(), "backend command cat dumb\n");
        // The variables of this process are not inherited, but PATH is.
        let outcome = place.run("env").await;
        assert!(
            outcome.stdout.text().contains("\nPATH=") || outcome.stdout.text().starts_with("PATH=")
        );
        assert!(!outcome.stdout.text().contains("CARGO"));
    }
}

/// Runs in a separate process, with variables for this test.
#[test]
#[ignore = "a part of another test, which starts it"]
fn part_host_with_variables() {
    let line = "echo $PLAIN_NAME,$MY_API_KEY,$GITHUB_TOKEN,$ALLOWED_SECRET,$PAGER,${OLDPWD-unset}";
    for commands in [supervised(), Commands::new().supervisor(Supervisor::None)] {
        let environment = Environment::inherit().allow("ALLOWED_SECRET");
        let place = with(commands.environment(environment));
        let outcome = futures::executor::block_on(place.run(line));
        assert_eq!(outcome.stdout.text(), "plain,,,allowed,cat,unset\n");
    }
    // The supervisor does not have them either: commands can read its
    // environment.
    let line = "tr '\\0' '\\n' < /proc/$PPID/environ | grep -c -E 'API_KEY|GITHUB_TOKEN'";
    let outcome = futures::executor::block_on(place().run(line));
    assert_eq!(outcome.stdout.text(), "0\n");
}

#[test]
fn variables_of_the_host_come_through_but_for_secrets() {
    let mut part = this_test("commands::part_host_with_variables");
    part.env("PLAIN_NAME", "plain")
        .env("MY_API_KEY", "secret")
        .env("GITHUB_TOKEN", "secret")
        .env("ALLOWED_SECRET", "allowed")
        .env("PAGER", "less")
        .env("OLDPWD", "/");
    passes(&mut part);
}

#[tokio::test]
async fn standard_input_is_at_its_end() {
    for place in places() {
        let outcome = place.run("cat; wc -c; read x; echo $?").await;
        assert_eq!(outcome.stdout.text(), "0\n1\n");
    }
}

#[tokio::test]
async fn streams_are_apart_or_merged_in_order() {
    for place in places() {
        let line = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done";
        let outcome = place.run(line).await;
        assert_eq!(outcome.stdout.text().lines().count(), 9);
        assert!(
            outcome
                .stderr
                .text()
                .lines()
                .all(|line| line.starts_with('e'))
        );
        let merged = place.run(Command::new(line).streams(Streams::Merged)).await;
        let expected: String = (1..10).map(|i| format!("o{i}\ne{i}\n")).collect();
        assert_eq!(merged.stdout.text(), expected);
        assert!(merged.stderr.head.is_empty());
    }
}

#[tokio::test]
async fn bytes_come_back_as_they_are() {
    for place in places() {
        let outcome = place.run(r"printf '\000\377\376a\r\n'").await;
        assert_eq!(outcome.stdout.head[..], *b"\0\xff\xfea\r\n");
    }
}

#[tokio::test]
async fn long_output_keeps_both_ends() {
    for place in places() {
        let line = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done";
        let outcome = place.run(Command::new(line).output_bytes(200)).await;
        assert!(outcome.status.success());
        assert!(outcome.stdout.head.starts_with(b"line 0\n"));
        assert!(outcome.stdout.tail.ends_with(b"line 19999\n"));
        let total = outcome.stdout.dropped + 200;
        let expected: usize = (0..20000).map(|i| format!("line {i}\n").len()).sum();
        assert_eq!(total, expected as u64);
    }
}

#[tokio::test]
async fn too_much_output_ends_the_command() {
    for place in places() {
        let token = token();
        for line in [
            format!("yes {token}"),
            format!("yes {token} & wait"),
            "head -c 5000 /dev/zero".to_string(),
            "(head -c 5000 /dev/zero >&2)".to_string(),
        ] {
            let outcome = place
                .run(Command::new(line.as_str()).hard_output_bytes(1000))
                .await;
            assert_eq!(outcome.status, CommandStatus::OutputLimited, "{line}");
            let kept = outcome.stdout.head.len() + outcome.stderr.head.len();
            assert_eq!(kept, 1000, "{line}");
            none(&token);
        }
        let exact = Command::new("head -c 1000 /dev/zero").hard_output_bytes(1000);
        assert!(place.run(exact).await.status.success());
    }
}

fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

#[test]
fn a_gigabyte_of_output_takes_little_memory() {
    // Other tests need memory, too.
    passes(&mut this_test("commands::part_a_gigabyte_of_output"));
}

#[tokio::test]
#[ignore = "a part of another test, which starts it"]
async fn part_a_gigabyte_of_output() {
    let place = place();
    let command = Command::new("head -c 1000000000 /dev/zero");
    assert!(place.run("true").await.status.success());
    let before = peak_kilobytes();
    let outcome = place.run(command).await;
    assert!(outcome.status.success());
    assert_eq!(outcome.stdout.dropped + 100_000, 1_000_000_000);
    assert!(peak_kilobytes() < before + 50_000);
}

#[tokio::test]
async fn a_timeout_brings_back_what_was_printed() {
    for place in places() {
        let token = token();
        let line = format!("echo bad >&2; echo early; sleep {token}; echo late");
        let outcome = place.time_out(&line, "early\n").await;
        assert_eq!(outcome.stdout.text(), "early\n");
        assert_eq!(outcome.stderr.text(), "bad\n");
        none(&token);
    }
}

#[tokio::test]
async fn a_chance_to_clean_up_comes_before_the_end() {
    for place in places() {
        let line = "trap 'echo cleaned; exit 3' TERM; sleep 999 & echo ready; wait";
        let outcome = place.time_out(line, "ready\n").await;
        assert_eq!(outcome.stdout.text(), "ready\ncleaned\n");
    }
}

#[tokio::test]
async fn leftovers_of_a_finished_command_are_ended_and_counted() {
    for place in places() {
        let token = token();
        let outcome = place
            .run(format!(
                "sleep {token} & sleep {token} >/dev/null 2>&1 & echo x"
            ))
            .await;
        assert_eq!(outcome.status, CommandStatus::Exited(0));
        assert_eq!(outcome.stdout.text(), "x\n");
        assert_eq!(outcome.leftovers, 2);
        none(&token);
        let stubborn = format!("(trap '' TERM; sleep {token}) & echo x");
        assert!(place.run(stubborn).await.leftovers >= 1);
        none(&token);
    }
}

#[tokio::test]
async fn leftovers_may_be_kept_until_the_sandbox_stops() {
    for place in places() {
        let token = token();
        let line = format!("sleep {token} >/dev/null 2>&1 & echo x");
        let outcome = place.run(Command::new(line).keep_leftovers(true)).await;
        assert_eq!(outcome.leftovers, 1);
        assert_eq!(survivors(&token).len(), 1);
        place.backend.stop(StopMode::Keep).await.unwrap();
        none(&token);
    }
}

#[tokio::test]
async fn whoever_keeps_the_output_open_delays_the_answer_only_briefly() {
    for place in places() {
        let token = token();
        let began = std::time::Instant::now();
        let outcome = place
            .run(format!("echo x; setsid sleep {token} & exit 4"))
            .await;
        assert_eq!(outcome.status, CommandStatus::Exited(4));
        assert_eq!(outcome.stdout.text(), "x\n");
        assert!(began.elapsed() < PATIENCE);
        kill(&token);
    }
}

#[tokio::test]
async fn the_last_filter_of_a_pipe_may_finish() {
    for commands in [supervised(), Commands::new().supervisor(Supervisor::None)] {
        // The default is too short for a busy machine.
        let outcome = with(commands.linger(PATIENCE))
            .run("(sleep 0.2; echo late) & echo early")
            .await;
        assert_eq!(outcome.stdout.text(), "early\nlate\n");
    }
}

#[tokio::test]
async fn many_commands_run_at_once() {
    for place in places() {
        let runs = (0..50).map(|i| {
            let backend = place.backend.clone();
            async move {
                backend
                    .execute(Command::new(format!("echo {i}; exit {i}")))
                    .await
            }
        });
        let outcomes = futures::future::join_all(runs).await;
        for (i, outcome) in outcomes.into_iter().enumerate() {
            let outcome = outcome.unwrap();
            assert_eq!(outcome.status, CommandStatus::Exited(i as i32));
            assert_eq!(outcome.stdout.text(), format!("{i}\n"));
        }
    }
}

#[test]
fn no_runtime_of_the_caller_is_needed() {
    for place in places() {
        let outcome = futures::executor::block_on(place.run("echo x"));
        assert_eq!(outcome.stdout.text(), "x\n");
        let events = futures::executor::block_on(async {
            let stream = place.backend.stream(Command::new("echo x")).await.unwrap();
            stream.collect::<Vec<_>>().await
        });
        assert_eq!(events.len(), 2);
    }
}

#[tokio::test]
async fn a_stream_tells_as_it_goes_and_ends_with_the_end() {
    for place in places() {
        let command = Command::new("echo out; echo err >&2; exit 5");
        let stream = place.backend.stream(command).await.unwrap();
        let events: Vec<Event> = stream.map(Result::unwrap).collect().await;
        assert!(events.contains(&Event::Stdout("out\n".into())));
        assert!(events.contains(&Event::Stderr("err\n".into())));
        let Some(Event::Ended(outcome)) = events.last() else {
            panic!("{events:?}");
        };
        assert_eq!(outcome.status, CommandStatus::Exited(5));
        assert_eq!(events.len(), 3);
    }
}

#[tokio::test]
async fn a_slow_reader_slows_the_command_and_misses_nothing() {
    for place in places() {
        let command = Command::new("head -c 5000000 /dev/zero; echo done >&2");
        let mut stream = place.backend.stream(command).await.unwrap();
        let mut total = 0;
        let mut ended = false;
        // The command cannot have finished, because its output was not read.
        let first = stream.next().await.unwrap().unwrap();
        assert!(matches!(first, Event::Stdout(_)));
        tokio::time::sleep(KILL_GRACE_AND_MORE).await;
        let mut event = Some(first);
        while let Some(now) = event {
            match now {
                Event::Stdout(piece) => total += piece.len(),
                Event::Ended(outcome) => ended = outcome.status.success(),
                _ => {}
            }
            event = stream.next().await.map(Result::unwrap);
        }
        assert_eq!((total, ended), (5_000_000, true));
    }
}

const KILL_GRACE_AND_MORE: Duration = Duration::from_millis(600);

#[tokio::test]
async fn a_missing_shell_is_named() {
    for supervisor in [supervised(), Commands::new().supervisor(Supervisor::None)] {
        let place = with(supervisor.shell("/no/such/shell"));
        let error = fails(
            Unavailable,
            place.backend.execute(Command::new("true")).await,
        );
        assert!(error.message().contains("/no/such/shell"), "{error}");
        let error = place
            .backend
            .stream(Command::new("true"))
            .await
            .err()
            .unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}

#[tokio::test]
async fn another_shell_may_be_chosen() {
    let place = with(supervised().shell("bash"));
    let outcome = place.run("echo ${BASH_VERSION:+bash}").await;
    assert_eq!(outcome.stdout.text(), "bash\n");
}

#[tokio::test]
async fn a_program_that_is_no_supervisor_is_a_configuration_error() {
    let place = with(Commands::new().supervisor(Supervisor::Program("/bin/true".into())));
    fails(Config, place.backend.execute(Command::new("true")).await);
    let directory = tempfile::tempdir().unwrap();
    let missing = Commands::new().supervisor(Supervisor::Program("/no/such".into()));
    let builder = LocalBackend::builder(directory.path()).enable_execute(true);
    fails(Config, builder.commands(missing).open());
}

#[tokio::test]
async fn commands_that_are_switched_off_are_denied() {
    let directory = tempfile::tempdir().unwrap();
    let backend = LocalBackend::builder(directory.path()).open().unwrap();
    fails(
        PermissionDenied,
        backend.execute(Command::new("true")).await,
    );
    assert!(!backend.is_alive().await.unwrap());
}

#[tokio::test]
async fn starts_stops_and_starts_again() {
    for place in places() {
        let backend = &place.backend;
        assert!(backend.id().starts_with("local-"));
        assert_eq!(backend.id(), backend.clone().id());
        assert!(!backend.is_alive().await.unwrap());
        backend.start().await.unwrap();
        assert!(backend.is_alive().await.unwrap());
        backend.stop(StopMode::Keep).await.unwrap();
        backend.stop(StopMode::Keep).await.unwrap();
        assert!(!backend.is_alive().await.unwrap());
        assert!(place.run("true").await.status.success());
        assert!(backend.is_alive().await.unwrap());
    }
}

#[tokio::test]
async fn activity_is_now_while_a_command_runs() {
    for place in places() {
        let fifo = fifo(place.directory.path());
        let line = format!("echo > {}; sleep 0.1", fifo.display());
        let backend = place.backend.clone();
        let running = tokio::spawn(async move { backend.execute(Command::new(line)).await });
        ready(fifo).await;
        let before = std::time::SystemTime::now();
        assert!(place.backend.last_activity() >= before);
        running.await.unwrap().unwrap();
        let after = place.backend.last_activity();
        assert_eq!(after, place.backend.last_activity());
    }
}

#[test]
fn what_cannot_be_enforced_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let limits = backend_local::Limits::default().processes(10);
    let commands = Commands::new().supervisor(Supervisor::None).limits(limits);
    let builder = LocalBackend::builder(directory.path()).enable_execute(true);
    fails(Unsupported, builder.commands(commands).open());
    let broken = Commands::new().environment(Environment::empty().set("A=B", "c"));
    let builder = LocalBackend::builder(directory.path()).enable_execute(true);
    fails(Config, builder.commands(broken).open());
}
