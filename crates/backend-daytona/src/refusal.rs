//! [`Refusal`]: a request that the service refused, and the error that callers get for it.

use std::error::Error as StdError;
use std::time::Duration;

use backend_core::{Error, ErrorKind, Quoted};
use serde_json::Value;

/// The longest wait that a service can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// A request that the service refused. It is the source of an error:
///
/// ```
/// use backend_daytona::{Refusal, RefusalKind};
///
/// fn is_over_quota(error: &backend_core::Error) -> bool {
///     Refusal::of(error).is_some_and(|refusal| refusal.kind == RefusalKind::Quota)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the service answered with status {status}")]
#[non_exhaustive]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The category.
    pub kind: RefusalKind,
    /// The service's own code, if it sends codes.
    pub code: Option<String>,
    /// The service's message. Empty if it sent none.
    pub message: String,
    /// The time after which the request may be repeated, if the service names one.
    pub retry_after: Option<Duration>,
}

/// The category of a [`Refusal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The credentials are not accepted.
    Auth,
    /// The credentials do not allow it, or the organization is suspended.
    Forbidden,
    /// A quota of the organization is used up.
    Quota,
    /// Too many requests.
    RateLimited,
    /// The sandbox is changing its state.
    Busy,
    /// The request contradicts the current state, such as a name that is taken.
    Conflict,
    /// There is no such thing.
    Missing,
    /// It has ended: a session, a command.
    Gone,
    /// The request is invalid.
    Invalid,
    /// A time limit ran out.
    Timeout,
    /// The service, or the sandbox behind it, does not work.
    Server,
    /// Any other answer.
    Other,
}

/// The text of refusals while a sandbox changes its state. Until 2026 their status was 400.
const BUSY: &str = "state change in progress";
/// The texts of refusals for a sandbox that does not run, whose status is 400 or 404.
const NOT_RUNNING: [&str; 3] = [
    "failed to resolve container ip",
    "is the sandbox started",
    "container not found",
];
/// The texts of refusals for a quota, whose status is 400 or 403.
const QUOTA: [&str; 3] = ["limit exceeded", "quota", "limit reached"];

impl Refusal {
    /// Returns the refusal that caused `error`, if one did.
    pub fn of(error: &Error) -> Option<&Self> {
        source_of(error)
    }

    /// Reads an answer that is no success. Its body may be JSON, text, HTML or empty.
    pub(crate) fn read(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let document: Option<Value> = serde_json::from_slice(body).ok();
        let text = |keys: &[&str]| {
            let document = document.as_ref()?;
            let mut found = keys.iter().filter_map(|key| document.get(key));
            found.find_map(|value| words(value).filter(|words| !words.is_empty()))
        };
        let message = text(&["message", "error", "errors"]);
        let plain = || match document {
            Some(_) => String::new(),
            None => String::from_utf8_lossy(body).trim().to_owned(),
        };
        let message = message.unwrap_or_else(plain);
        let code = text(&["code", "error_code"]);
        Self {
            status,
            kind: RefusalKind::of(status, &message, code.as_deref()),
            code,
            message,
            retry_after,
        }
    }

    /// Returns the error for callers: why, and what to do.
    pub(crate) fn error(self) -> Error {
        let (kind, what, next) = match self.kind {
            RefusalKind::Auth => (
                ErrorKind::Auth,
                "the service does not accept the credentials",
                "; check the key in DAYTONA_API_KEY or in the key file, or DAYTONA_JWT_TOKEN and DAYTONA_ORGANIZATION_ID",
            ),
            RefusalKind::Forbidden => (
                ErrorKind::PermissionDenied,
                "the service does not allow it",
                "; use a key with the scopes write:sandboxes and delete:sandboxes",
            ),
            RefusalKind::Quota => (
                ErrorKind::Unavailable,
                "a quota of the organization is used up",
                "; delete sandboxes, or raise the quota",
            ),
            RefusalKind::RateLimited => (
                ErrorKind::RateLimited,
                "the service asks to be called less often",
                "; try again in a moment",
            ),
            RefusalKind::Busy => (
                ErrorKind::Unavailable,
                "the sandbox is changing its state",
                "; try again in a moment",
            ),
            RefusalKind::Conflict => (
                ErrorKind::Conflict,
                "the service refuses it",
                "; look at the state of the sandbox",
            ),
            RefusalKind::Missing => (
                ErrorKind::NotFound,
                "the service does not find it",
                "; see whether it was deleted",
            ),
            RefusalKind::Gone => (ErrorKind::Unavailable, "it has ended", "; start it again"),
            RefusalKind::Invalid => (
                ErrorKind::Config,
                "the service refuses the request",
                "; see whether the options are right",
            ),
            RefusalKind::Timeout => (
                ErrorKind::Timeout,
                "the service ran out of time",
                "; try again",
            ),
            RefusalKind::Server => (
                ErrorKind::Unavailable,
                "the service or the sandbox does not work",
                "; try again in a moment",
            ),
            RefusalKind::Other => (
                ErrorKind::Unavailable,
                "the service gave an unexpected answer",
                "; see whether the URL is that of a Daytona API",
            ),
        };
        let status = self.status;
        let said = match self.message.as_str() {
            "" => format!("{what} (status {status})"),
            message => format!("{what}: {} (status {status})", Quoted::new(message)),
        };
        Error::new(kind, format!("{said}{next}")).with_source(self)
    }
}

