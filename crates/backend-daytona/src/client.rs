//! [`Client`]: HTTP requests with a credential, a timeout each, replies of limited size,
//! and repetition where it is safe.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::ops::Range;
use std::time::Duration;

use backend_core::{Error, ErrorKind, Result};
use bytes::{Bytes, BytesMut};
use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RANGE, USER_AGENT,
};
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response, Url};
use sandbox_wire::engine;
use tokio::time::{Instant, timeout};

use crate::refusal::{Refusal, RefusalKind, retry_after};
use crate::secret::Secret;

/// The version of the protocol between Daytona's own clients and its service. The service
/// chooses the form of its answers by it; it is no version of this crate.
const PROTOCOL_VERSION: &str = "0.226.1";
/// The name of this client.
const CLIENT: &str = "agentbox";

/// The time for a connection to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The time after which an unused connection is closed, less than that of the service.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Probes of a connection on which nothing is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Unused connections that are kept.
const CONNECTIONS: usize = 32;

/// The longest error message of the service.
const ERROR_BYTES: usize = 64 * 1024;
/// The time for the message of an answer to an upgrade. What answers may be any program.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// The pauses before a request is repeated that was lost.
const LOST_PAUSES: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_millis(1_000),
];
/// The pauses before a request is repeated whose valid credentials were refused. The
/// service remembers invalid ones for five seconds, and sometimes valid ones too.
const FLAKE_PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(5_500)];
/// The longest time that a request waits because the service asks for it, in all.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The pause if the service names none, and the shortest if it does.
const RATE_PAUSE: Duration = Duration::from_secs(1);
const SHORTEST_RATE_PAUSE: Duration = Duration::from_millis(100);

/// Whether a request may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Also if it may have been performed.
    Safe,
    /// Only if it was certainly not performed.
    Unperformed,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    method: Method,
    url: String,
    body: Option<(String, Bytes)>,
    /// The bytes of a file that are asked for.
    part: Option<Range<u64>>,
    timeout: Duration,
    repeat: Repeat,
    /// The size of the largest reply in bytes.
    limit: usize,
    with_credential: bool,
    is_activity: bool,
    /// Whether it goes through the proxy to sandboxes, which sometimes refuses valid
    /// credentials.
    through_proxy: bool,
}

impl Call {
    pub(crate) fn new(method: Method, url: String, repeat: Repeat) -> Self {
        Self {
            method,
            url,
            body: None,
            part: None,
            timeout: Duration::from_secs(30),
            repeat,
            limit: 1024 * 1024,
            with_credential: true,
            is_activity: true,
            through_proxy: false,
        }
    }

    /// Creates a request that reads.
    pub(crate) fn get(url: String) -> Self {
        Self::new(Method::GET, url, Repeat::Safe)
    }

    pub(crate) fn json(mut self, value: &serde_json::Value) -> Self {
        self.body = Some(("application/json".to_owned(), value.to_string().into()));
        self
    }

    /// Sets a form as the body.
    pub(crate) fn form(mut self, boundary: &str, body: Bytes) -> Self {
        self.body = Some((format!("multipart/form-data; boundary={boundary}"), body));
        self
    }

    /// Asks for a part of a file, which must not be empty.
    pub(crate) fn part(mut self, part: Range<u64>) -> Self {
        self.part = Some(part);
        self
    }

    /// Sets the time for each attempt.
    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the size of the largest reply.
    pub(crate) fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Leaves the credential out.
    pub(crate) fn anonymous(mut self) -> Self {
        self.with_credential = false;
        self
    }

    /// Goes through the proxy to sandboxes.
    pub(crate) fn through_proxy(mut self) -> Self {
        self.through_proxy = true;
        self
    }

    /// Does not count as use of the sandbox.
    pub(crate) fn unnoticed(mut self) -> Self {
        self.is_activity = false;
        self
    }
}

/// Why a request has no answer.
#[derive(Debug)]
enum Failure {
    Refused(Refusal),
    /// It is unknown whether it was performed, unless `unsent`.
    Lost {
        error: Error,
        unsent: bool,
    },
    TooLarge(usize),
}

