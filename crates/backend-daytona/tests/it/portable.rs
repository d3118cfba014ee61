//! Sandboxes without an agent: the traps of sessions, and the number of requests.

use std::time::Duration;

use backend_core::ops::{Command, CommandStatus, Output};
use backend_core::{BackendExt as _, ErrorKind, Result, Sandbox as _};
use backend_daytona::{Connection, DaytonaSandbox, Mode};
use daytona_testkit::Fault;

use crate::support::{Place, outcome, purge, run, until, within};

const LOGS: &str = "GET /toolbox/{id}/process/session/{session}/command/{command}/logs";

/// The header of requests that are no activity.
const UNNOTICED: &str = "x-daytona-skip-last-activity-update";

const DOWNLOAD: &str = "GET /toolbox/{id}/files/download";
const DELETE: &str = "DELETE /toolbox/{id}/files";

/// Runs a test by the websocket of the log, and where it is refused by asking for the log.
async fn in_both_ways(test: impl AsyncFn(&Place, DaytonaSandbox)) {
    for is_refused in [false, true] {
        let place = Place::new().await;
        if is_refused {
            let refusal = Fault::Answer {
                status: 404,
                body: String::new(),
            };
            place.standin.inject(refusal.at(LOGS));
        }
        let sandbox = place.builder().build().unwrap();
        test(&place, sandbox.clone()).await;
        assert_eq!(sandbox.connection(), Some(Connection::Sessions));
        purge(&sandbox).await;
        place.standin.close().await;
    }
}

fn length(output: &Output) -> usize {
    output.head.len() + output.tail.len() + usize::try_from(output.dropped).unwrap()
}

#[tokio::test]
async fn output_arrives_as_it_was_printed() {
    in_both_ways(async |_, sandbox| {
        let outcome = outcome(
            &sandbox,
            "printf 'a\\0b\\377'; printf 'no newline' >&2; exit 7",
        )
        .await;
        let outcome = outcome.unwrap();
        assert_eq!(outcome.status, CommandStatus::Exited(7));
        assert_eq!(&outcome.stdout.head[..], b"a\0b\xff");
        assert_eq!(outcome.stderr.text(), "no newline");
        // Longer than any buffer, with and without line ends, and with the marks of a log.
        let long = "head -c 200000 /dev/zero | tr '\\0' x; printf '\\001\\001\\001\\002\\002\\002'";
        let printed = sandbox.execute(Command::new(long)).await.unwrap();
        assert_eq!(length(&printed.stdout), 200_006);
        // The last output of a command is not lost.
        for number in 0..10 {
            assert_eq!(
                run(&sandbox, &format!("echo {number}")).await,
                number.to_string()
            );
        }
    })
    .await;
}

#[tokio::test]
async fn much_output_survives_lost_answers() {
    const LINE: &str = "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2";
    in_both_ways(async |place, sandbox| {
        for fault in [Fault::BadGateway, Fault::Truncated, Fault::Dropped] {
            place.standin.inject(fault.at(DOWNLOAD));
        }
        place.standin.inject(Fault::AnswerLost.at(DELETE));
        let printed = sandbox.execute(Command::new(LINE)).await.unwrap();
        assert_eq!(length(&printed.stdout), 1_000_000);
        assert_eq!(length(&printed.stderr), 1_000_000);
        // The files are deleted before the next program, or with the session.
        let pattern = "/tmp/.agentbox/*/[12].*";
        let deleted = async {
            while run(&sandbox, &format!("echo {pattern}")).await != pattern {
                // Several at once, so that each session gets one.
                futures::future::join_all((0..4).map(|_| run(&sandbox, "true"))).await;
            }
        };
        within("the end of all files", deleted).await;
    })
    .await;
}

#[tokio::test]
async fn much_output_without_room_for_files() {
    in_both_ways(async |_, sandbox| {
        let line = "for it in /tmp/.agentbox/*/; do mkdir $it/1.0; done; head -c 300000 /dev/zero";
        let printed = sandbox.execute(Command::new(line)).await.unwrap();
        assert_eq!(length(&printed.stdout), 300_000);
        assert_eq!(printed.stderr.text(), "");
    })
    .await;
}

