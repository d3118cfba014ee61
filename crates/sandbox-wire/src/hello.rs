//! The first words on a stream, before the multiplexer: who speaks, and in which
//! version.
//!
//! A greeting is [`MAGIC`], the protocol's version in two bytes, the crate's
//! version (its length in one byte), and the length in four bytes and postcard of
//! [`ClientHello`] or [`Facts`]. All but the last part stays as it is for ever,
//! so that two versions can tell that they differ.

use std::time::Duration;

use backend_core::{Capabilities, Error, ErrorKind, Quoted, Result, VPath};
use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use serde::{Deserialize, Serialize};

use crate::message::{Fault, PROTOCOL, encode, receive};

/// What an agent says first. Not what any shell, loader or banner prints.
const MAGIC: [u8; 8] = *b"\0agtwire";

/// Bytes of a greeting's last part.
const BODY: usize = 16 * 1024;

/// Bytes that are quoted of something that is no greeting.
const FOREIGN: usize = 256;

/// How long to wait for the rest of something that is no greeting.
const FOREIGN_WAIT: Duration = Duration::from_millis(300);

/// The crate's version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What an agent says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Facts {
    /// Its process id, inside the sandbox.
    pub pid: u32,
    /// The user it runs as, if that is known there.
    pub uid: Option<u32>,
    /// What the backend that it serves can do.
    pub capabilities: Capabilities,
    /// Where that backend's relative paths start.
    pub working_dir: VPath,
}

/// What the host says about itself.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct ClientHello {
    /// How often it sends a heartbeat.
    pub(crate) heartbeat: Duration,
}

/// Greets, and hears the agent's greeting.
pub(crate) async fn greet_agent(
    socket: &mut (impl AsyncRead + AsyncWrite + Unpin),
    hello: ClientHello,
) -> Result<Facts> {
    // An agent of another kind may be gone already; what it said matters more.
    let said = say(socket, &hello).await;
    let heard = hear(socket).await;
    heard.map_err(|deaf| match (said, deaf) {
        (Err(said), Deaf::Ended) => said,
        (_, deaf) => deaf.into(),
    })
}

/// Greets, and hears the host's greeting.
pub(crate) async fn greet_host(
    socket: &mut (impl AsyncRead + AsyncWrite + Unpin),
    facts: &Facts,
) -> Result<ClientHello> {
    say(socket, facts).await?;
    hear(socket).await.map_err(Into::into)
}

async fn say(socket: &mut (impl AsyncWrite + Unpin), body: &impl Serialize) -> Result<()> {
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

/// Why there is no greeting.
#[derive(Debug)]
enum Deaf {
    Ended,
    Other(Error),
}

impl From<Deaf> for Error {
    fn from(deaf: Deaf) -> Self {
        match deaf {
            Deaf::Ended => Self::unavailable("the other side ended before it said anything"),
            Deaf::Other(error) => error,
        }
    }
}

async fn hear<T: serde::de::DeserializeOwned>(
    socket: &mut (impl AsyncRead + Unpin),
) -> Result<T, Deaf> {
    let mut seen = Vec::new();
    for expected in MAGIC {
        let mut byte = [0];
        let read = socket.read(&mut byte).await.unwrap_or(0);
        if read == 0 && seen.is_empty() {
            return Err(Deaf::Ended);
        }
        seen.extend_from_slice(byte.get(..read).unwrap_or_default());
        if byte != [expected] || read == 0 {
            return Err(Deaf::Other(foreign(socket, seen).await));
        }
    }
    let version = hear_version(socket).await.ok_or(Deaf::Ended)?;
    let (protocol, release) = version;
    if protocol != PROTOCOL || release != VERSION {
        return Err(Deaf::Other(other_version(protocol, &release)));
    }
    receive(socket, BODY).await.map_err(|fault| match fault {
        Fault::Ended => Deaf::Ended,
        Fault::Broken(what) => Deaf::Other(Error::unavailable(format!(
            "the greeting of the other side is {what}; build the agent anew with `agentbox agent install`"
        ))),
    })
}

async fn hear_version(socket: &mut (impl AsyncRead + Unpin)) -> Option<(u16, String)> {
    let mut protocol = [0; 2];
    let mut length = [0];
    socket.read_exact(&mut protocol).await.ok()?;
    socket.read_exact(&mut length).await.ok()?;
    let mut release = vec![0; usize::from(length[0])];
    socket.read_exact(&mut release).await.ok()?;
    let release = String::from_utf8_lossy(&release).into_owned();
    Some((u16::from_be_bytes(protocol), release))
}

fn other_version(protocol: u16, release: &str) -> Error {
    Error::unavailable(format!(
        "the other side is version {} and speaks protocol {protocol}, and this one is version \
         '{VERSION}' and speaks protocol {PROTOCOL}; build the agent anew with `agentbox agent install`",
        Quoted::new(release)
    ))
}

/// Complains about what is no greeting, with its first bytes.
async fn foreign(socket: &mut (impl AsyncRead + Unpin), mut seen: Vec<u8>) -> Error {
    let rest = async {
        let mut piece = [0; FOREIGN];
        while seen.len() < FOREIGN {
            match socket.read(&mut piece).await {
                Ok(read @ 1..) => seen.extend_from_slice(piece.get(..read).unwrap_or_default()),
                _ => return,
            }
        }
    };
    // Without it there is less to quote.
    let _ = tokio::time::timeout(FOREIGN_WAIT, rest).await;
    let text = String::from_utf8_lossy(&seen);
    Error::new(
        ErrorKind::Unavailable,
        format!(
            "the program that was started is no agent, or something speaks before it: it printed {}; \
             see that the image runs the program as it is given",
            Quoted::new(text.trim())
        ),
    )
}
