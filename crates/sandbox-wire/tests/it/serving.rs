//! The server's end: clients that are served, and clients that are cut off.

use std::sync::Arc;
use std::time::Duration;

use backend_core::ops::Command;
use backend_core::{BackendExt as _, ErrorKind, Result, Sandbox as _};
use backend_state::StateBackend;
use backend_testkit::fails;
use futures::FutureExt as _;
use futures::future::join_all;
use sandbox_wire::{AgentOptions, AgentSandbox, ServeOptions, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::support::hanging::{Hanging, Seen};
use crate::support::pipe::{PIPE, PipeMachine};

/// Returns the host's greeting in this version.
fn greeting() -> Vec<u8> {
    let mut greeting = b"\0agtwire\x00\x06".to_vec();
    let version = env!("CARGO_PKG_VERSION");
    greeting.push(version.len() as u8);
    greeting.extend_from_slice(version.as_bytes());
    // A heartbeat every five seconds.
    greeting.extend_from_slice(&[2, 0, 0, 0, 5, 0]);
    greeting
}

fn served(options: ServeOptions) -> (DuplexStream, JoinHandle<Result<()>>) {
    let (host, agent) = tokio::io::duplex(PIPE);
    let (reader, writer) = tokio::io::split(agent);
    let backend = Arc::new(StateBackend::new());
    (host, tokio::spawn(serve(reader, writer, backend, options)))
}

async fn error_after(said: &[u8]) -> String {
    let (mut host, served) = served(ServeOptions::default());
    host.write_all(said).await.unwrap();
    host.shutdown().await.unwrap();
    let error = fails(ErrorKind::Unavailable, served.await.unwrap());
    error.to_string()
}

#[tokio::test]
async fn a_stream_that_ends_is_the_end() {
    let (mut host, served) = served(ServeOptions::default());
    host.write_all(&greeting()).await.unwrap();
    host.shutdown().await.unwrap();
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn garbage_is_the_end_too() {
    assert!(error_after(b"ls -l\n").await.contains("it printed 'ls -l'"));
    assert!(
        error_after(b"")
            .await
            .contains("ended before it said anything")
    );
    let mut other = greeting();
    other[9] = 77;
    assert!(error_after(&other).await.contains("speaks protocol 77"));
    let mut garbage = greeting();
    garbage.extend_from_slice(&[0xff; 100]);
    assert!(
        error_after(&garbage)
            .await
            .contains("the stream to the host broke")
    );
    let mut request = greeting();
    // A data frame that opens stream 1, with a message of an unknown kind.
    request.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 5, 1, 0, 0, 0, 250]);
    let (mut host, served) = served(ServeOptions::default());
    host.write_all(&request).await.unwrap();
    let error = served.await.unwrap().unwrap_err();
    assert!(
        error.to_string().contains("the host broke the protocol"),
        "{error}"
    );
}

/// The test's clock advances when nothing else happens.
#[tokio::test(start_paused = true)]
async fn a_host_that_falls_silent_is_given_up() {
    for said in [Vec::new(), greeting()] {
        let options = ServeOptions::default().patience(Duration::from_secs(30));
        let (mut host, served) = served(options);
        host.write_all(&said).await.unwrap();
        let began = tokio::time::Instant::now();
        fails(ErrorKind::Unavailable, served.await.unwrap());
        let waited = began.elapsed();
        assert!(waited >= Duration::from_secs(30), "{waited:?}");
        assert!(waited < Duration::from_secs(40), "{waited:?}");
    }
}

/// Time in which the process is paused does not count as silence.
#[tokio::test(start_paused = true)]
async fn a_pause_is_no_silence() {
    let options = ServeOptions::default().patience(Duration::from_secs(30));
    let (mut host, mut served) = served(options);
    host.write_all(&greeting()).await.unwrap();
    let mut greeting = [0; 8];
    host.read_exact(&mut greeting).await.unwrap();
    tokio::task::yield_now().await;
    for _ in 0..3 {
        // All at once: the server's timers find that an hour has passed.
        tokio::time::advance(Duration::from_secs(3600)).await;
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert!((&mut served).now_or_never().is_none(), "the server gave up");
    }
    drop(host);
    served.await.unwrap().unwrap();
}

fn crowded(calls: usize) -> (AgentSandbox<PipeMachine>, mpsc::UnboundedReceiver<Seen>) {
    let (backend, seen) = Hanging::new();
    let backend: Arc<dyn backend_core::Backend> = Arc::new(backend);
    let behind = Arc::clone(&backend);
    let agent = move |pipe| {
        let (reader, writer) = tokio::io::split(pipe);
        let options = ServeOptions::default().calls(calls);
        let served = serve(reader, writer, Arc::clone(&behind), options);
        async { drop(served.await) }.boxed()
    };
    let machine = Arc::new(PipeMachine::with(backend, Box::new(agent)));
    (AgentSandbox::new(machine, AgentOptions::default()), seen)
}

#[tokio::test]
async fn more_calls_than_a_server_takes_are_refused() {
    let (sandbox, mut seen) = crowded(3);
    let mut hanging = join_all((0..3).map(|_| sandbox.execute(Command::new("x"))));
    for _ in 0..3 {
        tokio::select! { _ = &mut hanging => panic!("a call ended"), _ = seen.recv() => {} }
    }
    let error = fails(ErrorKind::Unavailable, sandbox.exists("a").await);
    assert!(
        error.to_string().contains("too many calls at once"),
        "{error}"
    );
    drop(hanging);
    for _ in 0..3 {
        assert_eq!(seen.recv().await, Some(Seen::Dropped("execute")));
    }
    assert_eq!(sandbox.machine().spawned(), 1);
}

/// Calls that come and go faster than they are noticed do not end the channel.
#[tokio::test]
async fn thousands_of_dropped_calls_leave_the_channel_whole() {
    let (sandbox, _seen) = crowded(1024);
    sandbox.start().await.unwrap();
    for _ in 0..100 {
        let mut calls = join_all((0..50).map(|_| sandbox.execute(Command::new("x"))));
        assert!((&mut calls).now_or_never().is_none());
        tokio::task::yield_now().await;
        drop(calls);
    }
    let mut call = sandbox.shell_list();
    assert!((&mut call).now_or_never().is_none());
    assert!(sandbox.agent().is_some(), "the channel is closed");
    assert_eq!(sandbox.machine().spawned(), 1);
}

#[tokio::test]
async fn a_backend_without_commands_says_so() {
    let store = Arc::new(StateBackend::new());
    let machine = Arc::new(PipeMachine::new(store));
    let sandbox = AgentSandbox::new(machine, AgentOptions::default());
    fails(
        ErrorKind::Unsupported,
        sandbox.execute(Command::new("true")).await,
    );
}
