//! [`serve_http`]: serves clients over streamable HTTP, one session for each client.

mod host;
mod origin;
mod response;
mod sessions;
mod tcp_connections;
mod unsupported_version;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use backend_core::ErrorKind;
use backend_core::ops::ContentHash;
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, AsHeaderName, CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::http::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client::Client;
use crate::connect::Connect;
use crate::server::Server;
use crate::settings::{HttpSettings, ServeError, Settings, Token};
use host::Hosts;
use origin::{Origins, RequestOrigin};
use response::{Response, empty, text};
use sessions::{CLIENT, Sessions};
use tcp_connections::{TcpConnectionGuard, TcpConnections};

/// The path of the endpoint.
const ENDPOINT: &str = "/mcp";

/// The header with the session that a client asks for.
const SESSION_HEADER: &str = "agentbox-session";

/// The protocol's header with the id of an MCP session.
const MCP_SESSION_HEADER: &str = "mcp-session-id";

/// Time allowed for connections, and then for sessions, to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Maximum size of a request's head.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Serves clients over streamable HTTP at `/mcp` until `shutdown` is ready. `ready` is
/// called with the address once the server listens.
///
/// # Errors
///
/// [`ServeError`] if the server cannot listen on the address, or the settings are not
/// safe.
pub async fn serve_http(
    connect: Arc<dyn Connect>,
    settings: Settings,
    http: HttpSettings,
    ready: impl FnOnce(SocketAddr) + Send,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    http.check()?;
    let unable = |error: std::io::Error| {
        let listen = http.listen;
        ServeError::Transport(format!(
            "cannot listen on {listen}: {error}; use another address"
        ))
    };
    let listener = TcpListener::bind(http.listen).await.map_err(unable)?;
    let address = listener.local_addr().map_err(unable)?;
    // `Gate` checks hosts and origins before anything else is read.
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(settings.frame_bytes)
        .disable_allowed_hosts();
    let stop = config.cancellation_token.clone();
    let sessions = Arc::new(Sessions::new(&http));
    let frame_bytes = settings.frame_bytes;
    let settings = Arc::new(settings);
    let connecting = Arc::clone(&connect);
    let server = move || Ok(Server::new(Arc::clone(&connecting), Arc::clone(&settings)));
    let gate = Arc::new(Gate {
        connect,
        hosts: Hosts::new(&http),
        origins: Origins::new(&http.origins),
        tokens: http.tokens.iter().map(KnownToken::new).collect(),
        service: StreamableHttpService::new(server, Arc::clone(&sessions), config),
        sessions: Arc::clone(&sessions),
        frame_bytes,
    });
    ready(address);
    let open = TaskTracker::new();
    let http_server = HttpServer {
        gate,
        header_timeout: http.header_timeout,
        connections: Arc::new(TcpConnections::new(&http)),
        stop: stop.clone(),
    };
    tokio::select! {
        () = http_server.accept(listener, &open) => {}
        () = shutdown => {}
    }
    stop.cancel();
    open.close();
    // A connection that does not close in time is abandoned.
    let _ = timeout(SHUTDOWN_TIMEOUT, open.wait()).await;
    let _ = timeout(SHUTDOWN_TIMEOUT, sessions.end()).await;
    Ok(())
}

/// The state shared by all connections.
struct HttpServer {
    gate: Arc<Gate>,
    header_timeout: Duration,
    connections: Arc<TcpConnections>,
    stop: CancellationToken,
}