/// The HTTP client of one account.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    /// The headers of requests with a credential.
    credential: HeaderMap,
    /// The credential, which no message may show.
    secret: Secret,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// Creates a client. `organization` is sent with a credential that belongs to several.
    pub(crate) fn new(
        secret: Secret,
        organization: Option<&str>,
        system_proxy: bool,
    ) -> Result<Self> {
        // With several cryptographic libraries in a program and no choice among them, the
        // client would panic. A choice that was made stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .default_headers(common_headers())
            .redirect(Policy::none())
            .http1_only()
            .tcp_nodelay(true)
            .tcp_keepalive(KEEP_ALIVE)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(CONNECTIONS);
        if !system_proxy {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| {
            let text = "no TLS client could be made; see whether the host has certificates";
            Error::new(ErrorKind::Config, text).with_source(error.without_url())
        })?;
        let mut credential = HeaderMap::new();
        let bearer = format!("Bearer {}", secret.expose());
        credential.insert(AUTHORIZATION, hidden(&bearer, "the credential")?);
        if let Some(organization) = organization {
            let name = HeaderName::from_static("x-daytona-organization-id");
            credential.insert(name, hidden(organization, "the organization")?);
        }
        Ok(Self {
            http,
            credential,
            secret,
        })
    }

    /// Sends a request, and again if that is safe. Returns the body of the answer.
    ///
    /// # Errors
    ///
    /// With a [`Refusal`] as its source if the service answered; else `Unavailable`, or
    /// `Timeout` if it may have been performed.
    pub(crate) async fn call(&self, call: &Call) -> Result<Bytes> {
        let began = Instant::now();
        let mut attempt = 0;
        loop {
            let failure = match timeout(call.timeout, self.once(call)).await {
                Ok(Ok(body)) => return Ok(body),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::late(call),
            };
            let Some(pause) = pause(&failure, call, attempt, began.elapsed()) else {
                return Err(self.error(failure));
            };
            attempt += 1;
            tokio::time::sleep(pause).await;
        }
    }

    async fn once(&self, call: &Call) -> std::result::Result<Bytes, Failure> {
        let mut response = self.request(call).send().await.map_err(Failure::lost)?;
        let status = response.status();
        if status.is_success() {
            return read(&mut response, call.limit).await;
        }
        // A message that is cut off is better than none.
        let body = read_start(&mut response, ERROR_BYTES).await;
        let wait = retry_after(headers(&response));
        Err(Failure::Refused(Refusal::read(
            status.as_u16(),
            wait,
            &body,
        )))
    }

    /// Returns a request with all its headers.
    pub(crate) fn request(&self, call: &Call) -> RequestBuilder {
        let mut request = self.http.request(call.method.clone(), &call.url);
        if call.with_credential {
            request = request.headers(self.credential.clone());
        }
        if !call.is_activity {
            request = request.header("x-daytona-skip-last-activity-update", "true");
        }
        if let Some(part) = &call.part {
            let last = part.end.saturating_sub(1);
            request = request.header(RANGE, format!("bytes={}-{last}", part.start));
        }
        match &call.body {
            Some((kind, body)) => request.header(CONTENT_TYPE, kind).body(body.clone()),
            None => request,
        }
    }

    /// Returns the error for an answer that was not expected, such as one to an upgrade.
    pub(crate) async fn refusal(&self, mut response: Response) -> Error {
        let body = timeout(MESSAGE_TIMEOUT, read_start(&mut response, ERROR_BYTES)).await;
        let body = body.unwrap_or_default();
        let (status, wait) = (response.status().as_u16(), retry_after(headers(&response)));
        self.error(Failure::Refused(Refusal::read(status, wait, &body)))
    }

    /// Returns the error for a request without an answer.
    pub(crate) fn unanswered(&self, error: reqwest::Error) -> Error {
        self.error(Failure::lost(error))
    }

    fn error(&self, failure: Failure) -> Error {
        match failure {
            Failure::Refused(mut refusal) => {
                let secret = self.secret.expose();
                let code = refusal.code.as_mut();
                for text in [Some(&mut refusal.message), code].into_iter().flatten() {
                    if text.contains(secret) {
                        *text = text.replace(secret, "…");
                    }
                }
                refusal.error()
            }
            Failure::Lost { error, .. } => error,
            Failure::TooLarge(limit) => Error::too_large(format!(
                "the service sent more than {limit} bytes; see whether the URL is that of a Daytona API"
            )),
        }
    }
}

impl Failure {
    fn lost(error: reqwest::Error) -> Self {
        let unsent = error.is_connect();
        // The rest of a URL may have a secret in it.
        let origin = error.url().map(|url| url.origin().ascii_serialization());
        let service = origin.map_or_else(String::new, |origin| format!(" {origin}"));
        let error = error.without_url();
        let text = match engine::io_kind(&error) {
            Some(io::ErrorKind::ConnectionRefused) => {
                format!("no service listens at{service}; see whether the URL of the API is right")
            }
            Some(io::ErrorKind::InvalidData) => format!(
                "the connection to the service{service} is not secure; see whether a proxy changes it"
            ),
            _ if error.is_builder() => {
                "the address of the service is malformed; see whether the URL of the API is right"
                    .to_owned()
            }
            _ => format!(
                "the service{service} does not answer; see whether it can be reached from here"
            ),
        };
        let error = Error::unavailable(text).with_source(error);
        Self::Lost { error, unsent }
    }

