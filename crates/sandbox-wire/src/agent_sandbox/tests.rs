//! Agents that break the protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backend_core::ops::ShellId;
use backend_core::{ErrorKind, Sandbox as _, VPath};
use bytes::Bytes;
use futures::{AsyncWriteExt as _, StreamExt as _};
use tokio::io::DuplexStream;
use yamux::{Connection, Mode};

use super::{AgentOptions, AgentSandbox};
use crate::handshake::{AgentInfo, greet_host};
use crate::machine::fake::FakeMachine;
use crate::message::{More, REQUEST_BYTES, Reply, Request, receive, send};
use crate::socket::Socket;

mod greeting;
mod hostile;

type Hostile = AgentSandbox<FakeMachine>;
type Io = Socket<tokio::io::ReadHalf<DuplexStream>, tokio::io::WriteHalf<DuplexStream>>;

/// Returns a sandbox whose agent's end of the pipe is handled by `agent`.
fn raw<F>(
    options: AgentOptions,
    agent: impl Fn(DuplexStream) -> F + Send + Sync + 'static,
) -> Hostile
where
    F: Future<Output = ()> + Send + 'static,
{
    AgentSandbox::new(Arc::new(FakeMachine::piped(agent)), options)
}

async fn greeted(pipe: DuplexStream) -> Io {
    let (reader, writer) = tokio::io::split(pipe);
    let mut socket = Socket::new(reader, writer);
    let info = AgentInfo {
        pid: 1,
        uid: None,
        capabilities: Default::default(),
        working_dir: VPath::root(),
    };
    greet_host(&mut socket, &info).await.unwrap();
    socket
}

/// Returns a sandbox whose agent answers every request with these bytes.
fn answering(bytes: Vec<u8>) -> Hostile {
    let bytes = Bytes::from(bytes);
    raw(AgentOptions::default(), move |pipe| {
        let bytes = bytes.clone();
        async move {
            let socket = greeted(pipe).await;
            let mut connection = Connection::new(socket, yamux::Config::default(), Mode::Server);
            let next = |cx: &mut std::task::Context<'_>| connection.poll_next_inbound(cx);
            let mut streams = futures::stream::poll_fn(next);
            while let Some(Ok(stream)) = streams.next().await {
                tokio::spawn(answer(stream, bytes.clone()));
            }
        }
    })
}

async fn answer(mut stream: yamux::Stream, bytes: Bytes) {
    if let Ok(Request::Control) = receive(&mut stream, REQUEST_BYTES).await {
        while let Ok(More::Beat) = receive(&mut stream, 64).await {
            let _ = send(&mut stream, &Reply::Beat(false)).await;
        }
    }
    let _ = stream.write_all(&bytes).await;
    // Only the host ends this stream.
    crate::message::ended(&mut stream).await;
}

#[tokio::test]
async fn no_machine_is_started_to_end_a_shell() {
    let is_started = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&is_started);
    let sandbox = raw(AgentOptions::default(), move |_| {
        noted.store(true, Ordering::Relaxed);
        async {}
    });
    let killed = sandbox.shell_kill(&ShellId::new("shell-1")).await;
    assert_eq!(killed.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!is_started.load(Ordering::Relaxed));
}