#[tokio::test]
async fn output_that_is_gone_is_an_error() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    run(&sandbox, "true").await;
    for body in ["", "{\"message\": \"not found\"}"] {
        let gone = Fault::Answer {
            status: 404,
            body: body.to_owned(),
        };
        place.standin.inject(gone.at(DOWNLOAD));
        let flood = sandbox.execute(Command::new("head -c 300000 /dev/zero"));
        let error = within("an error", flood).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("is not there"), "{error}");
        assert_eq!(run(&sandbox, "echo on").await, "on");
    }
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
async fn a_program_that_may_have_run_is_not_run_again() {
    const INPUT: &str = "POST /toolbox/{id}/process/session/{session}/command/{command}/input";
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    run(&sandbox, "true").await;
    let failed = Fault::Answer {
        status: 500,
        body: "{}".to_owned(),
    };
    // Its shell still runs, and may have been told.
    place.standin.inject(failed.at(INPUT));
    let error = outcome(&sandbox, "echo twice").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(run(&sandbox, "echo on").await, "on");
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
async fn a_shell_that_does_not_start_leaves_no_session() {
    const START: &str = "POST /toolbox/{id}/process/session/{session}/exec";
    const END: &str = "DELETE /toolbox/{id}/process/session/{session}";
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    place.standin.inject(Fault::AnswerLost.at(START));
    // It may be that of the command, or the one beside it.
    let _ = outcome(&sandbox, "true").await;
    let is_ended = || place.standin.requests().of(END) > 0;
    until("the end of the session", is_ended).await;
    assert_eq!(run(&sandbox, "echo on").await, "on");
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
async fn a_command_cannot_wedge_the_session() {
    in_both_ways(async |_, sandbox| {
        for line in [
            "set -e; false",
            "exit 3",
            "exec true",
            "kill -9 $$",
            "cat",
            "read x; echo $x",
        ] {
            outcome(&sandbox, line).await.unwrap();
            assert_eq!(run(&sandbox, "echo on").await, "on", "after {line}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_timeout_keeps_the_output_and_ends_the_processes() {
    in_both_ways(async |_, sandbox| {
        let line = "echo begun; (trap '' TERM; sleep 4711) & sleep 4711";
        let command = Command::new(line).timeout(Duration::from_secs(2));
        let ended = within("a timeout", sandbox.execute(command)).await.unwrap();
        assert_eq!(ended.status, CommandStatus::TimedOut);
        assert_eq!(ended.stdout.text(), "begun\n");
        let left = run(
            &sandbox,
            "ps ax 2>/dev/null | grep -c '[s]leep 4711' || true",
        )
        .await;
        assert_eq!(left, "0");
    })
    .await;
}

#[tokio::test]
async fn files_of_any_size_and_content() {
    in_both_ways(async |_, sandbox| {
        let content: Vec<u8> = (0..600_000_u32).map(|n| (n * 7 % 251) as u8).collect();
        sandbox
            .write_file("data.bin", content.clone())
            .await
            .unwrap();
        let read = sandbox.read_bytes("data.bin").await.unwrap();
        assert!(read == content, "{} bytes", read.len());
    })
    .await;
}

/// Makes a call that may use so many requests.
async fn costs<T>(place: &Place, what: &str, limit: u64, work: impl Future<Output = Result<T>>) {
    let before = place.standin.requests();
    within(what, work).await.unwrap();
    let used = place.standin.requests().since(&before);
    println!("{what}: {used}");
    assert!(used.total() <= limit, "{what}: {used}");
}

/// Each is a round trip. Other clients of the service need as many or more.
#[tokio::test]
async fn requests_of_each_operation() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    sandbox.write_file("dir/a.txt", "one\ntwo\n").await.unwrap();
    sandbox
        .write_file("dir/.gitignore", "*.log\n")
        .await
        .unwrap();
    run(&sandbox, "true").await;
    costs(&place, "read", 1, sandbox.read_bytes("dir/a.txt")).await;
    let write = sandbox.write_file("dir/b.txt", "text\n");
    costs(&place, "write", 1, write).await;
    let edit = sandbox.replace_text("dir/a.txt", "two", "three");
    costs(&place, "edit", 2, edit).await;
    costs(&place, "ls", 1, sandbox.list_dir("dir")).await;
    costs(&place, "glob", 1, sandbox.find_files("*.txt")).await;
    costs(&place, "grep", 1, sandbox.search_text("three")).await;
    costs(
        &place,
        "execute",
        1,
        sandbox.execute(Command::new("cat dir/a.txt")),
    )
    .await;
    let directory = run(&sandbox, "cd dir && pwd").await;
    let empty = tar::Builder::new(Vec::new()).into_inner().unwrap();
    let put = sandbox.put_tar(&directory, empty.into());
    costs(&place, "put_tar", 2, put).await;
    let get = sandbox.get_tar(&directory, 1 << 20);
    costs(&place, "get_tar", 3, get).await;
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
async fn no_session_stays_in_a_sandbox_that_was_attached_to() {
    const OPENED: &str = "POST /toolbox/{id}/process/session";
    const ENDED: &str = "DELETE /toolbox/{id}/process/session/{session}";
    let place = Place::new().await;
    let owner = place.builder().build().unwrap();
    run(&owner, "true").await;
    let before = place.standin.requests();
    let guest = place.attach(owner.name()).open().await.unwrap();
    guest.write_file("a.txt", "text\n").await.unwrap();
    assert_eq!(run(&guest, "cat a.txt").await, "text");
    guest.leave().await.unwrap();
    let used = place.standin.requests().since(&before);
    assert!(used.of(OPENED) > 0, "{used}");
    assert_eq!(used.of(OPENED), used.of(ENDED), "{used}");
    // It can be used again, and dropping it is enough.
    assert_eq!(run(&guest, "cat a.txt").await, "text");
    drop(guest);
    until("the end of all sessions", || {
        let used = place.standin.requests().since(&before);
        used.of(OPENED) <= used.of(ENDED)
    })
    .await;
    assert_eq!(run(&owner, "cat a.txt").await, "text");
    purge(&owner).await;
    place.standin.close().await;
}

#[tokio::test]
async fn without_an_agent_there_is_one_choice() {
    let place = Place::new().await;
    let sandbox = place.builder().mode(Mode::Auto).build().unwrap();
    assert_eq!(run(&sandbox, "echo hello").await, "hello");
    assert_eq!(sandbox.connection(), Some(Connection::Sessions));
    let streams = place.standin.recorded(LOGS);
    assert!(!streams.is_empty());
    for stream in streams {
        assert!(stream.headers.contains_key(UNNOTICED), "{stream:?}");
    }
    purge(&sandbox).await;
    place.standin.close().await;
}
