//! [`Origins`]: the web pages that may send requests, and the CORS headers for
//! browsers.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use hyper::http::HeaderValue;
use hyper::{HeaderMap, Method};

/// The origins of web pages that may send requests.
pub(super) struct Origins(Vec<String>);

/// The origin of a request.
pub(super) enum RequestOrigin {
    /// Not sent by a web page.
    NotABrowser,
    /// An allowed page.
    Allowed(HeaderValue),
    /// A page that is not allowed.
    Denied,
}

impl Origins {
    pub(super) fn new(origins: &[String]) -> Self {
        Self(origins.iter().map(|origin| normalized(origin)).collect())
    }

    pub(super) fn check(&self, headers: &HeaderMap) -> RequestOrigin {
        let mut given = headers.get_all(ORIGIN).iter();
        match (given.next(), given.next()) {
            (None, _) => RequestOrigin::NotABrowser,
            (Some(origin), None) if origin.to_str().is_ok_and(|text| self.has(text)) => {
                RequestOrigin::Allowed(origin.clone())
            }
            _ => RequestOrigin::Denied,
        }
    }

    fn has(&self, origin: &str) -> bool {
        self.0.contains(&normalized(origin))
    }
}

/// Normalizes an origin for comparison: lower case, without the default port of its
/// scheme.
fn normalized(origin: &str) -> String {
    let origin = origin.trim().trim_end_matches('/').to_ascii_lowercase();
    let port = match origin.split_once("://") {
        Some(("http", _)) => ":80",
        Some(("https", _)) => ":443",
        _ => return origin,
    };
    origin.strip_suffix(port).unwrap_or(&origin).to_owned()
}

/// Returns `true` for a CORS preflight request. Browsers send it without a token.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Tells the browser that the page may read the response.
pub(super) fn allow_response(headers: &mut HeaderMap, page: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, page);
    headers.append(VARY, HeaderValue::from_static("origin"));
    let exposed = HeaderValue::from_static("mcp-session-id, mcp-protocol-version");
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

/// Tells the browser what the page may send.
pub(super) fn allow_request(headers: &mut HeaderMap) {
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "agentbox-session, authorization, content-type, last-event-id, mcp-protocol-version, \
             mcp-session-id",
        ),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_compared_whole() {
        let given = [
            "https://good.example:443/",
            "http://other.example:8080",
            "http://localhost:6274",
        ];
        let origins = Origins::new(&given.map(str::to_owned));
        for good in [
            "https://good.example",
            "https://GOOD.example:443",
            "http://other.example:8080",
            "http://localhost:6274",
        ] {
            assert!(origins.has(good), "{good}");
        }
        for bad in [
            "",
            "null",
            "http://good.example",
            "https://good.example:8443",
            "https://good.example.evil.example",
            "https://evil.example",
            "http://other.example",
            "http://localhost",
            "http://localhost:6275",
            "https://localhost:6274",
            "http://127.0.0.1:6274",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "http://localhost:80@evil.example",
            "http://evil.example:80#localhost",
            "http://127.0.0.1.evil.example:80",
            "file://localhost",
            "localhost",
            "://localhost",
            "http://localhost:",
            "http://[::1",
        ] {
            assert!(!origins.has(bad), "{bad}");
        }
    }
}
