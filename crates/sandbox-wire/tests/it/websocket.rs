//! The conformance suite through a websocket, and the loss of one.

use std::sync::Arc;

use backend_core::ops::Command;
use backend_core::{Backend, BackendExt as _, ErrorKind, Result, Sandbox as _};
use backend_local::{Commands, LocalBackend, Supervisor};
use backend_state::StateBackend;
use backend_testkit::{ClockFixture, DirectoryFixture};
use futures::future::BoxFuture;
use sandbox_wire::websocket::{Token, UpgradeRequest, accept, connect};
use sandbox_wire::{AgentOptions, AgentSandbox, Process, ServeOptions, serve};
use tokio::io::DuplexStream;

use crate::support::pipe::{Agent, Dial, PipeMachine};

/// Returns a backend that is served over a websocket.
fn upgraded(backend: impl Backend) -> AgentSandbox<PipeMachine> {
    let options = AgentOptions::default().capabilities(backend.info().capabilities);
    let backend: Arc<dyn Backend> = Arc::new(backend);
    let token = Token::generate().unwrap();
    let machine = PipeMachine::with(Arc::clone(&backend), agent(backend, token.clone()));
    AgentSandbox::new(Arc::new(machine.dialling(dial(token))), options)
}

fn agent(backend: Arc<dyn Backend>, token: Token) -> Agent {
    Box::new(move |pipe: DuplexStream| -> BoxFuture<'static, ()> {
        let (backend, token) = (Arc::clone(&backend), token.clone());
        Box::pin(async move {
            let (reader, writer) = tokio::io::split(pipe);
            let connection = accept(reader, writer, &token).await.unwrap();
            let (reader, writer) = tokio::io::split(connection);
            drop(serve(reader, writer, backend, ServeOptions::default()).await);
        })
    })
}

fn dial(token: Token) -> Dial {
    Box::new(move |pipe| -> BoxFuture<'static, Result<Process>> {
        let token = token.clone();
        Box::pin(async move {
            let request = UpgradeRequest::new("sandbox", "/");
            connect(pipe, &request, &token).await
        })
    })
}

/// A store in memory behind a websocket.
fn upgraded_state() -> ClockFixture {
    ClockFixture::new(|clock| Arc::new(upgraded(StateBackend::builder().clock(clock).build())))
}

/// A directory behind a websocket.
fn upgraded_local() -> DirectoryFixture {
    DirectoryFixture::new(|root| {
        let builder = LocalBackend::builder(root);
        let read_only = builder.clone().read_only(true).open().unwrap();
        let commands = Commands::default().supervisor(Supervisor::None);
        let backend = builder.enable_execute(true).commands(commands).open();
        let backend = upgraded(backend.unwrap());
        (Arc::new(backend), Some(Arc::new(upgraded(read_only))))
    })
}

backend_testkit::conformance! {
    mod local;
    fixture = async || upgraded_local();
    skipped = 32;

    mod state;
    fixture = async || upgraded_state();
    skipped = 210;
}

#[tokio::test]
async fn a_lost_connection_is_told_to_calls_in_flight_and_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let commands = Commands::default().supervisor(Supervisor::None);
    let backend = LocalBackend::builder(directory.path())
        .enable_execute(true)
        .commands(commands)
        .open();
    let sandbox = upgraded(backend.unwrap());
    let begun = directory.path().join("begun");
    let running = sandbox.execute(Command::new("echo > begun; sleep 1000"));
    let lost = async {
        while !begun.exists() {
            tokio::task::yield_now().await;
        }
        sandbox.machine().kill_agents();
    };
    let (answer, ()) = tokio::join!(running, lost);
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let reason = "the agent ended, or serves another connection";
    assert!(error.to_string().contains(reason), "{error}");
    assert!(sandbox.exists("begun").await.unwrap());
    assert_eq!(sandbox.machine().spawned(), 2);
}
