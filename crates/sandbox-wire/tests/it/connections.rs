//! Connections over a channel: many at once, of any bytes, and with a lost channel.

use backend_core::ops::{ShellId, StopMode};
use backend_core::{BackendExt as _, Connection, ErrorKind, Sandbox as _};
use backend_testkit::fails;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::join_all;
use proptest::prelude::*;
use sandbox_wire::AgentSandbox;

use crate::support::hanging::{Hanging, Seen};
use crate::support::pipe::{PipeMachine, piped};

/// Connections that one channel carries.
const CONNECTIONS: usize = 1_000;

async fn echoed(connection: &mut Connection, text: String) {
    let sent = Bytes::from(text);
    connection.outgoing.send(sent.clone()).await.unwrap();
    let received = connection.incoming.next().await.unwrap().unwrap();
    assert_eq!(received, sent);
}

/// Opens a connection to a port or to a shell.
async fn open(sandbox: &AgentSandbox<PipeMachine>, operation: &str) -> Connection {
    let opened = match operation {
        "connect" => sandbox.connect(80).await,
        _ => sandbox.shell_attach(&ShellId::new("bg_1")).await,
    };
    opened.unwrap()
}

#[tokio::test]
async fn a_thousand_connections_are_open_at_once() {
    let (backend, _seen) = Hanging::new();
    let sandbox = piped(backend);
    let connections = join_all((0..CONNECTIONS).map(|_| sandbox.connect(80))).await;
    let mut connections: Vec<Connection> = connections.into_iter().map(Result::unwrap).collect();
    let error = fails(ErrorKind::TooLarge, sandbox.connect(80).await);
    assert!(error.to_string().contains("close some"), "{error}");
    let all = connections.iter_mut().enumerate();
    join_all(all.map(|(number, connection)| echoed(connection, number.to_string()))).await;
    // Each half keeps its connection.
    let halves = connections.pop().map(|connection| connection.incoming);
    fails(ErrorKind::TooLarge, sandbox.connect(80).await);
    drop(halves);
    echoed(&mut sandbox.connect(80).await.unwrap(), "again".into()).await;
    assert_eq!(sandbox.machine().spawned(), 1);
}

#[tokio::test]
async fn a_dropped_connection_is_dropped_at_the_other_end() {
    let (backend, mut seen) = Hanging::new();
    let sandbox = piped(backend);
    for (operation, name) in [("connect", "connect"), ("shell", "shell_attach")] {
        let mut connection = open(&sandbox, operation).await;
        assert_eq!(seen.recv().await, Some(Seen::Began(name)));
        echoed(&mut connection, "here".into()).await;
        drop(connection);
        assert_eq!(seen.recv().await, Some(Seen::Dropped(name)));
    }
}

/// Bytes that are not read stop their own connection and nothing else.
#[tokio::test]
async fn unread_bytes_hold_up_nothing_else() {
    let (backend, _seen) = Hanging::new();
    let sandbox = piped(backend);
    let mut stuck = sandbox.connect(80).await.unwrap();
    let flood = async {
        loop {
            stuck
                .outgoing
                .send(vec![7; 64 * 1024].into())
                .await
                .unwrap();
        }
    };
    let other = async {
        let mut connection = sandbox.connect(80).await.unwrap();
        for number in 0..1_000 {
            echoed(&mut connection, format!("{number}")).await;
        }
    };
    tokio::select! { () = flood => {}, () = other => {} }
    drop(stuck);
}

#[tokio::test]
async fn a_lost_channel_is_told_to_both_directions() {
    let (backend, _seen) = Hanging::new();
    let sandbox: AgentSandbox<PipeMachine> = piped(backend);
    for operation in ["connect", "shell"] {
        let mut connection = open(&sandbox, operation).await;
        echoed(&mut connection, "here".into()).await;
        sandbox.machine().kill_agents();
        let error = fails(
            ErrorKind::Unavailable,
            connection.incoming.next().await.unwrap(),
        );
        let begin = format!("pipe: {operation}: ");
        assert!(error.to_string().starts_with(&begin), "{error}");
        assert!(connection.incoming.next().await.is_none());
        let sent = connection.outgoing.send(Bytes::from_static(b"x")).await;
        fails(ErrorKind::Unavailable, sent);
        fails(ErrorKind::Unavailable, connection.outgoing.finish().await);
        // A new one works, over a new channel.
        let mut again = open(&sandbox, operation).await;
        echoed(&mut again, "again".into()).await;
    }
    assert_eq!(sandbox.machine().spawned(), 3);
}

#[tokio::test]
async fn a_stop_ends_connections() {
    let (backend, _seen) = Hanging::new();
    let sandbox = piped(backend);
    for operation in ["connect", "shell"] {
        let mut connection = open(&sandbox, operation).await;
        sandbox.stop(StopMode::Keep).await.unwrap();
        let error = fails(
            ErrorKind::Unavailable,
            connection.incoming.next().await.unwrap(),
        );
        assert!(error.to_string().contains("was stopped"), "{error}");
    }
}

/// A backend without commands has no ports either.
#[tokio::test]
async fn without_commands_it_is_unsupported() {
    let sandbox = piped(backend_state::StateBackend::new());
    assert!(!sandbox.exists("a").await.unwrap());
    fails(ErrorKind::Unsupported, sandbox.connect(80).await);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Pieces of any size arrive as the same bytes, in order.
    #[test]
    fn bytes_arrive_as_they_were_sent(pieces in prop::collection::vec(0_usize..700_000, 0..8)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let (backend, _seen) = Hanging::new();
            let sandbox = piped(backend);
            let connection = sandbox.connect(80).await.unwrap();
            let (mut incoming, mut outgoing) = (connection.incoming, connection.outgoing);
            let mut expected = Vec::new();
            let pieces: Vec<Bytes> = pieces
                .into_iter()
                .map(|length| {
                    let piece: Vec<u8> = (0..length).map(|at| (at % 249) as u8).collect();
                    expected.extend_from_slice(&piece);
                    piece.into()
                })
                .collect();
            let send = async {
                for piece in pieces {
                    outgoing.send(piece).await.unwrap();
                }
                outgoing.finish().await.unwrap();
            };
            let receive = async {
                let mut received = Vec::new();
                while let Some(bytes) = incoming.next().await {
                    received.extend_from_slice(&bytes.unwrap());
                }
                received
            };
            let ((), received) = futures::join!(send, receive);
            assert!(received == expected);
        });
    }
}