impl HttpServer {
    /// Accepts connections forever.
    async fn accept(&self, listener: TcpListener, open: &TaskTracker) {
        loop {
            match accept(&listener).await {
                Ok((stream, address)) => match self.connections.enter(address.ip()) {
                    Some(guard) => drop(open.spawn(self.serve(stream, guard))),
                    None => tracing::warn!(%address, "too many connections; one was closed"),
                },
                // The client is gone already, or no file descriptors are left.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    self.connections.close_one();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Serves a connection until it ends, has to make room for another, or the server
    /// stops.
    fn serve(
        &self,
        stream: TcpStream,
        guard: TcpConnectionGuard,
    ) -> impl Future<Output = ()> + use<> {
        let guard = Arc::new(guard);
        let (gate, counted) = (Arc::clone(&self.gate), Arc::clone(&guard));
        let answer = service_fn(move |request| {
            let (gate, counted) = (Arc::clone(&gate), Arc::clone(&counted));
            // Boxed: otherwise each connection has room for it in its own task.
            Box::pin(
                async move { Ok::<_, Infallible>(check_request(&gate, &counted, request).await) },
            )
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), answer);
        let stop = self.stop.clone();
        async move {
            let mut connection = std::pin::pin!(connection);
            let served = tokio::select! {
                served = connection.as_mut() => served,
                () = guard.must_close() => Ok(()),
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended");
            }
        }
    }
}

/// Accepts the next connection. A response is sent in several parts. Without
/// `TCP_NODELAY` the second part would wait for the client to acknowledge the first,
/// which takes 40 ms.
async fn accept(listener: &TcpListener) -> std::io::Result<(TcpStream, SocketAddr)> {
    let (stream, address) = listener.accept().await?;
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set; the connection is slower");
    }
    Ok((stream, address))
}

/// The checks that every request must pass, and the service behind them.
struct Gate {
    connect: Arc<dyn Connect>,
    hosts: Hosts,
    origins: Origins,
    /// Without any, every client is let in.
    tokens: Vec<KnownToken>,
    service: StreamableHttpService<Server, Sessions>,
    sessions: Arc<Sessions>,
    frame_bytes: usize,
}

/// A token that clients may have. Hashes are compared instead of tokens, so the time a
/// comparison takes reveals nothing about the token.
struct KnownToken {
    digest: ContentHash,
    name: Option<Arc<str>>,
}

impl KnownToken {
    fn new(token: &Token) -> Self {
        Self {
            digest: digest(token.value()),
            name: token.name().cloned(),
        }
    }
}

fn digest(token: &str) -> ContentHash {
    ContentHash::of(token.as_bytes())
}

impl Gate {
    /// Returns the name of the client's token, or the text for a client without a valid one.
    /// The text repeats only what the client knows: whether it sent a token.
    fn authorize(&self, headers: &HeaderMap) -> Result<Option<Arc<str>>, &'static str> {
        if self.tokens.is_empty() {
            return Ok(None);
        }
        let given = bearer_token(headers)
            .ok_or("a bearer token is needed; send the header 'Authorization: Bearer TOKEN'\n")?;
        let given = digest(given);
        let mut found = None;
        // All are compared, so the time does not tell which one it was.
        for token in &self.tokens {
            if token.digest == given {
                found = Some(token);
            }
        }
        let name = found.map(|token| token.name.clone());
        name.ok_or("unknown token; send one that this server was given or has printed\n")
    }

    /// Checks that a request belongs to the MCP session that it names, if that is known.
    fn check_mcp_session(
        &self,
        headers: &HeaderMap,
        client: &Client,
    ) -> Result<(), (StatusCode, &'static str)> {
        let Some(begun) = mcp_session(headers).and_then(|id| self.sessions.client(id)) else {
            return Ok(());
        };
        if begun.name != client.name {
            // The same answer as for a session that does not exist.
            return Err((StatusCode::NOT_FOUND, "Not Found: Session not found"));
        }
        // The tools would go on with the session of the beginning.
        let asked = client.session.as_deref();
        if asked.is_some_and(|asked| asked != &*begun.caller().session) {
            return Err((
                StatusCode::BAD_REQUEST,
                "the header Agentbox-Session is read at 'initialize', and this MCP session began \
                 with another; leave it out, or initialize a new MCP session\n",
            ));
        }
        Ok(())
    }

    /// Checks that a client may begin an MCP session.
    fn check_client(&self, client: &Client) -> Result<(), (StatusCode, String)> {
        self.connect.check(client).map_err(|error| {
            tracing::debug!(%error, client = ?client.name, "a client was refused");
            let status = if error.kind() == ErrorKind::PermissionDenied {
                StatusCode::FORBIDDEN
            } else {
                StatusCode::BAD_REQUEST
            };
            (status, format!("{error}\n"))
        })
    }
}

/// Returns the token that a client sent.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = only(headers, AUTHORIZATION)?.to_str().ok()?;
    let (scheme, given) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    Some(given.trim())
}

