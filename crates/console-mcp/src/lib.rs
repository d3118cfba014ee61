#![doc = include_str!("../README.md")]

mod ask;
mod call;
mod call_slot;
mod connection;
mod http;
mod json_lines;
mod live_output;
mod resources;
mod roots;
mod server;
mod session;
mod settings;
mod stdio;
mod structured;
mod uri;

use std::sync::Arc;

use async_trait::async_trait;
use backend_core::Result;
use console_tools::Toolset;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite};

pub use http::serve_http;
pub use settings::{HttpSettings, ServeError, Settings};

use connection::{Connection, CountedTransport};
use json_lines::JsonLines;
use server::Server;

/// Creates the tools for one connection, so that each client gets its own backend.
///
/// # Signatures
///
/// The method, as it is written under `#[async_trait]`:
///
/// ```text
/// async fn connect(&self) -> Result<Toolset>;
/// ```
#[async_trait]
pub trait Connect: std::fmt::Debug + Send + Sync + 'static {
    /// Returns the tools for a new connection.
    ///
    /// # Errors
    ///
    /// Any error that prevents it. The client is told.
    async fn connect(&self) -> Result<Toolset>;
}

/// Serves one client on standard input and output until it disconnects. Nothing else
/// may be written to standard output meanwhile.
///
/// # Errors
///
/// [`ServeError`] if the transport fails, or if there are no tools.
pub async fn serve_stdio(
    connect: Arc<dyn Connect>,
    settings: Settings,
) -> std::result::Result<(), ServeError> {
    let (input, output) = stdio::streams();
    serve_pipes(connect, settings, input, output).await
}

/// Serves one client that writes lines to `input` and reads lines from `output` until
/// it disconnects, like [`serve_stdio`] does on the standard streams. Everything the
/// client started is ended before this returns.
///
/// # Errors
///
/// [`ServeError`] if the transport fails, or if there are no tools.
pub async fn serve_pipes(
    connect: Arc<dyn Connect>,
    settings: Settings,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> std::result::Result<(), ServeError> {
    let connection = Arc::new(Connection::default());
    let lines = JsonLines::new(input, output, settings.frame_bytes);
    let transport = CountedTransport::pipe(lines, Arc::clone(&connection), settings.linger);
    let served = Server::new(connect, Arc::new(settings))
        .serve(transport)
        .await;
    let ended = match served {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| {
            ServeError::Transport(format!("the server failed: {error}; report it"))
        }),
        // A client that disconnects before it initializes is not a failure of the
        // server.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            Ok(())
        }
        Err(ServerInitializeError::InitializeFailed(error)) => {
            Err(ServeError::Connect(error.message.into_owned()))
        }
        Err(error) => Err(ServeError::Transport(error.to_string())),
    };
    connection.end().await;
    ended
}