impl RefusalKind {
    fn of(status: u16, message: &str, code: Option<&str>) -> Self {
        let message = message.to_ascii_lowercase();
        let has = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
        match status {
            400 | 409 if message.contains(BUSY) => Self::Busy,
            400 | 404 if has(&NOT_RUNNING) => Self::Server,
            400 | 403 if has(&QUOTA) => Self::Quota,
            400 | 413 | 422 => Self::Invalid,
            401 => Self::Auth,
            403 => Self::Forbidden,
            404 => Self::Missing,
            408 => Self::Timeout,
            409 => Self::Conflict,
            410 => Self::Gone,
            429 => Self::RateLimited,
            // A session that is unknown to the daemon is a failure of its own to it.
            500 if code == Some("NOT_FOUND") || message.contains("not found: session") => {
                Self::Missing
            }
            500..=599 => Self::Server,
            _ => Self::Other,
        }
    }
}

/// Returns the words of a message: a text, or a list of texts.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(values) => {
            let texts: Vec<_> = values.iter().filter_map(Value::as_str).collect();
            Some(texts.join(", "))
        }
        _ => None,
    }
}

/// Reads the headers in which the service says when to try again: `Retry-After`, and one
/// with the name of each limit, in seconds. The longest counts.
pub(crate) fn retry_after<'a>(
    headers: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> Option<Duration> {
    let times = headers.filter_map(|(name, value)| {
        let is_one = name == "retry-after" || name.starts_with("retry-after-");
        let seconds = is_one.then(|| std::str::from_utf8(value).ok())??;
        let seconds: f64 = seconds.trim().parse().ok()?;
        let time = Duration::try_from_secs_f64(seconds).ok()?;
        Some(time.min(LONGEST_WAIT))
    });
    times.max()
}

/// A sandbox was asked for and did not start in time. It may still start, and is then
/// paid for: use it by its name, or delete it.
///
/// It is the source of an error of kind `Timeout`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the sandbox {name} may still start")]
#[non_exhaustive]
pub struct CreateTimeout {
    /// Its name, by which it can be attached to and deleted.
    pub name: String,
    /// Its id, if the service has told it.
    pub id: Option<String>,
}

impl CreateTimeout {
    pub(crate) fn new(name: &str, id: Option<String>) -> Self {
        let name = name.to_owned();
        Self { name, id }
    }

    /// Returns the timeout that caused `error`, if one did.
    pub fn of(error: &Error) -> Option<&Self> {
        source_of(error)
    }

    pub(crate) fn error(self, seconds: u64, state: &str) -> Error {
        let shown = match &self.id {
            Some(id) => format!("{} with the id {id}", self.name),
            None => self.name.clone(),
        };
        let text = format!(
            "the sandbox {shown} did not start in {seconds} s and is {state}; it may still start: call again to wait for it, or delete it"
        );
        Error::new(ErrorKind::Timeout, text).with_source(self)
    }
}

