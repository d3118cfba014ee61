//! The gate that every request passes: it is counted, takes its time, meets its fault and
//! shows its key.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::faults::Fault;
use crate::refusal::Refusal;
use crate::requests::Route;
use crate::service::Service;

/// The size of a JSON body.
const MAX_JSON_BYTES: usize = 64 * 1024 * 1024;

/// The size of a JSON body that is recorded.
const MAX_RECORDED_BYTES: usize = 64 * 1024;

/// A mark on an answer: the connection ends instead.
#[derive(Debug, Clone)]
pub(crate) struct Hangup;

/// Passes a request on to its handler, or answers it.
pub(crate) async fn pass(
    State(service): State<Arc<Service>>,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let matched = request.extensions().get::<MatchedPath>();
    let route = Route::new(
        method.as_str(),
        matched.map_or(path.as_str(), MatchedPath::as_str),
    );
    let target = request.uri().to_string();
    let headers = request.headers().clone();
    let body = match read_json(&mut request).await {
        Ok(body) => body,
        Err(refused) => return refused.into_response(),
    };
    service.log.push(&route, target, headers, body);
    service.latency.wait().await;
    let fault = service.faults.next(&route);
    let mut response = match fault.as_ref().and_then(|fault| instead(fault, &path)) {
        Some(answer) => answer,
        None => perform(&service, request, next, fault.as_ref()).await,
    };
    if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        response = refusal.render(&method, &path, service.options.typed_errors);
    }
    match fault {
        Some(Fault::AnswerLost) => StatusCode::BAD_GATEWAY.into_response(),
        Some(Fault::Truncated) => truncate(response).await,
        _ => response,
    }
}

/// Passes a request on to its handler, which sees its fault.
async fn perform(
    service: &Service,
    mut request: Request,
    next: Next,
    fault: Option<&Fault>,
) -> Response {
    if let Some(Fault::Delayed(time)) = fault {
        tokio::time::sleep(*time).await;
    }
    if let Some(fault) = fault {
        request.extensions_mut().insert(fault.clone());
    }
    match authorize(service, request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// Takes the JSON body of a request, and puts it back.
async fn read_json(request: &mut Request) -> Result<Option<Value>, StatusCode> {
    let kind = request.headers().get(CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json")) {
        return Ok(None);
    }
    let body = std::mem::replace(request.body_mut(), Body::empty());
    let bytes = to_bytes(body, MAX_JSON_BYTES).await;
    let bytes = bytes.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
    *request.body_mut() = Body::from(bytes.clone());
    let is_recorded = bytes.len() <= MAX_RECORDED_BYTES;
    Ok(is_recorded
        .then(|| serde_json::from_slice(&bytes).ok())
        .flatten())
}

/// Returns the answer of a fault that prevents the request.
fn instead(fault: &Fault, path: &str) -> Option<Response> {
    Some(match fault {
        Fault::BadGateway => StatusCode::BAD_GATEWAY.into_response(),
        Fault::ContainerIp => Refusal::not_started().into_response(),
        Fault::InvalidToken => invalid_token().into_response(),
        Fault::Busy => Refusal::busy().into_response(),
        Fault::RateLimited(time) => {
            let message = "ThrottlerException: Too Many Requests";
            let body = json!({"statusCode": 429, "message": message, "error": "Too Many Requests"});
            let headers = limits(path, time.as_secs());
            (StatusCode::TOO_MANY_REQUESTS, headers, Json(body)).into_response()
        }
        Fault::Answer { status, body } => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::IM_A_TEAPOT);
            let is_json = body.starts_with('{');
            let kind = if is_json {
                "application/json"
            } else {
                "text/plain"
            };
            (status, [(CONTENT_TYPE, kind)], body.clone()).into_response()
        }
        Fault::Dropped => dropped(),
        _ => return None,
    })
}

fn invalid_token() -> Refusal {
    Refusal::proxy(StatusCode::UNAUTHORIZED, "Bearer token is invalid")
}

/// Returns the headers of an exceeded limit.
fn limits(path: &str, seconds: u64) -> HeaderMap {
    let name = match path {
        "/api/sandbox" => "sandbox-create",
        path if path.starts_with("/api/sandbox/") => "sandbox-lifecycle",
        _ => "authenticated",
    };
    let headers = [
        (format!("retry-after-{name}"), seconds),
        (format!("x-ratelimit-limit-{name}"), 300),
        (format!("x-ratelimit-remaining-{name}"), 0),
        (format!("x-ratelimit-reset-{name}"), seconds),
    ];
    let headers = headers.into_iter().filter_map(|(name, value)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::from(value)))
    });
    headers.collect()
}

fn dropped() -> Response {
    let mut response = StatusCode::BAD_GATEWAY.into_response();
    response.extensions_mut().insert(Hangup);
    response
}

/// Returns an answer that ends after half of its body.
async fn truncate(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let body = body
        .collect()
        .await
        .map(|it| it.to_bytes())
        .unwrap_or_default();
    if body.is_empty() {
        return dropped();
    }
    parts
        .headers
        .insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    let half = body.slice(..body.len() / 2);
    let stream = futures::stream::unfold(Some(half), |half| async move {
        match half {
            Some(half) => Some((Ok::<Bytes, std::io::Error>(half), None)),
            None => {
                // What is there is sent before the connection ends.
                tokio::task::yield_now().await;
                Some((Err(std::io::ErrorKind::ConnectionAborted.into()), None))
            }
        }
    });
    Response::from_parts(parts, Body::from_stream(stream))
}

/// Checks the key of a request. Previews have rules of their own.
fn authorize(service: &Service, path: &str, headers: &HeaderMap) -> Result<(), Refusal> {
    let is_toolbox = path.starts_with("/toolbox/");
    let is_open = path == "/api/config" || path.starts_with("/api/socket.io");
    if is_open || !(is_toolbox || path.starts_with("/api/")) {
        return Ok(());
    }
    let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
    let token = text(AUTHORIZATION.as_str()).and_then(|it| it.strip_prefix("Bearer "));
    match token {
        Some(token) if token == service.options.api_key => Ok(()),
        Some(token) if token == service.jwt => {
            if is_toolbox
                || text("x-daytona-organization-id") == Some(service.organization.as_str())
            {
                return Ok(());
            }
            let message = "Invalid organization ID";
            Err(Refusal::control(StatusCode::FORBIDDEN, message))
        }
        _ if is_toolbox => Err(invalid_token()),
        _ => Err(Refusal::control(
            StatusCode::UNAUTHORIZED,
            "Invalid credentials",
        )),
    }
}