/// Returns a header that is there once.
fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&HeaderValue> {
    let mut given = headers.get_all(name).iter();
    given.next().filter(|_| given.next().is_none())
}

/// Returns the session that a client asks for, if it asks for one.
fn asked_session(headers: &HeaderMap) -> Result<Option<Arc<str>>, (StatusCode, &'static str)> {
    if !headers.contains_key(SESSION_HEADER) {
        return Ok(None);
    }
    let asked = only(headers, SESSION_HEADER).and_then(|asked| asked.to_str().ok());
    let answer = (
        StatusCode::BAD_REQUEST,
        "the request needs one header 'Agentbox-Session: ID', or none\n",
    );
    asked.map(|asked| Some(asked.into())).ok_or(answer)
}

/// Returns the session in the head of a request.
fn mcp_session(headers: &HeaderMap) -> Option<&str> {
    headers.get(MCP_SESSION_HEADER)?.to_str().ok()
}

async fn check_request(
    gate: &Gate,
    guard: &TcpConnectionGuard,
    request: Request<Incoming>,
) -> Response {
    if let Err((status, said)) = gate.hosts.check(&request) {
        return rejected(text(status, said));
    }
    let origin = match gate.origins.check(request.headers()) {
        RequestOrigin::NotABrowser => return handle(gate, guard, request).await,
        RequestOrigin::Allowed(origin) => origin,
        RequestOrigin::Denied => {
            let said = "web pages of this origin may not send requests; name it among the server's \
                        origins (agentbox mcp --origin ORIGIN)\n";
            return rejected(text(StatusCode::FORBIDDEN, said));
        }
    };
    let mut response = if origin::is_preflight(request.method(), request.headers()) {
        let mut response = empty(StatusCode::NO_CONTENT);
        origin::allow_request(response.headers_mut());
        response
    } else {
        handle(gate, guard, request).await
    };
    origin::allow_response(response.headers_mut(), origin);
    response
}

/// Makes a response close the connection: an unauthenticated client gets no second try
/// on it.
fn rejected(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// Handles a request that passed the host and origin checks.
async fn handle(gate: &Gate, guard: &TcpConnectionGuard, request: Request<Incoming>) -> Response {
    let headers = request.headers();
    let name = match gate.authorize(headers) {
        Ok(name) => name,
        Err(said) => {
            let mut response = text(StatusCode::UNAUTHORIZED, said);
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
            return rejected(response);
        }
    };
    guard.authenticate();
    let session = match asked_session(headers) {
        Ok(session) => session,
        Err((status, said)) => return text(status, said),
    };
    let client = Client { name, session };
    if let Err((status, said)) = gate.check_mcp_session(headers, &client) {
        return text(status, said);
    }
    let begins = request.method() == Method::POST && !headers.contains_key(MCP_SESSION_HEADER);
    if begins && let Err((status, said)) = gate.check_client(&client) {
        return text(status, said);
    }
    let beginning = begins.then(|| gate.sessions.begin(client.name.as_ref()));
    if matches!(beginning, Some(None)) {
        let said = "too many clients; try again later\n";
        let mut response = text(StatusCode::SERVICE_UNAVAILABLE, said);
        let seconds = HeaderValue::from_static("30");
        response.headers_mut().insert(RETRY_AFTER, seconds);
        return response;
    }
    let ends = request.method() == Method::DELETE;
    let mut request = if begins {
        match unsupported_version::reject_newer(request, gate.frame_bytes).await {
            Ok(request) => request,
            Err(answer) => return answer,
        }
    } else {
        request.map(Either::Left)
    };
    if request.uri().path() != ENDPOINT {
        return empty(StatusCode::NOT_FOUND);
    }
    request.extensions_mut().insert(client.clone());
    let mut response = CLIENT.scope(client, gate.service.handle(request)).await;
    drop(beginning);
    // The session has ended and nothing follows. Clients take "202 Accepted" for a
    // failure here.
    if ends && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn parts_of_an_answer_do_not_wait_for_each_other() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (stream, _) = accept(&listener).await.unwrap();
        assert!(stream.nodelay().unwrap());
    }
}
