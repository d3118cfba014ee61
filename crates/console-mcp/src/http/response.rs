//! The server's own responses.

use std::convert::Infallible;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::http::HeaderValue;

/// A response, of the type that rmcp's have.
pub(super) type Response = hyper::Response<BoxBody<Bytes, Infallible>>;

/// Builds a response without a body.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Full::<Bytes>::default().boxed());
    *response.status_mut() = status;
    response
}

/// Builds a response with a text for people.
pub(super) fn text(status: StatusCode, text: impl Into<Bytes>) -> Response {
    with_type(status, text, "text/plain; charset=utf-8")
}

/// Builds a response with a JSON document.
pub(super) fn json(status: StatusCode, document: String) -> Response {
    with_type(status, document, "application/json")
}

fn with_type(status: StatusCode, body: impl Into<Bytes>, media_type: &'static str) -> Response {
    let mut response = empty(status);
    *response.body_mut() = Full::new(body.into()).boxed();
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}