fn source_of<T: StdError + 'static>(error: &Error) -> Option<&T> {
    let mut next = StdError::source(error);
    while let Some(source) = next {
        if let Some(found) = source.downcast_ref() {
            return Some(found);
        }
        next = source.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: u16, body: &str) -> RefusalKind {
        Refusal::read(status, None, body.as_bytes()).kind
    }

    #[test]
    fn answers_are_understood_whatever_their_form() {
        let said = |message: &str| format!(r#"{{"statusCode":400,"message":"{message}"}}"#);
        let busy = said("Sandbox state change in progress");
        assert_eq!(kind(409, &busy), RefusalKind::Busy);
        assert_eq!(kind(400, &busy), RefusalKind::Busy, "before 2026");
        assert_eq!(
            kind(409, &said("Sandbox with name a already exists")),
            RefusalKind::Conflict
        );
        let down = said(
            "bad request: failed to resolve container IP after 3 attempts: … Is the Sandbox started?",
        );
        assert_eq!(kind(400, &down), RefusalKind::Server);
        assert_eq!(
            kind(404, &said("sandbox container not found")),
            RefusalKind::Server
        );
        assert_eq!(
            kind(400, &said("Total CPU limit exceeded. Maximum allowed: 10.")),
            RefusalKind::Quota
        );
        assert_eq!(
            kind(400, &said("Snapshot x is inactive")),
            RefusalKind::Invalid
        );
        for (status, expected) in [
            (400, RefusalKind::Invalid),
            (401, RefusalKind::Auth),
            (403, RefusalKind::Forbidden),
            (404, RefusalKind::Missing),
            (408, RefusalKind::Timeout),
            (410, RefusalKind::Gone),
            (429, RefusalKind::RateLimited),
            (502, RefusalKind::Server),
            (307, RefusalKind::Other),
        ] {
            for body in ["", "<html>", "{}", "[1]", "null", "\u{0}"] {
                assert_eq!(kind(status, body), expected, "{status} {body:?}");
            }
        }
        let lost = r#"{"message":"failed to execute command: not found: session not found"}"#;
        assert_eq!(kind(500, lost), RefusalKind::Missing);
    }

    #[test]
    fn messages_are_found_in_all_their_places() {
        let message = |body: &str| Refusal::read(400, None, body.as_bytes()).message;
        assert_eq!(message(r#"{"message":["a","b"],"error":"c"}"#), "a, b");
        assert_eq!(message(r#"{"message":"","error":"c"}"#), "c");
        assert_eq!(
            message(r#"{"errors":["x: no space"],"files":[]}"#),
            "x: no space"
        );
        assert_eq!(message("404 page not found\n"), "404 page not found");
        assert_eq!(message(r#"{"message":7}"#), "");
        let coded = Refusal::read(404, None, br#"{"error_code":"FILE_NOT_FOUND"}"#);
        assert_eq!(coded.code.as_deref(), Some("FILE_NOT_FOUND"));
    }

    #[test]
    fn a_refusal_is_found_in_its_error() {
        let time = Some(Duration::from_secs(3));
        let error = Refusal::read(429, time, b"").error().on("daytona");
        assert_eq!(error.kind(), ErrorKind::RateLimited);
        let refusal = Refusal::of(&error).unwrap();
        assert_eq!((refusal.status, refusal.retry_after), (429, time));
        assert_eq!(CreateTimeout::of(&error), None);
        let late = CreateTimeout::new("box", Some("id-1".into())).error(60, "creating");
        assert!(late.message().contains("id-1"), "{late}");
        let found = CreateTimeout::of(&late).unwrap();
        assert_eq!(found.id.as_deref(), Some("id-1"));
    }

    #[test]
    fn the_longest_wait_counts() {
        let wait = |headers: &[(&str, &str)]| {
            let headers = headers.iter();
            retry_after(headers.map(|(name, value)| (*name, value.as_bytes())))
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(wait(&[("retry-after", "2")]), seconds(2));
        let several = [
            ("retry-after-authenticated", "1"),
            ("retry-after-sandbox-create", "7"),
            ("x-ratelimit-reset-sandbox-create", "90"),
        ];
        assert_eq!(wait(&several), seconds(7));
        assert_eq!(wait(&[("retry-after", "1e300")]), None);
        assert_eq!(wait(&[("retry-after", "-1")]), None);
        assert_eq!(wait(&[("retry-after", "999999999")]), Some(LONGEST_WAIT));
        assert_eq!(
            wait(&[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")]),
            None
        );
    }
}
