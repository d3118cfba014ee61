//! Rejects protocol versions newer than this server supports.
//!
//! New clients first try a protocol without sessions and fall back to an older one.
//! rmcp would send the same response, but log a warning each time.

use http_body_util::{BodyExt as _, Either, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, StatusCode};
use rmcp::model::{ErrorCode, ProtocolVersion};
use serde_json::{Value, json};

use super::response::{Response, empty, json as json_response};
use crate::server::NEWEST_VERSION;

/// The header that names a request's protocol version.
const VERSION_HEADER: &str = "mcp-protocol-version";

/// A request whose body is still to be received, or was read here.
pub(super) type Checked = Request<Either<Incoming, Full<Bytes>>>;

/// Returns the request, or an error response that lists the supported versions if its
/// protocol is newer than any of them. A request that begins a session is let through:
/// it negotiates the version itself.
pub(super) async fn reject_newer(
    request: Request<Incoming>,
    max_bytes: usize,
) -> Result<Checked, Response> {
    let version = request.headers().get(VERSION_HEADER);
    let version = version.and_then(|version| version.to_str().ok());
    let Some(version) = version.filter(|version| *version > NEWEST_VERSION.as_str()) else {
        return Ok(request.map(Either::Left));
    };
    let version = version.to_owned();
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, max_bytes).collect().await;
    let body = body.map_err(|error| {
        let is_too_large = error.is::<LengthLimitError>();
        empty(if is_too_large {
            StatusCode::PAYLOAD_TOO_LARGE
        } else {
            StatusCode::BAD_REQUEST
        })
    })?;
    let body = body.to_bytes();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    match message.get("method").and_then(Value::as_str) {
        Some(method) if method != "initialize" => Err(rejection(&message, &version)),
        _ => Ok(Request::from_parts(parts, Either::Right(Full::new(body)))),
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
    json_response(StatusCode::BAD_REQUEST, answer.to_string())
}
