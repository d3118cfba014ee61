//! A container that sends false responses: its agent is replaced.

use backend_core::{BackendExt as _, ErrorKind};
use backend_docker::Delivery;

use super::support::{Box, resident};

/// Replaces the agent, which is kept as `$0.real`, with a script, and makes calls until
/// one reports an error.
async fn lie(script: &str) {
    let b = Box::with(|builder| builder.user("0:0").delivery(Delivery::Upload));
    b.works().await;
    let running = b.agent();
    let agent = b.exec_with("tr '\\0' '\\n' < /proc/$1/cmdline | head -n 1", &running);
    b.exec_with("mv $1 $1.real", &agent);
    let place = format!("printf '%s\\n' '#!/bin/sh' \"$1\" > {agent}; chmod 755 {agent}");
    b.exec_with(&place, script);
    b.exec_with("kill -9 $1", &running);
    // This call notices that the real agent is gone.
    let _ = b.sandbox.read_to_string("a.txt").await;
    let before = resident();
    let told = believed_for_a_while(&b).await;
    assert!(told.len() < 2_000, "{told}");
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{} MiB more", grown >> 20);
    b.exec_with("mv $1.real $1", &agent);
    b.works().await;
    b.end().await;
}

/// The false response may come late. Until then, calls see the true state.
async fn believed_for_a_while(b: &Box) -> String {
    for _ in 0..100 {
        let error = b.sandbox.read_to_string("a.txt").await.unwrap_err();
        match error.kind() {
            ErrorKind::NotFound => {}
            ErrorKind::Unavailable => return error.chain().to_string(),
            kind => panic!("{kind:?}: {}", error.chain()),
        }
    }
    panic!("nothing was noticed");
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_agent_that_is_another_program() {
    lie("echo 'HTTP/1.1 200 OK'; exit 0").await;
    lie("exit 0").await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_agent_that_says_what_it_hears() {
    lie("exec cat").await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_agent_that_never_stops() {
    lie("exec yes y").await;
    lie("exec cat /dev/zero").await;
    lie("exec cat /dev/urandom").await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_agent_whose_answers_are_changed_later() {
    lie(r#""$0.real" "$@" | { dd bs=1 count=400 2>/dev/null; tr '\000' '\001'; }"#).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_agent_whose_answers_lose_bytes() {
    lie(r#""$0.real" "$@" | tr -d '\000'"#).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_agent_whose_answers_are_cut_off() {
    lie(r#""$0.real" "$@" | head -c 300"#).await;
}
