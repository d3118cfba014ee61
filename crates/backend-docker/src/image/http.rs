//! A build over the daemon's plain API.
//!
//! bollard talks to BuildKit only through a gRPC session, which adds a minute of
//! compile time and nothing that is needed here. Without the session, it cannot read
//! BuildKit's answers. So this one request goes over hyper, which bollard uses too.

use std::io;
use std::time::Duration;

use backend_core::{Error, Result};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};
use tokio_util::io::StreamReader;
use tokio_util::task::AbortOnDropHandle;

use crate::daemon::Daemon;

/// The longest line of an answer that is accepted.
const LONGEST_LINE: usize = 8 << 20;

/// Timeout for connecting to the daemon.
const CONNECT: Duration = Duration::from_secs(30);

type Body = StreamReader<BoxStream<'static, io::Result<Bytes>>, Bytes>;

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// The response to a build request, line by line. Dropping it closes the connection,
/// which makes the daemon cancel the build.
pub(super) struct Answer {
    daemon: Daemon,
    lines: FramedRead<Body, AnyDelimiterCodec>,
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
    let body = response.into_body().into_data_stream();
    let body = StreamReader::new(body.map_err(io::Error::other).boxed());
    let lines = AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), Vec::new(), LONGEST_LINE);
    let mut answer = Answer {
        daemon: daemon.clone(),
        lines: FramedRead::new(body, lines),
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
    let lost = |source: io::Error| no_answer(daemon).with_source(source);
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
        let line = self.lines.next().await.transpose();
        line.map_err(|error| match error {
            AnyDelimiterCodecError::Io(source) => no_answer(&self.daemon).with_source(source),
            AnyDelimiterCodecError::MaxChunkLengthExceeded => {
                Error::unavailable("the Docker daemon sent a line that does not end; restart it")
            }
        })
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
