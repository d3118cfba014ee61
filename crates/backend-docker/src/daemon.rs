//! [`Daemon`]: a connection to a Docker daemon.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use backend_core::{Error, ErrorKind, Quoted, Result};
use bollard::Docker;
use bollard::errors::Error as Theirs;
use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, RemoveContainerOptionsBuilder, StopContainerOptionsBuilder,
    UploadToContainerOptionsBuilder,
};
use bytes::Bytes;
use sandbox_wire::engine;
use tokio::sync::OnceCell;

use crate::labels;

/// Seconds within which the daemon must begin to answer.
const ANSWER_SECONDS: u64 = 120;

/// Seconds between TERM and KILL for programs that still run when a container stops.
/// The program that keeps the container alive ends at once.
const STOP_SECONDS: i32 = 2;

/// The daemon's address, unless another one is given.
const DEFAULT_ADDRESS: &str = if cfg!(windows) {
    "npipe:////./pipe/docker_engine"
} else {
    "unix:///var/run/docker.sock"
};

/// An example address of a local daemon, for messages.
const EXAMPLE: &str = if cfg!(windows) {
    "npipe:////./pipe/NAME"
} else {
    "unix:///PATH"
};

/// A Docker daemon. Clones share one connection.
///
/// Nothing is sent until it is needed, and then only on [the engine's
/// runtime](sandbox_wire::engine).
///
/// ```no_run
/// # async fn example() -> backend_core::Result<()> {
/// let daemon = backend_docker::Daemon::from_env()?;
/// println!("Docker {}", daemon.info().await?.version);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Daemon {
    client: Docker,
    address: String,
    /// Set once the API version is negotiated.
    negotiated: Arc<OnceCell<()>>,
}

/// A daemon's description of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DaemonInfo {
    /// The daemon's version.
    pub version: String,
    /// The newest API version it supports.
    pub api: String,
    /// The cgroup version: `1` or `2`.
    pub cgroup: String,
    /// The storage driver: `overlay2`.
    pub storage: String,
    /// The version of `runc`, if the daemon reports it.
    pub runc: String,
}

impl Daemon {
    /// Connects to the daemon at an address: `unix:///run/docker.sock`,
    /// `tcp://127.0.0.1:2375`, on Windows also `npipe:////./pipe/docker_engine`.
    ///
    /// # Errors
    ///
    /// `Config` if the address is malformed; `Unavailable` if there is no such socket.
    pub fn at(address: &str) -> Result<Self> {
        let connected = match address.split_once("://") {
            #[cfg(unix)]
            Some(("unix", path)) => {
                Docker::connect_with_unix(path, ANSWER_SECONDS, bollard::API_DEFAULT_VERSION)
            }
            #[cfg(windows)]
            Some(("npipe", path)) => {
                Docker::connect_with_named_pipe(path, ANSWER_SECONDS, bollard::API_DEFAULT_VERSION)
            }
            Some(("tcp" | "http", _)) => {
                Docker::connect_with_http(address, ANSWER_SECONDS, bollard::API_DEFAULT_VERSION)
            }
            _ => {
                return Err(crate::check::wrong(format!(
                    "{} is not a valid address of a Docker daemon here; write {EXAMPLE} or tcp://HOST:PORT",
                    Quoted::new(address)
                )));
            }
        };
        let client = connected.map_err(|source| unreachable(address, source))?;
        Ok(Self {
            client,
            address: address.to_owned(),
            negotiated: Arc::default(),
        })
    }

    pub(crate) fn local() -> Result<Self> {
        Self::at(DEFAULT_ADDRESS).map_err(|error| error.on("docker"))
    }

