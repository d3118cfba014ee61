//! [`serve_http`]: serves clients over streamable HTTP, one session for each client.

mod host;
mod origin;
mod sessions;
mod tcp_connections;
mod unsupported_version;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use backend_core::ops::ContentHash;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connect::Connect;
use crate::server::Server;
use crate::settings::{HttpSettings, ServeError, Settings};
use host::Hosts;
use origin::{Origins, RequestOrigin};
use sessions::Sessions;
use tcp_connections::{TcpConnectionGuard, TcpConnections};

/// The path of the endpoint.
const ENDPOINT: &str = "/mcp";

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
    let gate = Arc::new(Gate {
        hosts: Hosts::new(&http),
        origins: Origins::new(&http.origins),
        token: http.token.as_deref().map(digest),
        sessions: Arc::clone(&sessions),
        frame_bytes: settings.frame_bytes,
    });
    let settings = Arc::new(settings);
    let server = move || Ok(Server::new(Arc::clone(&connect), Arc::clone(&settings)));
    let service = StreamableHttpService::new(server, Arc::clone(&sessions), config);
    let app = axum::Router::new()
        .route_service(ENDPOINT, service)
        .layer(from_fn_with_state(gate, check_request));
    ready(address);
    let open = TaskTracker::new();
    let http_server = HttpServer {
        app,
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
    app: axum::Router,
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
        let app = self.app.clone().layer(Extension(Arc::clone(&guard)));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
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

/// The checks that every request must pass.
struct Gate {
    hosts: Hosts,
    origins: Origins,
    token: Option<ContentHash>,
    sessions: Arc<Sessions>,
    frame_bytes: usize,
}

/// Hashes a token. Hashes are compared instead of tokens, so the time a comparison
/// takes reveals nothing about the token.
fn digest(token: &str) -> ContentHash {
    ContentHash::of(token.as_bytes())
}

impl Gate {
    fn is_authorized(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (given.next(), given.next()) else {
            return false;
        };
        let Some((scheme, given)) = value.to_str().ok().and_then(|value| value.split_once(' '))
        else {
            return false;
        };
        scheme.eq_ignore_ascii_case("bearer") && digest(given.trim()) == *token
    }
}

async fn check_request(
    State(gate): State<Arc<Gate>>,
    Extension(guard): Extension<Arc<TcpConnectionGuard>>,
    request: Request,
    next: Next,
) -> Response {
    if let Err(answer) = gate.hosts.check(&request) {
        return rejected(answer);
    }
    let origin = match gate.origins.check(request.headers()) {
        RequestOrigin::NotABrowser => return handle(&gate, &guard, request, next).await,
        RequestOrigin::Allowed(origin) => origin,
        RequestOrigin::Denied => {
            let text = "web pages of this origin may not send requests; name it among the server's \
                        origins (agentbox mcp --origin ORIGIN)\n";
            return rejected((StatusCode::FORBIDDEN, text));
        }
    };
    let mut response = if origin::is_preflight(request.method(), request.headers()) {
        let mut response = StatusCode::NO_CONTENT.into_response();
        origin::allow_request(response.headers_mut());
        response
    } else {
        handle(&gate, &guard, request, next).await
    };
    origin::allow_response(response.headers_mut(), origin);
    response
}

/// Builds a response that closes the connection: an unauthenticated client gets no
/// second try on it.
fn rejected(answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// Handles a request that passed the host and origin checks.
async fn handle(
    gate: &Gate,
    guard: &TcpConnectionGuard,
    mut request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    if !gate.is_authorized(headers) {
        let text = "a bearer token is needed; send the header 'Authorization: Bearer TOKEN'\n";
        let bearer = [(WWW_AUTHENTICATE, "Bearer")];
        return rejected((StatusCode::UNAUTHORIZED, bearer, text));
    }
    guard.authenticate();
    let begins = request.method() == Method::POST && !headers.contains_key("mcp-session-id");
    if begins && gate.sessions.is_full() {
        let text = "too many clients; try again later\n";
        return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "30")], text).into_response();
    }
    let ends = request.method() == Method::DELETE;
    if begins {
        request = match unsupported_version::reject_newer(request, gate.frame_bytes).await {
            Ok(request) => request,
            Err(answer) => return answer,
        };
    }
    let mut response = next.run(request).await;
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