    fn late(call: &Call) -> Self {
        let seconds = call.timeout.as_secs();
        let origin = Url::parse(&call.url).map(|url| url.origin().ascii_serialization());
        let service = origin.map_or_else(|_| String::new(), |origin| format!(" {origin}"));
        let text = format!(
            "the service{service} did not answer in {seconds} s; see whether it works, and try again"
        );
        Self::Lost {
            error: Error::new(ErrorKind::Timeout, text),
            unsent: false,
        }
    }
}

/// Returns the pause after which a failed request is repeated; `None` if it is not.
fn pause(failure: &Failure, call: &Call, attempt: usize, passed: Duration) -> Option<Duration> {
    match failure {
        Failure::Refused(refusal) if refusal.kind == RefusalKind::RateLimited => {
            let pause = refusal.retry_after.unwrap_or(RATE_PAUSE);
            let pause = pause.max(SHORTEST_RATE_PAUSE);
            // Many clients are told the same time.
            let pause = pause + pause.mul_f64(fastrand::f64() / 10.0);
            (passed + pause <= LONGEST_WAIT).then_some(pause)
        }
        Failure::Refused(refusal) if refusal.kind == RefusalKind::Auth => {
            let pause = FLAKE_PAUSES.get(attempt).copied();
            pause.filter(|_| call.through_proxy)
        }
        Failure::Refused(refusal) if matches!(refusal.status, 502..=504) => {
            let asked = refusal.retry_after.unwrap_or_default();
            let pause = LOST_PAUSES.get(attempt).copied()?.max(asked);
            (call.repeat == Repeat::Safe && pause <= LONGEST_WAIT).then_some(pause)
        }
        // The caller has waited long enough.
        Failure::Lost { error, .. } if error.kind() == ErrorKind::Timeout => None,
        Failure::Lost { unsent: false, .. } => {
            let pause = LOST_PAUSES.get(attempt).copied();
            pause.filter(|_| call.repeat == Repeat::Safe)
        }
        Failure::Lost { unsent: true, .. } => LOST_PAUSES.get(attempt).copied(),
        Failure::Refused(_) | Failure::TooLarge(_) => None,
    }
}

fn common_headers() -> HeaderMap {
    HeaderMap::from_iter([
        (USER_AGENT, HeaderValue::from_static(CLIENT)),
        (
            HeaderName::from_static("x-daytona-source"),
            HeaderValue::from_static(CLIENT),
        ),
        (
            HeaderName::from_static("x-daytona-sdk-version"),
            HeaderValue::from_static(PROTOCOL_VERSION),
        ),
    ])
}

/// Returns a header that is not logged.
fn hidden(text: &str, what: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        let text = format!("{what} holds characters that a header cannot; give another");
        Error::new(ErrorKind::Config, text).on("daytona")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn headers(response: &Response) -> impl Iterator<Item = (&str, &[u8])> {
    let all = response.headers().iter();
    all.map(|(name, value)| (name.as_str(), value.as_bytes()))
}

async fn read(response: &mut Response, limit: usize) -> std::result::Result<Bytes, Failure> {
    let mut body = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(Failure::lost)? {
        if body.len() + piece.len() > limit {
            return Err(Failure::TooLarge(limit));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

async fn read_start(response: &mut Response, limit: usize) -> BytesMut {
    let mut body = BytesMut::new();
    while body.len() < limit
        && let Ok(Some(piece)) = response.chunk().await
    {
        body.extend_from_slice(&piece);
    }
    body.truncate(limit);
    body
}

/// The HTTP status of the service's answer, if it answered.
pub(crate) fn status(error: &Error) -> Option<u16> {
    Refusal::of(error).map(|refusal| refusal.status)
}

/// Whether it is unknown if a request was performed.
pub(crate) fn is_lost(error: &Error) -> bool {
    match Refusal::of(error) {
        Some(refusal) => matches!(refusal.status, 500 | 502..=504),
        None => {
            let source = StdError::source(error);
            let unsent = source.and_then(|source| source.downcast_ref::<reqwest::Error>());
            !unsent.is_some_and(reqwest::Error::is_connect)
        }
    }
}

#[cfg(test)]
mod tests;
