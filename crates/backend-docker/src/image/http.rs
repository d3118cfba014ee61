//! A build over the daemon's plain API.
//!
//! bollard talks to BuildKit only through a gRPC session, which adds a minute of
//! compile time and nothing that is needed here. Without the session, it cannot read
//! BuildKit's answers. So this one request goes over hyper, which bollard uses too.

use std::time::Duration;

use backend_core::{Error, Result};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use crate::daemon::Daemon;

/// The longest line of an answer that is accepted.
const LONGEST_LINE: usize = 8 << 20;

/// Timeout for connecting to the daemon.
const CONNECT: Duration = Duration::from_secs(30);

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// The response to a build request, line by line. Dropping it closes the connection,
/// which makes the daemon cancel the build.
pub(super) struct Answer {
    daemon: Daemon,
    body: Incoming,
    buffer: BytesMut,
    _connection: AbortOnDropHandle<()>,
}

/// Uploads a context and starts its build.
pub(super) async fn build(daemon: &Daemon, query: &str, context: Bytes) -> Result<Answer> {
    let stream = tokio::time::timeout(CONNECT, connect(daemon))
        .await
        .map_err(|source| no_answer(daemon).with_source(source))??;
    let lost = |source: hyper::Error| no_answer(daemon).with_source(source);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
    // An error of the connection also surfaces in the response.
    let connection = AbortOnDropHandle::new(tokio::spawn(async move {
        let _ = connection.await;
    }));
    let request = Request::post(format!("/build?{query}"))
        .header("Host", "docker")
        .header("Content-Type", "application/x-tar")
        .body(Full::new(context))
        .map_err(|source| {
            Error::internal("a build could not be requested; please report this")
                .with_source(source)
        })?;
    let response = sender.send_request(request).await.map_err(lost)?;
    let status = response.status();
    let mut answer = Answer {
        daemon: daemon.clone(),
        body: response.into_body(),
        buffer: BytesMut::new(),
        _connection: connection,
    };
    if status.is_success() {
        return Ok(answer);
    }
    let said = answer.next_line().await?.unwrap_or_default();
    Err(Error::unavailable(format!(
        "the Docker daemon refused the build ({status}): {}; see its log",
        super::progress::message(&said)
    )))
}

async fn connect(daemon: &Daemon) -> Result<Box<dyn Duplex>> {
    let lost = |source: std::io::Error| no_answer(daemon).with_source(source);
    match daemon.address().split_once("://") {
        #[cfg(unix)]
        Some(("unix", path)) => {
            let stream = tokio::net::UnixStream::connect(path).await.map_err(lost)?;
            Ok(Box::new(stream))
        }
        #[cfg(windows)]
        Some(("npipe", path)) => {
            let options = tokio::net::windows::named_pipe::ClientOptions::new();
            Ok(Box::new(options.open(path).map_err(lost)?))
        }
        Some(("tcp" | "http", host)) => {
            let host = host.trim_end_matches('/');
            let stream = TcpStream::connect(host).await.map_err(lost)?;
            Ok(Box::new(stream))
        }
        _ => Err(Error::unsupported(format!(
            "images cannot be built over {}; use a daemon on this machine or at tcp://",
            daemon.address()
        ))),
    }
}

impl Answer {
    /// Returns the next line without its newline. An unterminated last line is returned
    /// too.
    pub(super) async fn next_line(&mut self) -> Result<Option<Bytes>> {
        let mut searched = 0;
        loop {
            let fresh = self.buffer.get(searched..).unwrap_or_default();
            if let Some(found) = fresh.iter().position(|&byte| byte == b'\n') {
                let mut line = self.buffer.split_to(searched + found + 1);
                line.truncate(searched + found);
                return Ok(Some(line.freeze()));
            }
            searched = self.buffer.len();
            if searched > LONGEST_LINE {
                return Err(Error::unavailable(
                    "the Docker daemon sent a line that does not end; restart it",
                ));
            }
            match self.body.frame().await {
                None if self.buffer.is_empty() => return Ok(None),
                None => return Ok(Some(self.buffer.split().freeze())),
                Some(Err(source)) => return Err(no_answer(&self.daemon).with_source(source)),
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
            }
        }
    }
}

/// The error for a daemon that cannot be reached, with the next step.
fn no_answer(daemon: &Daemon) -> Error {
    Error::unavailable(format!(
        "the Docker daemon at {} does not answer; start it, or give its address",
        daemon.address()
    ))
    .on("docker")
}