    /// Connects to the daemon that `DOCKER_HOST` names, else the one at
    /// `/var/run/docker.sock`, or on Windows at `//./pipe/docker_engine`.
    ///
    /// # Errors
    ///
    /// See [`at`](Self::at).
    pub fn from_env() -> Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "reading the environment is what this function is for"
        )]
        let named = std::env::var("DOCKER_HOST").ok();
        let named = named.filter(|named| !named.is_empty());
        Self::at(named.as_deref().unwrap_or(DEFAULT_ADDRESS))
    }

    /// Returns the daemon's address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the path of its socket, if it has one on this host.
    pub(crate) fn socket(&self) -> Option<&Path> {
        self.address.strip_prefix("unix://").map(Path::new)
    }

    /// Asks the daemon for its version and configuration.
    ///
    /// # Errors
    ///
    /// `Unavailable`, with the next step, if it does not answer.
    pub async fn info(&self) -> Result<DaemonInfo> {
        let daemon = self.clone();
        run(async move { daemon.ask_info().await }).await
    }

    async fn ask_info(&self) -> Result<DaemonInfo> {
        let client = self.negotiated().await?;
        let version = client.version().await.map_err(|error| self.error(error))?;
        let info = client.info().await.map_err(|error| self.error(error))?;
        let components = version.components.unwrap_or_default();
        let runc = components.into_iter().find(|part| part.name == "runc");
        let cgroup = info.cgroup_version.map(|version| version.to_string());
        Ok(DaemonInfo {
            version: version.version.unwrap_or_default(),
            api: version.api_version.unwrap_or_default(),
            cgroup: cgroup.unwrap_or_default(),
            storage: info.driver.unwrap_or_default(),
            runc: runc.map(|part| part.version).unwrap_or_default(),
        })
    }

    /// Returns the client, which must be used on the engine's runtime only.
    pub(crate) fn client(&self) -> &Docker {
        &self.client
    }

    /// Returns the client once the API version is negotiated.
    pub(crate) async fn negotiated(&self) -> Result<&Docker> {
        let settle = || async { self.client.clone().negotiate_version().await.map(drop) };
        let settled = self.negotiated.get_or_try_init(settle).await;
        settled.map_err(|error| self.error(error))?;
        Ok(&self.client)
    }

    /// Lists the containers with the label of sandboxes and these others, in any state.
    pub(crate) async fn sandboxes(&self, others: &[&str]) -> Result<Vec<ContainerSummary>> {
        let mut filter = vec![labels::SANDBOX];
        filter.extend(others);
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&HashMap::from([("label", filter)]))
            .build();
        let client = self.negotiated().await?;
        let listed = client.list_containers(Some(options)).await;
        listed.map_err(|error| self.error(error))
    }

    /// Removes a container in any state, with the anonymous volumes that were created for
    /// it. The daemon keeps those that another container uses.
    pub(crate) async fn remove_container(&self, container: &str) -> Result<(), Theirs> {
        let options = RemoveContainerOptionsBuilder::default()
            .force(true)
            .v(true)
            .build();
        self.client.remove_container(container, Some(options)).await
    }

    pub(crate) async fn stop_container(&self, container: &str) -> Result<(), Theirs> {
        let options = StopContainerOptionsBuilder::default()
            .t(STOP_SECONDS)
            .build();
        self.client.stop_container(container, Some(options)).await
    }

    /// Unpacks an archive at the root of a container, which need not run.
    pub(crate) async fn unpack(&self, container: &str, archive: Bytes) -> Result<(), Theirs> {
        let options = UploadToContainerOptionsBuilder::default().path("/").build();
        let body = bollard::body_full(archive);
        let client = &self.client;
        let unpacked = client.upload_to_container(container, Some(options), body);
        unpacked.await
    }

    /// Converts the daemon's answer about an object; `None` if there is no such object.
    pub(crate) fn found<T>(&self, answer: Result<T, Theirs>) -> Result<Option<T>> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Converts the answer to a request that some statuses show to be fulfilled already.
    pub(crate) fn settled(&self, answer: Result<(), Theirs>, fulfilled: &[u16]) -> Result<()> {
        match answer {
            Err(error) if status(&error).is_none_or(|status| !fulfilled.contains(&status)) => {
                Err(self.error(error))
            }
            _ => Ok(()),
        }
    }

    /// Converts an error of the daemon into one for the caller.
    pub(crate) fn error(&self, error: Theirs) -> Error {
        let Theirs::DockerResponseServerError {
            status_code,
            message,
        } = &error
        else {
            return unreachable(&self.address, error);
        };
        let kind = match status_code {
            400 => ErrorKind::Config,
            404 => ErrorKind::NotFound,
            409 => ErrorKind::Conflict,
            _ => ErrorKind::Unavailable,
        };
        let said = Quoted::new(message);
        Error::new(kind, format!("the Docker daemon says: {said}"))
    }
}

