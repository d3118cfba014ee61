//! Rejects protocol versions newer than this server supports.
//!
//! New clients first try a protocol without sessions and fall back to an older one.
//! rmcp would send the same response, but log a warning each time.

use std::error::Error as _;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use http_body_util::LengthLimitError;
use rmcp::model::{ErrorCode, ProtocolVersion};
use serde_json::{Value, json};

use crate::server::NEWEST_VERSION;

/// The header that names a request's protocol version.
const VERSION_HEADER: &str = "mcp-protocol-version";

/// Returns the request, or an error response that lists the supported versions if its
/// protocol is newer than any of them. A request that begins a session is let through:
/// it negotiates the version itself.
pub(super) async fn reject_newer(request: Request, max_bytes: usize) -> Result<Request, Response> {
    let version = request.headers().get(VERSION_HEADER);
    let version = version.and_then(|version| version.to_str().ok());
    let Some(version) = version.filter(|version| *version > NEWEST_VERSION.as_str()) else {
        return Ok(request);
    };
    let version = version.to_owned();
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, max_bytes).await.map_err(|error| {
        let is_too_large = error
            .source()
            .is_some_and(|source| source.is::<LengthLimitError>());
        if is_too_large {
            StatusCode::PAYLOAD_TOO_LARGE.into_response()
        } else {
            StatusCode::BAD_REQUEST.into_response()
        }
    })?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    match message.get("method").and_then(Value::as_str) {
        Some(method) if method != "initialize" => Err(rejection(&message, &version)),
        _ => Ok(Request::from_parts(parts, Body::from(body))),
    }
}

fn rejection(message: &Value, version: &str) -> Response {
    tracing::debug!(version, "a client tries a newer protocol first");
    let answer = json!({
        "jsonrpc": "2.0",
        "id": message.get("id"),
        "error": {
            "code": ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
            "message": "Unsupported protocol version",
            "data": {"requested": version, "supported": ProtocolVersion::known_up_to(&NEWEST_VERSION)},
        },
    });
    let json = [(CONTENT_TYPE, "application/json")];
    (StatusCode::BAD_REQUEST, json, answer.to_string()).into_response()
}
