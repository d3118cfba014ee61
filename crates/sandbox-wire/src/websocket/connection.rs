//! [`Connection`]: the bytes in the messages of a websocket, as one stream.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message, Utf8Bytes};

use super::MESSAGE_BYTES;

/// The interval of a client's pings.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(15);

/// A websocket as a stream of bytes.
///
/// Shutting it down tells the other side that nothing more is sent, which then ends the
/// connection. Dropping it does so too if there is room for it. The other side's goodbye is
/// the end of the stream if it went as planned, and else an error with the reason.
pub struct Connection<S: AsyncRead + AsyncWrite + Unpin> {
    socket: WebSocketStream<S>,
    /// The rest of the last message.
    unread: Bytes,
    /// Whether no more messages come.
    ended: bool,
    /// A client's pings.
    pings: Option<Interval>,
    /// The reason that is given when this is dropped.
    goodbye: CloseCode,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Takes over a client's socket.
    pub(super) fn of_client(socket: WebSocketStream<S>) -> Self {
        let mut pings = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self::new(socket, Some(pings), CloseCode::Normal)
    }

    /// Takes over a server's socket. Its end is never what the client wants.
    pub(super) fn of_server(socket: WebSocketStream<S>) -> Self {
        Self::new(socket, None, CloseCode::Away)
    }

    fn new(socket: WebSocketStream<S>, pings: Option<Interval>, goodbye: CloseCode) -> Self {
        Self {
            socket,
            unread: Bytes::new(),
            ended: false,
            pings,
            goodbye,
        }
    }

    /// Waits for bytes without taking them. Returns whether there are any, and not the end.
    pub(super) async fn has_bytes(&mut self) -> io::Result<bool> {
        std::future::poll_fn(|cx| self.poll_message(cx)).await?;
        Ok(!self.unread.is_empty())
    }

    /// Reads messages until there are bytes, or no more can come.
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.send_pings(cx);
        while self.unread.is_empty() && !self.ended {
            let error = match ready!(self.socket.poll_next_unpin(cx)) {
                Some(Ok(Message::Binary(bytes))) => {
                    self.unread = bytes;
                    continue;
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Text(_))) => Some(text_received()),
                Some(Ok(Message::Close(frame))) => {
                    // Sends the answer to it, if there is room.
                    let _ = self.socket.poll_next_unpin(cx);
                    frame.and_then(unplanned)
                }
                Some(Err(error)) => Some(io_error(error)),
                None => None,
            };
            self.ended = true;
            if let Some(error) = error {
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(()))
    }

    fn send_pings(&mut self, cx: &mut Context<'_>) {
        let Some(pings) = &mut self.pings else { return };
        while pings.poll_tick(cx).is_ready() {
            // This leaves the wakers of a task that writes alone. A ping that does not fit is
            // left out: other bytes are on their way.
            let _ = self.socket.start_send_unpin(Message::Ping(Bytes::new()));
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_message(cx))?;
        let length = buffer.remaining().min(self.unread.len());
        buffer.put_slice(&self.unread.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        ready!(self.socket.poll_ready_unpin(cx)).map_err(io_error)?;
        let length = bytes.len().min(MESSAGE_BYTES);
        let message = Message::Binary(Bytes::copy_from_slice(&bytes[..length]));
        self.socket.start_send_unpin(message).map_err(io_error)?;
        Poll::Ready(Ok(length))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_flush_unpin(cx).map_err(io_error)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_close_unpin(cx).map_err(io_error)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Drop for Connection<S> {
    fn drop(&mut self) {
        let goodbye = CloseFrame {
            code: self.goodbye,
            reason: Utf8Bytes::default(),
        };
        let _ = self.socket.start_send_unpin(Message::Close(Some(goodbye)));
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> fmt::Debug for Connection<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("unread", &self.unread.len())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

fn text_received() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the other side sent text where bytes are sent",
    )
}

/// Returns the error for a goodbye, unless it went as planned.
fn unplanned(frame: CloseFrame) -> Option<io::Error> {
    let (kind, text) = match frame.code {
        CloseCode::Normal => return None,
        CloseCode::Away => (
            io::ErrorKind::ConnectionAborted,
            "the agent ended, or serves another connection".to_owned(),
        ),
        CloseCode::Policy => (
            io::ErrorKind::PermissionDenied,
            frame.reason.as_str().to_owned(),
        ),
        code => (
            io::ErrorKind::ConnectionAborted,
            format!(
                "it was closed with code {}: {}",
                u16::from(code),
                frame.reason
            ),
        ),
    };
    Some(io::Error::new(kind, text))
}

/// Returns the error of a socket, with its cause as its text.
fn io_error(error: SocketError) -> io::Error {
    let (kind, text) = match error {
        SocketError::Io(error) => return error,
        SocketError::ConnectionClosed
        | SocketError::AlreadyClosed
        | SocketError::Protocol(ProtocolError::SendAfterClosing) => {
            (io::ErrorKind::BrokenPipe, "it was closed".to_owned())
        }
        SocketError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => (
            io::ErrorKind::ConnectionReset,
            "it ended without a goodbye".to_owned(),
        ),
        SocketError::WriteBufferFull(_) => (
            io::ErrorKind::ConnectionAborted,
            "the other side sends pings and reads nothing".to_owned(),
        ),
        other => (io::ErrorKind::InvalidData, other.to_string()),
    };
    io::Error::new(kind, text)
}
