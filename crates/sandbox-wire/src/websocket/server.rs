//! The agent's end: takes a connection from a client that knows the token.

use std::time::Duration;

use backend_core::{Error, ErrorKind, Result};
use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, Join, Take, join};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::machine::TryParse as _;
use tokio_tungstenite::tungstenite::handshake::server::{Request, create_response, write_response};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::config;
use super::connection::Connection;
use crate::token::Token;

/// The time in which a client must ask for a websocket and send the token.
pub(super) const TOKEN_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a request. Intermediaries add headers of their own.
const REQUEST_BYTES: u64 = 16 * 1024;
/// Bytes after the request in which the token must be.
const TOKEN_BYTES: u64 = 4 * 1024;

/// Bytes of a request that are read at once, at first.
const READ_STEP: usize = 1024;

/// The end of a request.
const END: &[u8] = b"\r\n\r\n";

/// The answer to a request that is not one for a websocket. It shows that an agent listens.
const UPGRADE_REQUIRED: &[u8] = b"HTTP/1.1 426 Upgrade Required\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n";

/// A connection that [`accept`] returns.
pub type Accepted<R, W> = Connection<Join<Take<R>, W>>;

/// Answers a client's request for a websocket on a new connection, and reads the token.
///
/// Any path and any further headers are taken. Requests that are not for a websocket are
/// answered with status 426. A client with a wrong token is told so, with the code 1008. A
/// client has ten seconds, 16 KiB for its request and 4 KiB for the message with the token.
///
/// # Errors
///
/// `Auth` if the token is wrong; `Unavailable` if the client sends anything else, is too slow
/// or goes away.
pub async fn accept<R, W>(reader: R, writer: W, token: &Token) -> Result<Accepted<R, W>>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let opened = timeout(TOKEN_TIMEOUT, open(reader, writer, token)).await;
    opened.unwrap_or_else(|_| Err(Error::unavailable("the client sent no token in time")))
}

async fn open<R, W>(reader: R, mut writer: W, token: &Token) -> Result<Accepted<R, W>>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut reader = reader.take(REQUEST_BYTES);
    let (request, rest) = read_request(&mut reader).await?;
    let answer = answer(&request);
    let sent = async {
        writer
            .write_all(answer.as_deref().unwrap_or(UPGRADE_REQUIRED))
            .await?;
        writer.flush().await
    };
    sent.await.map_err(gone)?;
    if answer.is_none() {
        return Err(Error::unavailable("the client asked for no websocket"));
    }
    let received = u64::try_from(rest.len()).unwrap_or(u64::MAX);
    reader.set_limit(TOKEN_BYTES.saturating_sub(received));
    let stream = join(reader, writer);
    let config = Some(config());
    let mut socket = WebSocketStream::from_partially_read(stream, rest, Role::Server, config).await;
    check_token(&mut socket, token).await?;
    socket.get_mut().reader_mut().set_limit(u64::MAX);
    Ok(Connection::of_server(socket))
}

/// Reads a request, and bytes that came with it.
async fn read_request(reader: &mut (impl AsyncRead + Unpin)) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut request = Vec::with_capacity(READ_STEP);
    loop {
        // The end may be split between two reads.
        let seen = request.len().saturating_sub(END.len() - 1);
        if reader.read_buf(&mut request).await.map_err(gone)? == 0 {
            return Err(Error::unavailable(
                "the client sent no request, or one that is too long",
            ));
        }
        let new = request.get(seen..).unwrap_or_default();
        if let Some(at) = new.windows(END.len()).position(|bytes| bytes == END) {
            let rest = request.split_off(seen + at + END.len());
            return Ok((request, rest));
        }
    }
}

/// Returns the answer to a request for a websocket, and `None` for any other.
fn answer(request: &[u8]) -> Option<Vec<u8>> {
    let (_, request) = Request::try_parse(request).ok()??;
    let response = create_response(&request).ok()?;
    let mut answer = Vec::new();
    write_response(&mut answer, &response).ok()?;
    Some(answer)
}

/// Reads the first message, which must be the token.
async fn check_token<S>(socket: &mut WebSocketStream<S>, token: &Token) -> Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let first = loop {
        match socket.next().await {
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Binary(bytes))) => break bytes,
            Some(Err(error)) => {
                let text = "the client went away or broke the protocol before its token";
                return Err(Error::unavailable(text).with_source(error));
            }
            _ => return Err(Error::unavailable("the client sent no token")),
        }
    };
    if token.is(&first) {
        return Ok(());
    }
    let refusal = CloseFrame {
        code: CloseCode::Policy,
        reason: Utf8Bytes::from_static("the token is wrong"),
    };
    // The client may not wait for it.
    let _ = socket.send(Message::Close(Some(refusal))).await;
    Err(Error::new(ErrorKind::Auth, "the client sent a wrong token"))
}

fn gone(error: std::io::Error) -> Error {
    Error::unavailable("the client went away").with_source(error)
}
