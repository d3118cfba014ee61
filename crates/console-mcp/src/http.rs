//! [`serve_http`]: clients over streamable HTTP, each with a session of its own.

mod newer;
mod origin;
mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use backend_core::ops::ContentHash;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::server::Server;
use crate::{Connect, HttpSettings, ServeError, Settings};
use origin::{From, Origins};
use sessions::Sessions;

/// Where clients find the server.
const PLACE: &str = "/mcp";

/// How long connections and sessions may take to end.
const END: Duration = Duration::from_secs(10);

/// Serves clients over streamable HTTP at `/mcp` until `shutdown` is ready.
/// `ready` is called with the address once it listens.
///
/// # Errors
///
/// [`ServeError`] if it cannot listen, or should not.
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
    let config = config(&http, &settings);
    let stop = config.cancellation_token.clone();
    let sessions = Arc::new(Sessions::new(&http));
    let gate = Arc::new(Gate {
        origins: Origins::new(&http.origins),
        token: http.token.as_deref().map(digest),
        sessions: Arc::clone(&sessions),
        frame_bytes: settings.frame_bytes,
    });
    let settings = Arc::new(settings);
    let server = move || Ok(Server::new(Arc::clone(&connect), Arc::clone(&settings)));
    let service = StreamableHttpService::new(server, Arc::clone(&sessions), config);
    let app = axum::Router::new()
        .route_service(PLACE, service)
        .layer(from_fn_with_state(gate, pass));
    ready(address);
    let stopping = stop.clone();
    let shutdown = async move {
        shutdown.await;
        stopping.cancel();
    };
    let serving = axum::serve(listener, app).with_graceful_shutdown(shutdown);
    let served = tokio::select! {
        served = async { serving.await } => served,
        // A client that does not let go is left behind.
        () = async { stop.cancelled().await; tokio::time::sleep(END).await } => Ok(()),
    };
    let _ = timeout(END, sessions.end()).await;
    served.map_err(|error| {
        ServeError::Transport(format!("the server failed: {error}; start it again"))
    })
}

fn config(http: &HttpSettings, settings: &Settings) -> StreamableHttpServerConfig {
    let ip = http.listen.ip();
    let mut hosts = ["localhost", "127.0.0.1", "::1"]
        .map(str::to_owned)
        .to_vec();
    hosts.push(ip.to_string());
    hosts.extend(http.hosts.iter().cloned());
    let config =
        StreamableHttpServerConfig::default().with_max_request_body_bytes(settings.frame_bytes);
    match !ip.is_loopback() && http.hosts.is_empty() {
        true => config.disable_allowed_hosts(),
        false => config.with_allowed_hosts(hosts),
    }
}

/// What every request must pass.
struct Gate {
    origins: Origins,
    token: Option<ContentHash>,
    sessions: Arc<Sessions>,
    frame_bytes: usize,
}

/// Hashes are compared instead of tokens: how long that takes says nothing about
/// the token.
fn digest(token: &str) -> ContentHash {
    ContentHash::of(token.as_bytes())
}

impl Gate {
    fn knows(&self, headers: &HeaderMap) -> bool {
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

async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let page = match gate.origins.judge(request.headers()) {
        From::Nobody => return admitted(&gate, request, next).await,
        From::Page(page) => page,
        From::Stranger => {
            let text = "web pages of this origin may not send requests; see the server's origins\n";
            return (StatusCode::FORBIDDEN, text).into_response();
        }
    };
    let mut response = match origin::is_preflight(request.method(), request.headers()) {
        true => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            origin::invite(response.headers_mut());
            response
        }
        false => admitted(&gate, request, next).await,
    };
    origin::admit(response.headers_mut(), page);
    response
}

/// What becomes of a request that no web page of a stranger sends.
async fn admitted(gate: &Gate, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if !gate.knows(headers) {
        let text = "a bearer token is needed; send the header 'Authorization: Bearer TOKEN'\n";
        return (
            StatusCode::UNAUTHORIZED,
            [(WWW_AUTHENTICATE, "Bearer")],
            text,
        )
            .into_response();
    }
    let begins = request.method() == Method::POST && !headers.contains_key("mcp-session-id");
    if begins && gate.sessions.is_full() {
        let text = "there are as many clients as there may be; try again later\n";
        return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "30")], text).into_response();
    }
    let ends = request.method() == Method::DELETE;
    let request = match begins {
        true => match newer::turned_away(request, gate.frame_bytes).await {
            Ok(request) => request,
            Err(answer) => return answer,
        },
        false => request,
    };
    let mut response = next.run(request).await;
    // There is nothing to come: clients take "accepted" for a failure.
    if ends && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}
