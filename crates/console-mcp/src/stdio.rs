//! [`serve_stdio`] and [`serve_pipes`]: serve one client over a pair of streams.

use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connect::Connect;
use crate::connection::{ClientEnd, Connection, CountedTransport};
use crate::json_lines::JsonLines;
use crate::server::Server;
use crate::settings::{ServeError, Settings};

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Serves one client on standard input and output until it disconnects. Nothing else
/// may be written to standard output meanwhile.
///
/// # Errors
///
/// [`ServeError`] if the transport fails, or if there are no tools.
pub async fn serve_stdio(connect: Arc<dyn Connect>, settings: Settings) -> Result<(), ServeError> {
    let (input, output) = streams();
    Box::pin(serve_pipes(connect, settings, input, output)).await
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
) -> Result<(), ServeError> {
    let connection = Arc::new(Connection::default());
    let lines = JsonLines::new(input, output, settings.frame_bytes);
    let transport = CountedTransport::new(
        lines,
        Arc::clone(&connection),
        ClientEnd::Pipe(settings.linger),
    );
    let served = Server::new(connect, Arc::new(settings))
        .serve(transport)
        .await;
    let ended = match served {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| {
            ServeError::Transport(format!("the server failed: {error}; report it"))
        }),
        // A client may disconnect before it initializes.
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

/// Opens standard input and output, without a blocking thread where possible. Most
/// clients start a server on pipes, which rmcp handles. Node starts it on sockets.
fn streams() -> (Input, Output) {
    #[cfg(unix)]
    if let (Some(input), Some(output)) = (socket(std::io::stdin()), socket(std::io::stdout())) {
        return (Box::new(input), Box::new(output));
    }
    let (input, output) = rmcp::transport::stdio_pipes();
    (Box::new(input), Box::new(output))
}

/// Returns a standard stream as a socket, if it is one.
#[cfg(unix)]
fn socket(stream: impl std::os::fd::AsFd) -> Option<tokio::net::UnixStream> {
    use std::os::unix::fs::FileTypeExt as _;

    let owned = stream.as_fd().try_clone_to_owned().ok()?;
    let file = std::fs::File::from(owned);
    if !file.metadata().ok()?.file_type().is_socket() {
        return None;
    }
    let socket = std::os::unix::net::UnixStream::from(std::os::fd::OwnedFd::from(file));
    // Fails unless it is a Unix socket, before anything is changed.
    socket.local_addr().ok()?;
    socket.set_nonblocking(true).ok()?;
    tokio::net::UnixStream::from_std(socket).ok()
}
