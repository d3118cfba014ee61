//! A stream to an agent that listens on a port, as `sandbox-agent --listen` does.
//!
//! For sandboxes that offer a port and no standard input. The bytes of the channel are
//! carried in binary messages of a websocket (RFC 6455), which intermediaries pass on. Every
//! program that reaches the port can connect, so the first message is a [`Token`]: the agent
//! takes nothing else before it. Then the agent speaks first.
//!
//! - The client calls [`connect`], or [`attach`] if it has upgraded the connection itself
//!   with the headers of a [`Handshake`]. Both return the [`Process`](crate::Process) for
//!   [`Machine::spawn`](crate::Machine::spawn) to return.
//! - The agent calls [`accept`], and [`serve`](crate::serve) with the halves of the
//!   [`Connection`].
//!
//! Messages have at most [`MESSAGE_BYTES`] bytes; their boundaries mean nothing. The client
//! sends pings, so that intermediaries keep a silent connection open. Silence is judged by
//! the channel above, by its heartbeats.

mod client;
mod connection;
mod server;

use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

pub use crate::token::Token;
pub use client::{Handshake, UpgradeRequest, attach, connect};
pub use connection::Connection;
pub use server::{Accepted, accept};

/// The largest message that is sent or taken.
pub const MESSAGE_BYTES: usize = 64 * 1024;

/// The end of the name of the file with the port of an agent. The beginning is the name of
/// its token file.
pub const PORT_SUFFIX: &str = ".port";

/// Bytes of a connection that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// Bytes that wait to be sent: a message, and answers to pings. If they do not fit, the other
/// side sends pings and reads nothing, and the connection ends.
const UNSENT_BYTES: usize = 4 * MESSAGE_BYTES;

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(UNSENT_BYTES)
        .max_message_size(Some(MESSAGE_BYTES))
        .max_frame_size(Some(MESSAGE_BYTES))
}

#[cfg(test)]
mod tests;
