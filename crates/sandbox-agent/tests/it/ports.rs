//! Ports through a real agent, with real sockets.

use backend_core::{Connection, Sandbox as _};
use futures::StreamExt as _;
use futures::future::join_all;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;

use crate::support::machine::HostMachine;

/// Connections that one channel carries.
const CONNECTIONS: usize = 1_000;

/// Serves connections with the bytes that they send, all at once.
async fn echo_all(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let (mut reader, mut writer) = stream.split();
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
        });
    }
}

/// Sends bytes and waits until they come back.
async fn exchange(connection: &mut Connection, bytes: Vec<u8>) {
    let mut received = Vec::new();
    connection
        .outgoing
        .send(bytes.clone().into())
        .await
        .unwrap();
    while received.len() < bytes.len() {
        let piece = connection.incoming.next().await.unwrap().unwrap();
        received.extend_from_slice(&piece);
    }
    assert!(received == bytes, "bytes of another connection");
}

/// A usual limit of open files is enough for the agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_connections_are_open_at_once() {
    // This process has the servers' ends.
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(echo_all(listener));
    let directory = tempfile::tempdir().unwrap();
    let machine = HostMachine::new(directory.path(), "/").open_files(1024);
    let sandbox = machine.sandbox();
    let opened = join_all((0..CONNECTIONS).map(|_| sandbox.connect(port))).await;
    let mut connections: Vec<_> = opened.into_iter().map(Result::unwrap).collect();
    for round in 0..2 {
        let all = connections.iter_mut().enumerate();
        join_all(all.map(|(number, connection)| {
            let bytes = (0..10_000).map(|at| ((number + round + at) % 251) as u8);
            exchange(connection, bytes.collect())
        }))
        .await;
    }
    assert_eq!(sandbox.machine().started().len(), 1);
}