/// Runs work on the engine. Its errors name this backend.
pub(crate) async fn run<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    engine::run(work).await.map_err(|error| error.on("docker"))
}

/// Whether the daemon answered that the object does not exist.
pub(crate) fn is_missing(error: &Theirs) -> bool {
    status(error) == Some(404)
}

/// The HTTP status of the daemon's answer, if it answered.
pub(crate) fn status(error: &Theirs) -> Option<u16> {
    match error {
        Theirs::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// The error for a daemon that does not answer: why, and what to do.
fn unreachable(address: &str, error: Theirs) -> Error {
    let shown = Quoted::new(address);
    let kind = match &error {
        Theirs::SocketNotFoundError(_) => Some(io::ErrorKind::NotFound),
        // The variant is transparent: the chain of its sources skips the I/O error itself.
        Theirs::IOError { err } => Some(err.kind()),
        other => engine::io_kind(other),
    };
    let message = match kind {
        Some(io::ErrorKind::NotFound) => {
            format!("no Docker daemon listens at {shown}; start dockerd or set DOCKER_HOST")
        }
        Some(io::ErrorKind::PermissionDenied) => format!(
            "this user may not talk to the Docker daemon at {shown}; add the user to the group docker, or use the socket of a rootless daemon"
        ),
        Some(io::ErrorKind::ConnectionRefused) => {
            format!("the Docker daemon at {shown} is not running; start dockerd or set DOCKER_HOST")
        }
        _ => {
            format!("the Docker daemon at {shown} does not answer; see its log, or start it again")
        }
    };
    match kind {
        // The message says all of it.
        Some(io::ErrorKind::NotFound) => Error::unavailable(message),
        _ => Error::unavailable(message).with_source(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for bad in ["", "docker", "ssh://host", "npipe:////./pipe"] {
            let error = Daemon::at(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{bad}");
        }
        let daemon = Daemon::at("tcp://127.0.0.1:1").unwrap();
        assert_eq!(daemon.address(), "tcp://127.0.0.1:1");
        assert_eq!(daemon.socket(), None);
    }

    #[test]
    fn a_missing_socket_says_what_to_do() {
        let error = Daemon::at("unix:///nowhere/docker.sock").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("start dockerd"), "{error}");
    }

    #[test]
    fn answers_keep_their_meaning() {
        let daemon = Daemon::at("tcp://127.0.0.1:1").unwrap();
        for (status_code, kind) in [
            (400, ErrorKind::Config),
            (404, ErrorKind::NotFound),
            (409, ErrorKind::Conflict),
            (500, ErrorKind::Unavailable),
        ] {
            let error = daemon.error(Theirs::DockerResponseServerError {
                status_code,
                message: "no\u{1b}[2J".into(),
            });
            assert_eq!(error.kind(), kind);
            assert!(!error.to_string().contains('\u{1b}'));
        }
    }

    #[test]
    fn refusals_of_the_system_say_what_to_do() {
        for (kind, text) in [
            (io::ErrorKind::PermissionDenied, "group docker"),
            (io::ErrorKind::ConnectionRefused, "is not running"),
            (io::ErrorKind::TimedOut, "does not answer"),
        ] {
            let error = unreachable("unix:///x", io::Error::from(kind).into());
            assert!(error.to_string().contains(text), "{error}");
        }
        let missing = unreachable("unix:///x", io::Error::from(io::ErrorKind::NotFound).into());
        assert_eq!(
            missing.chain().to_string(),
            "no Docker daemon listens at 'unix:///x'; start dockerd or set DOCKER_HOST"
        );
    }
}
