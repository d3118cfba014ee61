//! Sandboxes with an agent: the ways to it, and the number of requests.

use backend_core::ops::Command;
use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_daytona::{Connection, DaytonaSandbox, Mode};
use daytona_testkit::Fault;
use futures::future::join_all;

use crate::support::{Place, outcome, purge, run, within};

const PROXY: &str = "* /toolbox/{id}/proxy/*";
const UPLOAD: &str = "POST /toolbox/{id}/files/bulk-upload";

fn refusal(status: u16) -> Fault {
    let body = String::new();
    Fault::Answer { status, body }
}

/// An upgrade is refused for good by these answers of things in between.
const REFUSALS: [u16; 4] = [404, 403, 426, 200];

#[tokio::test]
#[ignore = "needs the agent; run by cargo xtask test-all"]
async fn after_the_connection_no_operation_is_a_request() {
    let place = Place::new().await;
    let sandbox = place.with_agent().build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    assert_eq!(sandbox.connection(), Some(Connection::Proxy));
    let before = place.standin.requests();
    sandbox.write_file("b.txt", "two\n").await.unwrap();
    sandbox.replace_text("b.txt", "two", "three").await.unwrap();
    sandbox.list_dir(".").await.unwrap();
    sandbox.search_text("three").await.unwrap();
    run(&sandbox, "cat a.txt").await;
    let reads = (0..64).map(|_| sandbox.read_to_string("a.txt"));
    for read in join_all(reads).await {
        assert_eq!(read.unwrap(), "one\n");
    }
    let used = place.standin.requests().since(&before);
    assert_eq!(used.total(), 0, "{used}");
    // The stream is no activity of the sandbox: the service is told of that apart.
    let streams = place.standin.recorded(PROXY);
    assert!(!streams.is_empty());
    for stream in streams {
        let unnoticed = "x-daytona-skip-last-activity-update";
        assert!(stream.headers.contains_key(unnoticed), "{stream:?}");
    }
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
#[ignore = "needs the agent; run by cargo xtask test-all"]
async fn the_agent_is_sent_once() {
    let place = Place::new().await;
    let sandbox = place.with_agent().name("box").build().unwrap();
    run(&sandbox, "true").await;
    assert_eq!(place.standin.requests().of(UPLOAD), 1);
    let before = place.standin.requests();
    let attach = place.attach("box").agent(crate::support::agent());
    let other = attach.mode(Mode::Agent).open().await.unwrap();
    run(&other, "true").await;
    let used = place.standin.requests().since(&before);
    assert_eq!(used.of(UPLOAD), 0, "{used}");
    assert!(used.total() <= 5, "{used}");
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
#[ignore = "needs the agent; run by cargo xtask test-all"]
async fn a_preview_is_the_second_way() {
    for status in REFUSALS {
        let place = Place::new().await;
        place.standin.inject(refusal(status).at(PROXY).forever());
        let sandbox = place.with_agent().build().unwrap();
        assert_eq!(run(&sandbox, "echo hello").await, "hello", "{status}");
        assert_eq!(sandbox.connection(), Some(Connection::Preview), "{status}");
        purge(&sandbox).await;
        place.standin.close().await;
    }
}

#[tokio::test]
#[ignore = "needs the agent; run by cargo xtask test-all"]
async fn sessions_are_the_last_way_and_only_where_that_is_allowed() {
    let place = Place::new().await;
    place.standin.inject(refusal(404).at(PROXY).forever());
    let preview = "GET /api/sandbox/{id}/ports/{port}/preview-url";
    place.standin.inject(refusal(404).at(preview).forever());
    let sandbox = place.with_agent().mode(Mode::Auto).build().unwrap();
    assert_eq!(run(&sandbox, "echo hello").await, "hello");
    assert_eq!(sandbox.connection(), Some(Connection::Sessions));
    let strict = place.with_agent().build().unwrap();
    let error = outcome(&strict, "true").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("the portable mode"), "{error}");
    purge(&sandbox).await;
    purge(&strict).await;
    place.standin.close().await;
}

#[tokio::test]
#[ignore = "needs the agent; run by cargo xtask test-all"]
async fn failures_that_pass_are_waited_for() {
    for fault in [
        Fault::BadGateway,
        Fault::ContainerIp,
        Fault::InvalidToken,
        Fault::Dropped,
    ] {
        let place = Place::new().await;
        place.standin.inject(fault.clone().at(PROXY).times(2));
        let sandbox = place.with_agent().build().unwrap();
        assert_eq!(run(&sandbox, "echo hello").await, "hello", "{fault:?}");
        assert_eq!(sandbox.connection(), Some(Connection::Proxy), "{fault:?}");
        purge(&sandbox).await;
        place.standin.close().await;
    }
}

/// Calls until one succeeds. Those before it may fail, because the stream was lost.
async fn works_again(sandbox: &DaytonaSandbox) -> String {
    for _ in 0..5 {
        match within("a read", sandbox.read_to_string("kept.txt")).await {
            Ok(text) => return text,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    }
    panic!("it does not work again")
}

#[tokio::test]
#[ignore = "needs the agent; run by cargo xtask test-all"]
async fn a_lost_agent_is_started_again() {
    let place = Place::new().await;
    let sandbox = place.with_agent().name("box").build().unwrap();
    sandbox.write_file("kept.txt", "kept\n").await.unwrap();
    let command = sandbox.execute(Command::new("sleep 4712"));
    let end = async {
        // The command runs once a second one sees it.
        while !run(&sandbox, "ps ax").await.contains("sleep 4712") {}
        place.standin.end_processes("box");
    };
    let (ended, ()) = within("the end", async { tokio::join!(command, end) }).await;
    let error = ended.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(works_again(&sandbox).await, "kept\n");
    for state in ["stopped", "archived"] {
        place.standin.set_state("box", state);
        assert_eq!(works_again(&sandbox).await, "kept\n", "{state}");
    }
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
#[ignore = "needs the agent; run by cargo xtask test-all"]
async fn usage_is_that_of_the_sandbox() {
    let place = Place::new().await;
    let sandbox = place.with_agent().build().unwrap();
    match sandbox.stats().await {
        Ok(stats) => assert!(stats.memory > 0, "{stats:?}"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
    }
    purge(&sandbox).await;
    place.standin.close().await;
}
