//! [`Failure`]: an error as a response.

use std::fmt;

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use backend_core::{ErrorKind, PathError};
use serde_json::json;
use sessions::CapacityError;

/// A failed request: its status, and a text for the user.
#[derive(Debug)]
pub struct Failure {
    status: StatusCode,
    text: String,
    retry_seconds: Option<u64>,
}

impl Failure {
    /// Creates a failure.
    pub fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            retry_seconds: None,
        }
    }

    /// A session that does not exist looks like one that the caller does not know.
    pub(super) fn no_session() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "there is no such session; begin a new one",
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({"error": self.text}))).into_response();
        if let Some(seconds) = self.retry_seconds {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<backend_core::Error> for Failure {
    fn from(error: backend_core::Error) -> Self {
        let status = match error.kind() {
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::AlreadyExists | ErrorKind::Conflict => StatusCode::PRECONDITION_FAILED,
            ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
            ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
            ErrorKind::Unavailable | ErrorKind::RateLimited => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
            ErrorKind::Internal | ErrorKind::Config => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        };
        let full = CapacityError::of(&error);
        Self {
            status,
            retry_seconds: full.map(|full| full.retry_after.as_secs().max(1)),
            // Without its causes, which may name paths of this machine.
            text: error.to_string(),
        }
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the conversation cannot be kept: {}", error.kind()),
        )
    }
}
