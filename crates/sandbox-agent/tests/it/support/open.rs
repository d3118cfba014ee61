//! A terminal, a watch and a connection, all open at once.

use backend_core::ops::{Command, TerminalSize, WatchQuery};
use backend_core::{Backend as _, Connection, Result, Sandbox as _, VPath, WatchStream};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use sandbox_wire::AgentSandbox;
use tokio::net::{TcpListener, TcpStream};

use crate::support::machine::HostMachine;

/// Everything that can stay open.
pub(crate) struct Open {
    pub(crate) terminal: Connection,
    pub(crate) changes: WatchStream,
    pub(crate) connection: Connection,
    /// The server's end of the connection.
    pub(crate) client: Option<TcpStream>,
}

impl Open {
    /// Opens everything. A process with `token` runs in the terminal.
    pub(crate) async fn everything(sandbox: &AgentSandbox<HostMachine>, token: &str) -> Self {
        let line = format!("sleep {token} & echo up; exec cat");
        let command = Command::new(line).terminal(TerminalSize::default());
        let shell = sandbox.shell_start(command).await.unwrap();
        let mut terminal = sandbox.shell_attach(&shell.id).await.unwrap();
        let mut printed = Vec::new();
        while !printed.ends_with(b"up\r\n") {
            printed.extend_from_slice(&terminal.incoming.next().await.unwrap().unwrap());
        }
        let changes = sandbox.watch(WatchQuery::new(VPath::root())).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (connection, client) = tokio::join!(sandbox.connect(port), listener.accept());
        Self {
            terminal,
            changes,
            connection: connection.unwrap(),
            client: Some(client.unwrap().0),
        }
    }
}

/// Reads to the end, which must be an error, and returns it.
pub(crate) async fn end<T>(mut incoming: BoxStream<'static, Result<T>>) -> Result<T> {
    loop {
        match incoming.next().await.unwrap() {
            Ok(_) => {}
            error => {
                assert!(incoming.next().await.is_none());
                return error;
            }
        }
    }
}
