//! Connections to ports of commands.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use backend_core::{Connection, Error, ErrorKind, Outgoing, Result};
use backend_run::Activity;
use bytes::{Buf as _, Bytes};
use futures_util::stream::{self, StreamExt as _};
use rustix::net::Shutdown;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::state::State;
use crate::engine;

/// Bytes read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Connects to a port on the loopback interface.
pub(crate) async fn connect(state: &State, port: u16) -> Result<Connection> {
    if port == 0 {
        return Err(Error::invalid_input(
            "0 is not a port; name the one that a command listens on",
        ));
    }
    let panicked = "a connection's task panicked; please report this";
    let stream = backend_run::run(engine::handle()?, open(port), panicked).await?;
    let socket = Socket {
        stream: Arc::new(stream),
        stops: state.stops.subscribe(),
        activity: state.activity.clone(),
    };
    let incoming = stream::unfold(Some(socket.clone()), |socket| async move {
        let mut socket = socket?;
        match socket.read().await {
            Ok(None) => None,
            Ok(Some(bytes)) => Some((Ok(bytes), Some(socket))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(Connection::new(incoming.boxed(), socket))
}

/// Opens the connection. A server may listen on one of the two loopback addresses only.
async fn open(port: u16) -> Result<TcpStream> {
    let addresses = [
        SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
    ];
    let mut failed = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(lost)?;
                return Ok(stream);
            }
            Err(error) => drop(failed.get_or_insert(error)),
        }
    }
    let source = failed.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    Err(match source.kind() {
        io::ErrorKind::ConnectionRefused => Error::new(
            ErrorKind::NotFound,
            format!("nothing listens on port {port}; start the server first"),
        ),
        _ => Error::unavailable(format!("port {port} cannot be reached")).with_source(source),
    })
}

fn lost(source: io::Error) -> Error {
    Error::unavailable("the connection was lost; connect again").with_source(source)
}

/// A socket that both directions share. Either waits for it on the engine.
#[derive(Clone)]
struct Socket {
    stream: Arc<TcpStream>,
    stops: watch::Receiver<u64>,
    /// Bytes that move are a use of the sandbox. A connection that is only open is not:
    /// a stop would wait for it.
    activity: Activity,
}

impl Socket {
    /// Reads the next bytes; `None` is the end.
    async fn read(&mut self) -> Result<Option<Bytes>> {
        let mut piece = Vec::new();
        loop {
            self.ready(Direction::In).await?;
            piece.reserve(PIECE_BYTES);
            match self.stream.try_read_buf(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(_) => return Ok(Some(piece.into())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(lost(error)),
            }
        }
    }

    /// Waits until the socket is ready, or the sandbox stops.
    async fn ready(&mut self, direction: Direction) -> Result<()> {
        let ready = async {
            match direction {
                Direction::In => self.stream.readable().await,
                Direction::Out => self.stream.writable().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.stops.changed() => Err(Error::unavailable("the sandbox was stopped")),
            ready = ready => {
                self.activity.touch();
                ready.map_err(lost)
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Direction {
    In,
    Out,
}

#[async_trait]
impl Outgoing for Socket {
    async fn send(&mut self, mut bytes: Bytes) -> Result<()> {
        while !bytes.is_empty() {
            self.ready(Direction::Out).await?;
            match self.stream.try_write(&bytes) {
                Ok(sent) => bytes.advance(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(lost(error)),
            }
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<()> {
        rustix::net::shutdown(&*self.stream, Shutdown::Write).map_err(|error| lost(error.into()))
    }
}
