//! Ports of a sandbox: which are open, and requests that are passed on to them.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use http::header::{AUTHORIZATION, HOST, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;

use super::{Routes, Toolbox};
use crate::refusal::{Answer, Refusal};
use crate::sandbox::Sandbox;
use crate::service::Service;

/// The ports that the toolbox looks at.
const PORTS: std::ops::RangeInclusive<u16> = 3000..=9999;

/// The size of the parts in which an upgraded connection is copied.
const PART_BYTES: usize = 64 * 1024;

pub(super) fn routes() -> Routes {
    Router::new()
        .route("/port", get(ports))
        .route("/port/{port}/in-use", get(is_in_use))
        .route("/proxy/{port}", any(proxy))
        .route("/proxy/{port}/", any(proxy))
        .route("/proxy/{port}/{*path}", any(proxy))
}

pub(super) fn previews() -> Routes {
    Router::new()
        .route("/preview/{id}/{port}", any(preview))
        .route("/preview/{id}/{port}/", any(preview))
        .route("/preview/{id}/{port}/{*path}", any(preview))
}

async fn ports(_: Toolbox) -> Json<Value> {
    let open = listening().into_iter().filter(|port| PORTS.contains(port));
    Json(json!({"ports": open.collect::<Vec<_>>()}))
}

async fn is_in_use(_: Toolbox, Path((_, port)): Path<(String, u16)>) -> Answer<Json<Value>> {
    if !PORTS.contains(&port) {
        let message = "bad request: port out of range: must be between 3000 and 9999";
        return Err(Refusal::toolbox(StatusCode::BAD_REQUEST, message));
    }
    Ok(Json(json!({"isInUse": listening().contains(&port)})))
}

/// Returns the ports that programs of the machine listen on.
fn listening() -> BTreeSet<u16> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let lines = tables.iter().flatten().flat_map(|table| table.lines());
    let ports = lines.filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (_, port) = words.next()?.rsplit_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        (words.nth(1) == Some("0A")).then_some(port)
    });
    ports.collect()
}

/// Passes a request on to a port. The path is `/proxy/PORT…`, as the toolbox sees it.
async fn proxy(State(service): State<Arc<Service>>, _: Toolbox, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    forward(&service, path.trim_start_matches("/proxy/"), request).await
}

/// Passes a request of a user on to a port. The path is `/preview/ID/PORT…`, with the
/// token of a sandbox in place of its id in signed URLs.
async fn preview(State(service): State<Arc<Service>>, request: Request) -> Answer {
    let path = request.uri().path().to_owned();
    let rest = path.trim_start_matches("/preview/");
    let (id, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let sandbox = {
        let sandboxes = service.sandboxes();
        let found = sandboxes.iter().find(|it| it.is(id) || it.token == id);
        found.cloned()
    };
    let Some(sandbox) = sandbox.filter(|it| it.state() == "started") else {
        return Err(Refusal::not_started());
    };
    let is_allowed = sandbox.token == id || is_allowed(&service, &sandbox, &request);
    if !is_allowed {
        let login = format!("{}/login", service.origin);
        return Ok((StatusCode::TEMPORARY_REDIRECT, [(LOCATION, login)]).into_response());
    }
    Ok(forward(&service, rest, request).await)
}

/// Whether a request may see the previews of a sandbox.
fn is_allowed(service: &Service, sandbox: &Sandbox, request: &Request) -> bool {
    let header = |name: &str| request.headers().get(name).and_then(|it| it.to_str().ok());
    let key = header(AUTHORIZATION.as_str()).and_then(|it| it.strip_prefix("Bearer "));
    let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let query = query.map(|Query(query)| query).unwrap_or_default();
    let mut query = query
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    sandbox.get("public") == json!(true)
        || key.is_some_and(|key| key == service.options.api_key || key == service.jwt)
        || header("x-daytona-preview-token") == Some(sandbox.token.as_str())
        || query.any(|it| it == ("DAYTONA_SANDBOX_AUTH_KEY", sandbox.token.as_str()))
}

/// Passes a request on to a port of this machine, where the sandbox's programs listen.
/// `rest` is the port and the path after it.
async fn forward(service: &Service, rest: &str, mut request: Request) -> Response {
    let (port, path) = rest.split_once('/').unwrap_or((rest, ""));
    let query = request
        .uri()
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let (Ok(port), Ok(uri)) = (
        port.parse::<u16>(),
        format!("/{path}{query}").parse::<Uri>(),
    ) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    *request.uri_mut() = uri;
    set_headers(request.headers_mut(), port);
    let client = request.extensions_mut().remove::<OnUpgrade>();
    let mut response = match send(service, port, request).await {
        Ok(response) => response,
        Err(error) => {
            tracing::debug!(%error, port, "nothing listens");
            return StatusCode::BAD_GATEWAY.into_response();
        }
    };
    if let Some(client) = client.filter(|_| response.status() == StatusCode::SWITCHING_PROTOCOLS) {
        let server = hyper::upgrade::on(&mut response);
        let latency = service.latency.clone();
        service.spawn(async move {
            let (Ok(client), Ok(server)) = tokio::join!(client, server) else {
                return;
            };
            let (mut client, _guard) = latency.late(TokioIo::new(client));
            let mut server = TokioIo::new(server);
            // Its end is that of one of both.
            let _ = copy_bidirectional_with_sizes(&mut client, &mut server, PART_BYTES, PART_BYTES)
                .await;
        });
    }
    response
}

/// Sends a request on a connection of its own.
async fn send(
    service: &Service,
    port: u16,
    request: Request,
) -> Result<Response, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    service.spawn(async {
        let _ = connection.with_upgrades().await;
    });
    Ok(sender.send_request(request).await?.map(Body::new))
}

/// Takes away the key, and names the port as the host.
fn set_headers(headers: &mut HeaderMap, port: u16) {
    headers.remove(AUTHORIZATION);
    if let Ok(host) = HeaderValue::try_from(format!("127.0.0.1:{port}")) {
        headers.insert(HOST, host);
    }
}
