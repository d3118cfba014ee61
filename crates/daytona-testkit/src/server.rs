//! [`Standin`]: the server, from its start to its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::faults::Injection;
use crate::requests::{Recorded, Requests};

/// The settings of a [`Standin`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Its address. By default a free port of 127.0.0.1.
    pub address: SocketAddr,
    /// The API key that it accepts.
    pub api_key: String,
    /// The time that every change of a sandbox's state takes. By default none: the new state
    /// is reached before the answer. During it the sandbox is busy.
    pub transition: Duration,
    /// The time that every request, and every message on a websocket, takes to get to the
    /// service.
    pub latency: Duration,
    /// Whether errors of `/files` have a body, as from daemon 0.201 on. Off by default.
    pub typed_errors: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            api_key: format!("dtn_standin_{}", crate::id::random()),
            transition: Duration::ZERO,
            latency: Duration::ZERO,
            typed_errors: false,
        }
    }
}

/// A running stand-in. Dropping it ends everything that it started.
#[derive(Debug)]
pub struct Standin {
    address: SocketAddr,
    service: Arc<Service>,
}

impl Standin {
    /// Starts a stand-in on a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// The system's error if it cannot listen.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(Options::default()).await
    }

    /// Starts a stand-in with settings.
    ///
    /// # Errors
    ///
    /// The system's error if it cannot listen.
    pub async fn start_with(options: Options) -> io::Result<Self> {
        todo!()
    }

    /// Returns the URL of the control plane, for `DAYTONA_API_URL`.
    pub fn api_url(&self) -> String {
        todo!()
    }

    /// Returns the API key, for `DAYTONA_API_KEY`.
    pub fn api_key(&self) -> &str {
        todo!()
    }

    /// Returns a token of a user, which is accepted together with [`Self::organization`].
    pub fn jwt(&self) -> &str {
        todo!()
    }

    /// Returns the id of the organization of all sandboxes.
    pub fn organization(&self) -> &str {
        todo!()
    }

    /// Injects a fault.
    pub fn inject(&self, injection: Injection) {
        todo!()
    }

    /// Removes all faults that have not struck.
    pub fn heal(&self) {
        todo!()
    }

    /// Sets the time that every request, and every message on a websocket, takes to get to
    /// the service.
    pub fn set_latency(&self, latency: Duration) {
        todo!()
    }

    /// Returns the numbers of requests so far.
    pub fn requests(&self) -> Requests {
        todo!()
    }

    /// Returns the latest requests of the routes that a pattern names: see
    /// [`Fault::at`](crate::Fault::at).
    pub fn recorded(&self, pattern: &str) -> Vec<Recorded> {
        todo!()
    }

    /// Returns all sandboxes as the API shows them, those that are destroyed included.
    pub fn sandboxes(&self) -> Vec<serde_json::Value> {
        todo!()
    }

    /// Sets the state of a sandbox, as its timers or its host would. In another state than
    /// `started` it has no processes. Returns whether the sandbox exists.
    pub fn set_state(&self, id_or_name: &str, state: &str) -> bool {
        todo!()
    }

    /// Ends all processes of a sandbox, which stays `started`. Returns whether it exists.
    pub fn end_processes(&self, id_or_name: &str) -> bool {
        todo!()
    }

    /// Ends all connections and processes, and removes the files of all sandboxes.
    pub async fn close(self) {
        todo!()
    }
}
