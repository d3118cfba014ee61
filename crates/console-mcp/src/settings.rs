//! [`Settings`], [`HttpSettings`], [`Token`] and [`ServeError`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::host_name::HostName;

/// The reason a server ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The transport failed.
    #[error("{0}")]
    Transport(String),
    /// There were no tools for the client.
    #[error("{0}")]
    Connect(String),
    /// The settings are not safe or make no sense.
    #[error("{0}")]
    Config(String),
}

/// The identity, behaviour and limits of a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The name that clients show.
    pub name: String,
    /// The version that clients show.
    pub version: String,
    /// The host directory that holds the backend's files, if there is one. The client's
    /// roots are host directories, so they apply only if this is set.
    pub host_root: Option<PathBuf>,
    /// Text for the model, added to the instructions about the tools.
    pub instructions: Option<String>,
    /// Whether the client is asked for approvals, instead of the toolset's approver.
    pub ask_client: bool,
    /// Time allowed for the user to answer a question.
    pub answer_timeout: Duration,
    /// Number of calls of one client that run at the same time; others wait. Calls that
    /// wait for the user's answer do not count.
    pub concurrent_calls: usize,
    /// Whether results have `structuredContent`, and tools an output schema. The data
    /// includes all of the text, because many clients then show a model nothing else.
    /// It makes the list of tools three quarters longer, and sends every reply twice.
    pub structured: bool,
    /// Whether every failure is marked with `isError`. If not, only failures that no
    /// other call can fix are marked: some clients end a run at the second error.
    /// `_meta["console-tools/failure"]` has the class of a failure either way.
    pub mark_failures: bool,
    /// Maximum length of a message.
    pub frame_bytes: usize,
    /// Maximum size of a file served as a resource.
    pub resource_bytes: u64,
    /// Time for running calls after the client has closed its end of a pipe.
    pub linger: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "agentbox".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host_root: None,
            instructions: None,
            ask_client: true,
            answer_timeout: Duration::from_secs(600),
            concurrent_calls: 64,
            structured: false,
            mark_failures: false,
            frame_bytes: 16 * 1024 * 1024,
            resource_bytes: 8 * 1024 * 1024,
            linger: Duration::from_secs(1),
        }
    }
}

/// A bearer token, and the name of the clients that have it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    name: Option<Arc<str>>,
    value: String,
}

impl Token {
    /// Creates a token whose clients have no name.
    pub fn new(value: impl Into<String>) -> Self {
        Self {
            name: None,
            value: value.into(),
        }
    }

    /// Creates a token whose clients have a name, which [`Connect`](crate::Connect) is told
    /// and which is the user of their conversations.
    pub fn named(name: impl Into<Arc<str>>, value: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            value: value.into(),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    pub(crate) fn value(&self) -> &str {
        &self.value
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token")
            .field("name", &self.name)
            .field("value", &"(secret)")
            .finish()
    }
}

/// The address and access rules of an HTTP server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpSettings {
    /// The address; port 0 picks a free one.
    pub listen: SocketAddr,
    /// The bearer tokens, one of which every request must have. Every user and program of
    /// this machine can reach a loopback address; without a token all of them are let in.
    /// A client never reaches the MCP session of a client with another name.
    pub tokens: Vec<Token>,
    /// Origins of web pages that may send requests, such as `http://localhost:6274`.
    /// All other pages are refused.
    pub origins: Vec<String>,
    /// Accepted names in the `Host` header, besides those of this machine, with or
    /// without a port. If there are none and `listen` is not a loopback address, any
    /// name is accepted: the token protects the server.
    pub hosts: Vec<String>,
    /// Maximum number of open connections.
    pub connections: usize,
    /// Maximum number of connections that have shown no token. Beyond it, the oldest is
    /// closed once it has had five seconds to show one, or when there are too many
    /// connections in total.
    pub unauthenticated_connections: usize,
    /// Maximum number of those from one address.
    pub unauthenticated_per_address: usize,
    /// Time allowed for a client to send the head of a request.
    pub header_timeout: Duration,
    /// Maximum number of clients at the same time. Those of one name never take all places
    /// if there are others.
    pub sessions: usize,
    /// Time after which a silent client is forgotten. A client that listens, or whose
    /// calls run, is not silent.
    pub idle: Duration,
    /// Time that calls may run after the client has stopped listening.
    pub linger: Duration,
}

