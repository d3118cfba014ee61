//! The client's end: opens a websocket to an agent that listens.

use std::time::Duration;
use std::{fmt, io};

use backend_core::{Error, ErrorKind, Quoted, Result};
use futures::{FutureExt as _, StreamExt as _, future};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::http::Request;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error as SocketError, http};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use tokio_util::io::ReaderStream;

use super::connection::Connection;
use super::{MESSAGE_BYTES, config};
use crate::machine::{OutputChunk, Process};
use crate::token::Token;

/// The time in which a server must open a websocket, and the agent behind it must greet.
pub(super) const OPEN_TIMEOUT: Duration = Duration::from_secs(20);

/// The status of an answer that opens a websocket.
const SWITCHING_PROTOCOLS: u16 = 101;

/// The client's part of a websocket's handshake, for requests that a client library sends.
///
/// The library must speak HTTP/1.1 and hand over the upgraded connection, which is for
/// [`attach`].
#[derive(Debug, Clone)]
pub struct Handshake {
    key: String,
}

impl Handshake {
    /// Begins a handshake with a new key. It is for one request.
    pub fn new() -> Self {
        Self {
            key: generate_key(),
        }
    }

    /// Returns the headers of the request, a `GET` without a body.
    pub fn headers(&self) -> [(&'static str, &str); 4] {
        [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", &self.key),
        ]
    }

    /// Checks the answer: its status, and its header `Sec-WebSocket-Accept`.
    ///
    /// # Errors
    ///
    /// `Auth` for the statuses 401 and 403, `RateLimited` for 429, and `Unavailable` for
    /// every other one but 101, and if the header is not the answer to this request.
    pub fn check(&self, status: u16, accept: Option<&str>) -> Result<()> {
        if status != SWITCHING_PROTOCOLS {
            return Err(refused(status));
        }
        if accept.map(str::trim) != Some(derive_accept_key(self.key.as_bytes()).as_str()) {
            return Err(Error::unavailable(
                "the server switched protocols but did not answer the handshake of a websocket; see what answers there",
            ));
        }
        Ok(())
    }
}

impl Default for Handshake {
    fn default() -> Self {
        Self::new()
    }
}

/// A request for a websocket, for [`connect`]. `Debug` does not show the values of headers.
#[derive(Clone)]
pub struct UpgradeRequest {
    host: String,
    path: String,
    headers: Vec<(String, String)>,
}

impl UpgradeRequest {
    /// Creates a request without further headers. `host` is the value of the header `Host`;
    /// `path` begins with `/` and may have a query.
    pub fn new(host: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            path: path.into(),
            headers: Vec::new(),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn to_http(&self) -> Result<Request<()>> {
        let invalid = |error: http::Error| {
            Error::invalid_input("the host, the path or a header of the request is malformed")
                .with_source(error)
        };
        if !self.path.starts_with('/') {
            return Err(Error::invalid_input(
                "the path of the request must begin with /",
            ));
        }
        let handshake = Handshake::new();
        let mut request = Request::get(format!("ws://{}{}", self.host, self.path));
        request = request.header("Host", &self.host);
        for (name, value) in handshake.headers() {
            request = request.header(name, value);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(()).map_err(invalid)
    }
}

impl fmt::Debug for UpgradeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("UpgradeRequest")
            .field("host", &self.host)
            .field("path", &self.path)
            .field("headers", &names)
            .finish()
    }
}

/// Upgrades a connection to a websocket, and becomes the client of the agent behind it.
/// Needs a tokio runtime, as [`Machine`](crate::Machine)s have it.
///
/// # Errors
///
/// As [`attach`] and [`Handshake::check`]; `InvalidInput` if the request is malformed.
pub async fn connect<S>(connection: S, request: &UpgradeRequest, token: &Token) -> Result<Process>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let request = request.to_http()?;
    in_time(async {
        let opened = client_async_with_config(request, connection, Some(config())).await;
        let (socket, _) = opened.map_err(|error| match error {
            SocketError::Http(answer) => refused(answer.status().as_u16()),
            other => Error::unavailable(format!(
                "the server did not open a websocket: {}; see what answers there",
                Quoted::new(&other.to_string())
            )),
        })?;
        introduce(socket, token).await
    })
    .await
}

/// Becomes the client of the agent behind a connection that was upgraded to a websocket:
/// sends the token, and waits for the first bytes of the agent. Needs a tokio runtime, as
/// [`Machine`](crate::Machine)s have it.
///
/// The process has no standard error and no exit code. When the connection is lost, its
/// output ends with an error that says why, and its input takes nothing more.
///
/// # Errors
///
/// `Auth` if the agent does not take the token; `Unavailable` with the reason if the
/// connection ends, or the agent says nothing in 20 seconds.
pub async fn attach<S>(connection: S, token: &Token) -> Result<Process>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    in_time(async {
        let socket = WebSocketStream::from_raw_socket(connection, Role::Client, Some(config()));
        introduce(socket.await, token).await
    })
    .await
}

async fn in_time(opening: impl Future<Output = Result<Process>>) -> Result<Process> {
    let late = |_| {
        let seconds = OPEN_TIMEOUT.as_secs();
        Err(Error::unavailable(format!(
            "the agent did not answer on its websocket in {seconds} s; see whether it still listens in the sandbox"
        )))
    };
    timeout(OPEN_TIMEOUT, opening).await.unwrap_or_else(late)
}

/// Sends the token, and waits for the agent.
async fn introduce<S>(socket: WebSocketStream<S>, token: &Token) -> Result<Process>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut connection = Connection::of_client(socket);
    let greeted = async {
        connection.write_all(token.as_str().as_bytes()).await?;
        connection.flush().await?;
        connection.has_bytes().await
    };
    let greeted = greeted.await;
    match greeted {
        Ok(true) => Ok(process(connection)),
        Ok(false) => Err(lost(&io::Error::other(
            "it ended before the agent said anything",
        ))),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Error::new(
            ErrorKind::Auth,
            format!(
                "the agent refused the connection: {}; start an agent with a token of its own",
                Quoted::new(&error.to_string())
            ),
        )),
        Err(error) => Err(lost(&error)),
    }
}

fn process<S>(connection: Connection<S>) -> Process
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (reader, writer) = tokio::io::split(connection);
    let output = ReaderStream::with_capacity(reader, MESSAGE_BYTES).map(|piece| match piece {
        Ok(bytes) => Ok(OutputChunk::Stdout(bytes)),
        Err(error) => Err(lost(&error)),
    });
    let unknown = "a websocket carries no exit code; see the agent's own messages";
    let exit = future::ready(Err(Error::unavailable(unknown)));
    Process::new(Some(Box::pin(writer)), output.boxed(), exit.boxed())
}

fn lost(error: &io::Error) -> Error {
    Error::unavailable(format!(
        "the connection to the agent was lost: {}; try again",
        Quoted::new(&error.to_string())
    ))
}

fn refused(status: u16) -> Error {
    let (kind, step) = match status {
        401 | 403 => (ErrorKind::Auth, "check the credentials"),
        429 => (ErrorKind::RateLimited, "try again later"),
        _ => (
            ErrorKind::Unavailable,
            "see whether the agent listens there",
        ),
    };
    let text = format!("the server answered with status {status} instead of a websocket; {step}");
    Error::new(kind, text)
}
