//! Connections to the ports and shells of a session: it is in use while one is open.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use backend_core::{
    Backend, Command, Connection, Error, ErrorKind, Outgoing, Result, Sandbox, ShellId, delegate,
};
use backend_state::StateBackend;
use backend_testkit::fails;
use backend_testkit::fake::{FakeSandbox, PausedClock};
use bytes::Bytes;
use futures_util::StreamExt as _;
use sessions::{Clock, OpenRequest, Session, SessionManager};

use crate::support::{Fake, MINUTE};

/// A sandbox whose connections say nothing and never end.
#[derive(Debug)]
struct Connected(Fake);

impl Backend for Connected {
    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    delegate! {
        |self| self.0 => info, working_dir, resolve, stat, ls, read, read_text, write, edit,
        create_dir, delete, rename, copy, glob, grep, watch
    }
}

#[async_trait]
impl Sandbox for Connected {
    delegate! {
        |self| self.0 => id, last_activity, command_names, start, stop, is_alive, trace, execute,
        stream, shell_start, shell_read, shell_write, shell_kill, shell_list
    }

    async fn connect(&self, port: u16) -> Result<Connection> {
        self.0.start().await?;
        match port {
            1 => Err(Error::new(ErrorKind::NotFound, "nothing listens")),
            _ => Ok(silent()),
        }
    }

    async fn shell_attach(&self, id: &ShellId) -> Result<Connection> {
        // Fails if there is no such shell.
        self.0.shell_write(id, None).await?;
        Ok(silent())
    }
}

fn silent() -> Connection {
    Connection::new(futures_util::stream::pending().boxed(), Dropped)
}

/// Takes bytes and does nothing with them.
struct Dropped;

#[async_trait]
impl Outgoing for Dropped {
    async fn send(&mut self, _: Bytes) -> Result<()> {
        Ok(())
    }

    async fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

fn manager(clock: &PausedClock) -> SessionManager {
    let (made, now) = (clock.clone(), clock.clone());
    let factory = move |request: OpenRequest| {
        let clock = made.clone();
        async move {
            let fake = FakeSandbox::new(request.id.as_str(), StateBackend::new(), clock);
            Ok::<Arc<dyn Sandbox>, Error>(Arc::new(Connected(fake)))
        }
    };
    let builder = SessionManager::builder().factory(factory);
    builder
        .clock(Clock::new(move || now.now()))
        .build()
        .unwrap()
}

/// Opens a connection to a port, or to a shell that has ended: one that runs is in use
/// anyway.
async fn open(alice: &Session, is_port: bool) -> Connection {
    if is_port {
        return alice.connect(80).await.unwrap();
    }
    let shell = alice.shell_start(Command::new("server")).await.unwrap();
    alice.shell_kill(&shell.id).await.unwrap();
    alice.shell_attach(&shell.id).await.unwrap()
}

#[tokio::test]
async fn an_open_connection_keeps_a_session() {
    for is_port in [true, false] {
        let clock = PausedClock::new();
        let manager = manager(&clock);
        let alice = manager.get_or_create("alice").await.unwrap();
        let connection = open(&alice, is_port).await;
        assert_eq!(manager.snapshot().await.sessions[0].calls, 1);
        clock.advance(5 * 60 * MINUTE);
        let ended = manager.cleanup_idle(Some(Duration::ZERO)).await.unwrap();
        assert_eq!(ended, 0, "a connection is open");
        // Either direction keeps it.
        let Connection { incoming, outgoing } = connection;
        drop(incoming);
        assert_eq!(manager.cleanup_idle(None).await.unwrap(), 0);
        drop(outgoing);
        assert_eq!(manager.snapshot().await.sessions[0].calls, 0);
        // It was in use until now.
        assert_eq!(manager.cleanup_idle(Some(MINUTE)).await.unwrap(), 0);
        clock.advance(2 * 60 * MINUTE);
        assert_eq!(manager.cleanup_idle(None).await.unwrap(), 1);
        assert!(manager.is_empty());
    }
}

#[tokio::test]
async fn a_connection_that_fails_keeps_nothing() {
    let clock = PausedClock::new();
    let manager = manager(&clock);
    let alice = manager.get_or_create("alice").await.unwrap();
    fails(ErrorKind::NotFound, alice.connect(1).await);
    let missing = alice.shell_attach(&ShellId::new("bg_9")).await;
    fails(ErrorKind::NotFound, missing);
    assert_eq!(manager.snapshot().await.sessions[0].calls, 0);
}
