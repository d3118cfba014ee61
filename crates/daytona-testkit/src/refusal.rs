//! [`Refusal`]: an error as an answer, in the form of the part of the service that it
//! comes from.

use std::io;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::json;

/// The result of a handler.
pub(crate) type Answer<T = Response> = Result<T, Refusal>;

/// The part of the service that refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The control plane.
    Control,
    /// The toolbox.
    Toolbox,
    /// The files of the toolbox: without a body, or with typed errors.
    Files,
    /// The terminals of the toolbox.
    Terminals,
    /// The proxy in front of the toolbox.
    Proxy,
}

/// An error that a client gets.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    source: Source,
    status: StatusCode,
    message: String,
}

impl Refusal {
    fn new(source: Source, status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            source,
            status,
            message: message.into(),
        }
    }

    /// An error of the control plane.
    pub(crate) fn control(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(Source::Control, status, message)
    }

    /// An error of the toolbox.
    pub(crate) fn toolbox(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(Source::Toolbox, status, message)
    }

    /// An error of the toolbox's terminals.
    pub(crate) fn terminal(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(Source::Terminals, status, message)
    }

    /// An error of the toolbox's files.
    pub(crate) fn files(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(Source::Files, status, message)
    }

    /// A failed operation on a file, with the status that the toolbox has for it.
    pub(crate) fn of_file(error: &io::Error) -> Self {
        let status = match error.kind() {
            io::ErrorKind::NotFound => StatusCode::NOT_FOUND,
            io::ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::files(status, error.to_string())
    }

    /// An error of the proxy in front of the toolbox.
    pub(crate) fn proxy(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(Source::Proxy, status, message)
    }

    /// The proxy's answer for a sandbox that does not run.
    pub(crate) fn not_started() -> Self {
        let message = "bad request: failed to resolve container IP after 3 attempts: no IP address found. Is the Sandbox started?";
        Self::proxy(StatusCode::BAD_REQUEST, message)
    }

    /// The control plane's answer for a sandbox whose state changes.
    pub(crate) fn busy() -> Self {
        Self::control(StatusCode::CONFLICT, "Sandbox state change in progress")
    }

    /// Something that only a defect or a broken machine causes.
    pub(crate) fn internal(error: impl std::fmt::Display) -> Self {
        Self::toolbox(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }

    /// Returns the answer to a request.
    pub(crate) fn render(&self, method: &Method, path: &str, is_typed: bool) -> Response {
        let Self {
            source,
            status,
            message,
        } = self;
        let code = status.as_u16();
        let timestamp = Timestamp::now().to_string();
        let reason = status.canonical_reason().unwrap_or_default();
        let body = match source {
            Source::Files if !is_typed => return status.into_response(),
            Source::Terminals => json!({"error": message}),
            Source::Control => json!({
                "path": path, "timestamp": timestamp, "statusCode": code, "error": reason,
                "message": message,
            }),
            Source::Proxy => json!({
                "path": path, "timestamp": timestamp, "statusCode": code, "error": reason,
                "message": message, "source": "DAYTONA_PROXY",
            }),
            Source::Toolbox | Source::Files => {
                // The daemon does not know the part of the path that is the proxy's.
                let path = path.splitn(4, '/').nth(3).unwrap_or_default();
                let mut body = json!({
                    "statusCode": code, "message": message, "code": self.code(),
                    "timestamp": timestamp, "path": format!("/{path}"), "method": method.as_str(),
                });
                if is_typed {
                    body["source"] = json!("DAYTONA_DAEMON");
                }
                body
            }
        };
        (*status, Json(body)).into_response()
    }

    fn code(&self) -> &'static str {
        match (self.source, self.status) {
            (Source::Files, StatusCode::NOT_FOUND) => "FILE_NOT_FOUND",
            (Source::Files, StatusCode::FORBIDDEN) => "FILE_ACCESS_DENIED",
            (_, StatusCode::NOT_FOUND) => "NOT_FOUND",
            (_, StatusCode::REQUEST_TIMEOUT) => "REQUEST_TIMEOUT",
            (_, StatusCode::CONFLICT) => "CONFLICT",
            (_, StatusCode::GONE) => "GONE",
            (_, StatusCode::BAD_REQUEST) => "BAD_REQUEST",
            _ => "INTERNAL_SERVER_ERROR",
        }
    }
}

/// Leaves the body to [`Refusal::render`], which needs to know the request.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
