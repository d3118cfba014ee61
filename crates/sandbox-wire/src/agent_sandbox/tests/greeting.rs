//! Agents with no greeting, a wrong greeting, or nothing after it.

use std::sync::Arc;
use std::time::Duration;

use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{AgentOptions, AgentSandbox, answering, greeted, raw};

fn impatient() -> AgentOptions {
    let options = AgentOptions::default().heartbeat(Duration::from_millis(5));
    options.patience(Duration::from_millis(50))
}

#[tokio::test]
async fn an_agent_that_never_greets_is_given_up() {
    let sandbox = raw(impatient(), |pipe| async move {
        let _pipe = pipe;
        std::future::pending::<()>().await;
    });
    let error = sandbox.exists("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.to_string().contains("the agent said nothing"),
        "{error}"
    );
}

#[tokio::test]
async fn an_agent_that_falls_silent_is_given_up() {
    let sandbox = raw(impatient(), |pipe| async move {
        let _socket = greeted(pipe).await;
        std::future::pending::<()>().await;
    });
    let error = sandbox.exists("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("it has been silent"), "{error}");
}

/// A call may take longer than a channel may be silent.
#[tokio::test]
async fn heartbeats_keep_a_channel_alive() {
    let sandbox = answering(Vec::new());
    let sandbox = AgentSandbox::new(Arc::clone(sandbox.machine()), impatient());
    sandbox.start().await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(300), sandbox.exists("a")).await;
    assert!(waited.is_err(), "the call ended: {waited:?}");
    assert_eq!(sandbox.machine().spawned(), 1);
}

async fn first_error(said: &'static [u8]) -> String {
    let sandbox = raw(AgentOptions::default(), move |mut pipe| async move {
        pipe.write_all(said).await.unwrap();
        // Reads the host's greeting, so that the pipe does not break first.
        let _ = pipe.read_u8().await;
    });
    let error = sandbox.exists("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    error.to_string()
}

#[tokio::test]
async fn what_is_no_agent_is_quoted() {
    let failed = b"OCI runtime exec failed: exec failed: no such file\r\n";
    let error = first_error(failed).await;
    assert!(
        error.contains("'OCI runtime exec failed: exec failed: no such file'"),
        "{error}"
    );
    let error = first_error(b"Welcome!\x1b[2J\0agtwire").await;
    assert!(error.contains("it printed 'Welcome!\\u{1b}[2J"), "{error}");
    let error = first_error(b"").await;
    assert!(error.contains("ended before it said anything"), "{error}");
    let error = first_error(b"\0agt").await;
    assert!(error.contains("it printed '\\0agt'"), "{error}");
}

#[tokio::test]
async fn another_version_is_told_by_name() {
    let error = first_error(b"\0agtwire\x00\x63\x059.9.9").await;
    assert!(error.contains("'9.9.9' and speaks protocol 99"), "{error}");
    assert!(error.contains(env!("CARGO_PKG_VERSION")), "{error}");
    assert!(error.contains("agentbox agent install"), "{error}");
    let error = first_error(b"\0agtwire\x00\x01\x050.0.0").await;
    assert!(error.contains("'0.0.0' and speaks protocol 1"), "{error}");
}
