//! [`Options`]: the settings of a stand-in.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::id;

/// The settings of a [`Standin`](crate::Standin).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Its address. By default a free port of 127.0.0.1.
    pub address: SocketAddr,
    /// The API key that it accepts. By default a random one.
    pub api_key: String,
    /// The time that every change of a sandbox's state takes. By default none: the new state
    /// is reached before the answer. During it the sandbox is busy.
    pub transition: Duration,
    /// The time that every request, and every message on a websocket, takes to get to the
    /// service.
    pub latency: Duration,
    /// Whether errors of `/files` have a body, as from daemon 0.201 on. Off by default.
    pub typed_errors: bool,
    /// Variables of every sandbox, in addition to those that its creator sends.
    pub environment: BTreeMap<String, String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            api_key: format!("dtn_standin_{}", id::random()),
            transition: Duration::ZERO,
            latency: Duration::ZERO,
            typed_errors: false,
            environment: BTreeMap::new(),
        }
    }
}
