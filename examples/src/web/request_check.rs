//! The check of each request, and the headers of each response.
//!
//! A web page of another site can make a browser send requests here. It cannot read the
//! responses, but a request alone can do harm. So each must name this server as its host,
//! which refuses pages that point their own name at this machine (DNS rebinding), and come
//! from its own pages.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::failure::Failure;
use super::{App, Program};

/// Scripts and everything else only from this server, and no script in a page's text.
pub const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; object-src 'none'";

/// Checks a request before a route sees it.
pub(super) async fn check<P: Program>(
    State(app): State<Arc<App<P>>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match judge(&app.hosts, request.headers()) {
        Ok(()) => next.run(request).await,
        Err(why) => Failure::new(StatusCode::FORBIDDEN, why).into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, app.program.policy()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // The path of a session's page is a secret.
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn judge(hosts: &[String], headers: &HeaderMap) -> Result<(), &'static str> {
    let one = |name: HeaderName| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok().map(str::to_ascii_lowercase),
            _ => None,
        }
    };
    let host = one(HOST).ok_or("the request needs one Host header")?;
    if !hosts.contains(&host) {
        return Err("this is not the server's name; start it with --host NAME");
    }
    if headers.contains_key(ORIGIN) {
        // Behind a proxy, the scheme is that of the proxy.
        let own = |origin: &str| {
            let (scheme, authority) = origin.split_once("://")?;
            Some(matches!(scheme, "http" | "https") && authority == host)
        };
        let is_own = one(ORIGIN).and_then(|origin| own(&origin));
        if is_own != Some(true) {
            return Err("pages of other sites may not use this server");
        }
    }
    let site = one(HeaderName::from_static("sec-fetch-site"));
    let mode = one(HeaderName::from_static("sec-fetch-mode"));
    match (site.as_deref(), mode.as_deref()) {
        // A link on another page may lead here.
        (None | Some("same-origin" | "none"), _) | (_, Some("navigate")) => Ok(()),
        _ => Err("pages of other sites may not use this server"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_other_sites_are_refused() {
        let hosts = ["127.0.0.1:80".to_owned(), "chat.example".to_owned()];
        let judged = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_static(value));
            }
            judge(&hosts, &headers).is_ok()
        };
        let here = ("host", "127.0.0.1:80");
        assert!(judged(&[here]));
        assert!(judged(&[("host", "Chat.Example")]));
        assert!(judged(&[here, ("origin", "http://127.0.0.1:80")]));
        assert!(judged(&[
            ("host", "chat.example"),
            ("origin", "https://chat.example")
        ]));
        assert!(judged(&[here, ("sec-fetch-site", "none")]));
        assert!(judged(&[
            here,
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate")
        ]));
        assert!(!judged(&[]));
        assert!(!judged(&[here, here]));
        assert!(!judged(&[("host", "evil.example")]));
        assert!(!judged(&[("host", "127.0.0.1:81")]));
        assert!(!judged(&[here, ("origin", "null")]));
        assert!(!judged(&[here, ("origin", "http://evil.example")]));
        assert!(!judged(&[here, ("origin", "http://chat.example")]));
        assert!(!judged(&[here, ("origin", "http://127.0.0.1:80.evil")]));
        assert!(!judged(&[here, ("sec-fetch-site", "cross-site")]));
        assert!(!judged(&[
            here,
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-mode", "cors")
        ]));
    }
}
