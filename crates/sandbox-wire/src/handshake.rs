//! The greeting on a stream, before the multiplexer: identity and version.
//!
//! A greeting is [`MAGIC`], the protocol's version in two bytes, the crate's
//! version (its length in one byte), and the length in four bytes and postcard
//! of [`ClientHello`] or [`AgentInfo`]. All but the last part never changes, so
//! that two versions can detect that they differ.

use std::time::Duration;

use backend_core::{Capabilities, Error, ErrorKind, Quoted, Result, VPath};
use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use serde::{Deserialize, Serialize};

use crate::message::{FrameError, PROTOCOL, encode, receive};

/// The first bytes of a greeting. No shell, loader or banner prints them.
const MAGIC: [u8; 8] = *b"\0agtwire";

/// The maximum size of a greeting's last part.
const BODY: usize = 16 * 1024;

/// The number of bytes quoted from something that is not a greeting.
const QUOTED_BYTES: usize = 256;

/// The time to wait for the rest of something that is not a greeting.
const QUOTED_WAIT: Duration = Duration::from_millis(300);

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An agent's information about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentInfo {
    /// Its process ID inside the sandbox.
    pub pid: u32,
    /// The user it runs as, if known.
    pub uid: Option<u32>,
    /// The capabilities of the backend that it serves.
    pub capabilities: Capabilities,
    /// The directory that the backend's relative paths start from.
    pub working_dir: VPath,
}

/// The host's information about itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct ClientHello {
    /// The interval of its heartbeats.
    pub(crate) heartbeat: Duration,
}

/// Sends the host's greeting, and reads the agent's.
pub(crate) async fn greet_agent(
    socket: &mut (impl AsyncRead + AsyncWrite + Unpin),
    hello: ClientHello,
) -> Result<AgentInfo> {
    // A program that is not an agent may already be gone. Its output matters
    // more.
    let sent = send_greeting(socket, &hello).await;
    let received = receive_greeting(socket).await;
    received?.ok_or_else(|| sent.err().unwrap_or_else(ended))
}

/// Sends the agent's greeting, and reads the host's.
pub(crate) async fn greet_host(
    socket: &mut (impl AsyncRead + AsyncWrite + Unpin),
    info: &AgentInfo,
) -> Result<ClientHello> {
    send_greeting(socket, info).await?;
    receive_greeting(socket).await?.ok_or_else(ended)
}

async fn send_greeting(
    socket: &mut (impl AsyncWrite + Unpin),
    body: &impl Serialize,
) -> Result<()> {
    let mut greeting = MAGIC.to_vec();
    greeting.extend_from_slice(&PROTOCOL.to_be_bytes());
    greeting.push(u8::try_from(VERSION.len()).unwrap_or(u8::MAX));
    greeting.extend_from_slice(VERSION.as_bytes());
    greeting.extend_from_slice(&encode(body)?);
    let written = async {
        socket.write_all(&greeting).await?;
        socket.flush().await
    };
    written.await.map_err(|error| {
        Error::unavailable("the greeting could not be sent; see why the program ended")
            .with_source(error)
    })
}

fn ended() -> Error {
    Error::unavailable("the other side ended before it said anything")
}

/// Reads a greeting. Returns `None` if the other side ended before its end.
async fn receive_greeting<T: serde::de::DeserializeOwned>(
    socket: &mut (impl AsyncRead + Unpin),
) -> Result<Option<T>> {
    let mut seen = Vec::new();
    for expected in MAGIC {
        let mut byte = [0];
        let read = socket.read(&mut byte).await.unwrap_or(0);
        if read == 0 && seen.is_empty() {
            return Ok(None);
        }
        seen.extend_from_slice(byte.get(..read).unwrap_or_default());
        if byte != [expected] || read == 0 {
            return Err(not_a_greeting(socket, seen).await);
        }
    }
    let Some((protocol, release)) = receive_version(socket).await else {
        return Ok(None);
    };
    if protocol != PROTOCOL || release != VERSION {
        return Err(version_mismatch(protocol, &release));
    }
    match receive(socket, BODY).await {
        Ok(body) => Ok(Some(body)),
        Err(FrameError::Ended) => Ok(None),
        Err(FrameError::Broken(what)) => Err(Error::unavailable(format!(
            "the greeting of the other side is {what}; rebuild the agent with `agentbox agent install`"
        ))),
    }
}

async fn receive_version(socket: &mut (impl AsyncRead + Unpin)) -> Option<(u16, String)> {
    let mut protocol = [0; 2];
    let mut length = [0];
    socket.read_exact(&mut protocol).await.ok()?;
    socket.read_exact(&mut length).await.ok()?;
    let mut release = vec![0; usize::from(length[0])];
    socket.read_exact(&mut release).await.ok()?;
    let release = String::from_utf8_lossy(&release).into_owned();
    Some((u16::from_be_bytes(protocol), release))
}

fn version_mismatch(protocol: u16, release: &str) -> Error {
    Error::unavailable(format!(
        "the other side is version {} and speaks protocol {protocol}, and this one is version \
         '{VERSION}' and speaks protocol {PROTOCOL}; rebuild the agent with `agentbox agent install`",
        Quoted::new(release)
    ))
}

/// Returns the error for something that is not a greeting, with its first
/// bytes.
async fn not_a_greeting(socket: &mut (impl AsyncRead + Unpin), mut seen: Vec<u8>) -> Error {
    let rest = async {
        let mut piece = [0; QUOTED_BYTES];
        while seen.len() < QUOTED_BYTES {
            match socket.read(&mut piece).await {
                Ok(read @ 1..) => seen.extend_from_slice(piece.get(..read).unwrap_or_default()),
                _ => return,
            }
        }
    };
    // After a timeout there is just less to quote.
    let _ = tokio::time::timeout(QUOTED_WAIT, rest).await;
    let text = String::from_utf8_lossy(&seen);
    Error::new(
        ErrorKind::Unavailable,
        format!(
            "the program that was started is not an agent, or prints something before it: it printed {}; \
             check that the image runs the program as it is given",
            Quoted::new(text.trim())
        ),
    )
}
