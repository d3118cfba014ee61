//! `file:` URIs and paths.

use std::borrow::Cow;

use backend_core::VPath;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The ASCII characters of a path that are encoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Returns the URI of a file in the backend.
pub(crate) fn of(path: &VPath) -> String {
    format!("file://{}", utf8_percent_encode(path.as_str(), ENCODED))
}

/// Returns the absolute path of a `file:` URI of this machine, with its `.` and `..`.
pub(crate) fn path(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_at_checked(5)?;
    if !scheme.eq_ignore_ascii_case("file:") {
        return None;
    }
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/')?);
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return None;
            }
            path
        }
    };
    if !path.starts_with('/') || path.contains(['?', '#']) {
        return None;
    }
    // The decoder would keep a `%` without two digits.
    let is_escape = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !path.split('%').skip(1).all(is_escape) {
        return None;
    }
    let decoded = percent_decode_str(path).decode_utf8();
    decoded.ok().map(Cow::into_owned)
}

/// Guesses the media type from a file name.
pub(crate) fn media_type(name: &str) -> Option<&'static str> {
    let (_, suffix) = name.rsplit_once('.')?;
    Some(match suffix.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "md" => "text/markdown",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "js" | "mjs" => "text/javascript",
        "txt" | "log" | "rs" | "py" | "toml" | "yaml" | "yml" | "sh" | "c" | "h" | "cpp" | "go"
        | "java" | "ts" | "tsx" | "jsx" => "text/plain",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for name in ["/", "/a", "/a b/ü.txt", "/100%", "/a#b?c", "/[x]", "/a%41"] {
            let vpath = VPath::parse(name).unwrap();
            assert_eq!(path(&of(&vpath)).as_deref(), Some(name), "{name}");
        }
        assert_eq!(of(&VPath::parse("/a b").unwrap()), "file:///a%20b");
    }

    #[test]
    fn what_is_no_file_here_is_none() {
        assert_eq!(path("file://localhost/a").as_deref(), Some("/a"));
        assert_eq!(path("FILE:///a%2Fb").as_deref(), Some("/a/b"));
        assert_eq!(path("file:/a").as_deref(), Some("/a"));
        for uri in [
            "",
            "file:",
            "file://",
            "file:a",
            "http:///a",
            "file://other/a",
            "file:///a?b",
            "file:///a#b",
            "file:///%zz",
            "file:///%4",
            "file:///%ff",
            "filé:///a",
            "/a",
        ] {
            assert_eq!(path(uri), None, "{uri}");
        }
    }
}