impl HttpSettings {
    /// Creates settings for a server on this address, for clients that have the token.
    pub fn new(listen: SocketAddr, token: impl Into<String>) -> Self {
        Self {
            tokens: vec![Token::new(token)],
            ..Self::without_token(listen)
        }
    }

    /// Creates settings for a server that admits every user and program of this
    /// machine.
    pub fn without_token(listen: SocketAddr) -> Self {
        Self {
            listen,
            tokens: Vec::new(),
            origins: Vec::new(),
            hosts: Vec::new(),
            connections: 512,
            unauthenticated_connections: 128,
            unauthenticated_per_address: 64,
            header_timeout: Duration::from_secs(30),
            sessions: 64,
            idle: Duration::from_secs(30 * 60),
            linger: Duration::from_secs(30),
        }
    }

    /// Returns how many clients of one name may be connected at the same time: so many that
    /// there is a place for each other name, or an eighth of all places.
    pub fn sessions_per_name(&self) -> usize {
        let names = self.tokens.iter().filter(|token| token.name().is_some());
        let others = names.count().saturating_sub(1);
        let left = self.sessions.saturating_sub(others);
        left.max(self.sessions / 8).max(1)
    }

    /// Checks that the settings are safe and make sense.
    ///
    /// # Errors
    ///
    /// [`ServeError::Config`], which names the fix.
    pub fn check(&self) -> Result<(), ServeError> {
        let mut values = self.tokens.iter().map(Token::value);
        let problem = match &*self.tokens {
            [] if !self.listen.ip().is_loopback() => format!(
                "{} can be reached from other machines and there is no token; \
                 set one, or listen on 127.0.0.1",
                self.listen
            ),
            _ if values.clone().any(|token| token.trim().is_empty()) => {
                "the token is empty; give one, for example the output of 'openssl rand -hex 32'"
                    .to_owned()
            }
            _ if values.any(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) => {
                "the token has characters that no header can have; use letters and digits"
                    .to_owned()
            }
            _ if [
                self.sessions,
                self.connections,
                self.unauthenticated_connections,
                self.unauthenticated_per_address,
            ]
            .contains(&0) =>
            {
                "no client could connect; allow at least one".to_owned()
            }
            _ => match self
                .hosts
                .iter()
                .find(|host| HostName::parse(host).is_none())
            {
                Some(host) => format!("{host:?} is not a valid host; write NAME or NAME:PORT"),
                None => return Ok(()),
            },
        };
        Err(ServeError::Config(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_can_reach_needs_a_token() {
        let mut http = HttpSettings::without_token(([0, 0, 0, 0], 0).into());
        let error = http.check().unwrap_err().to_string();
        assert!(error.contains("set one, or listen on 127.0.0.1"), "{error}");
        http.tokens = vec![Token::new(" ")];
        assert!(http.check().is_err());
        http.tokens = vec![Token::new("geheim\n")];
        assert!(http.check().is_err());
        http.tokens = vec![Token::new("secret")];
        assert!(http.check().is_ok());
        assert!(!format!("{http:?}").contains("\"secret\""));
        for listen in ["127.0.0.1:0", "[::1]:0", "127.9.9.9:1"] {
            let http = HttpSettings::without_token(listen.parse().unwrap());
            assert!(http.check().is_ok(), "{listen}");
        }
        http.hosts = vec!["box.example:80".to_owned(), "http://box.example".to_owned()];
        let error = http.check().unwrap_err().to_string();
        assert!(
            error.contains("\"http://box.example\" is not a valid host"),
            "{error}"
        );
    }
}
