//! [`Standin`]: the server, from its start to its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tower::Service as _;

use crate::faults::Injection;
use crate::gate::Hangup;
use crate::options::Options;
use crate::requests::{Recorded, Requests};
use crate::routes;
use crate::sandbox::Sandbox;
use crate::service::Service;

/// A running stand-in. Dropping it ends everything that it started.
///
/// ```
/// use daytona_testkit::{Fault, Standin};
///
/// # #[tokio::main]
/// # async fn main() -> std::io::Result<()> {
/// let standin = Standin::start().await?;
/// // For a client: DAYTONA_API_URL and DAYTONA_API_KEY.
/// let (_url, _key) = (standin.api_url(), standin.api_key());
///
/// // The next three deletions find the sandbox busy.
/// standin.inject(Fault::Busy.at("DELETE /api/sandbox/{id}").times(3));
///
/// let before = standin.requests();
/// // … here a client does something that must not need a request …
/// assert_eq!(standin.requests().since(&before).total(), 0);
///
/// standin.close().await;
/// # Ok(())
/// # }
/// ```
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
        let listener = TcpListener::bind(options.address).await?;
        let address = listener.local_addr()?;
        let service = Arc::new(Service::new(options, format!("http://{address}")));
        let app = routes::router(Arc::clone(&service));
        service.spawn(accept_all(Arc::downgrade(&service), listener, app));
        Ok(Self { address, service })
    }

    /// Returns the URL of the control plane, for `DAYTONA_API_URL`.
    pub fn api_url(&self) -> String {
        format!("http://{}/api", self.address)
    }

    /// Returns the API key, for `DAYTONA_API_KEY`.
    pub fn api_key(&self) -> &str {
        &self.service.options.api_key
    }

    /// Returns a token of a user, which is accepted together with [`Self::organization`].
    pub fn jwt(&self) -> &str {
        &self.service.jwt
    }

    /// Returns the id of the organization of all sandboxes.
    pub fn organization(&self) -> &str {
        &self.service.organization
    }

    /// Injects a fault.
    pub fn inject(&self, injection: Injection) {
        self.service.faults.inject(injection);
    }

    /// Removes all faults that have not struck.
    pub fn heal(&self) {
        self.service.faults.heal();
    }

    /// Sets the time that every request, and every message on a websocket, takes to get to
    /// the service.
    pub fn set_latency(&self, latency: Duration) {
        self.service.latency.set(latency);
    }

    /// Returns the numbers of requests so far.
    pub fn requests(&self) -> Requests {
        self.service.log.counts()
    }

    /// Returns the latest requests of the routes that a pattern names: see
    /// [`Fault::at`](crate::Fault::at).
    pub fn recorded(&self, pattern: &str) -> Vec<Recorded> {
        self.service.log.recorded(pattern)
    }

    /// Returns all sandboxes as the API shows them, those that are destroyed included.
    pub fn sandboxes(&self) -> Vec<serde_json::Value> {
        let sandboxes = self.service.sandboxes();
        sandboxes.iter().map(|it| it.document()).collect()
    }

    /// Sets the state of a sandbox, as its timers or its host would. In another state than
    /// `started` its processes end. Returns whether the sandbox exists.
    pub fn set_state(&self, id_or_name: &str, state: &str) -> bool {
        let Some(sandbox) = self.service.find(id_or_name) else {
            return false;
        };
        sandbox.set("recoverable", json!(state == "error"));
        sandbox.set_state(state);
        if state != "started" {
            self.end(sandbox);
        }
        true
    }

    /// Ends all processes of a sandbox, which stays `started`. Returns whether it exists.
    pub fn end_processes(&self, id_or_name: &str) -> bool {
        let found = self.service.find(id_or_name);
        found.map(|sandbox| self.end(sandbox)).is_some()
    }

    fn end(&self, sandbox: Arc<Sandbox>) {
        self.service
            .spawn(async move { sandbox.end_processes().await });
    }

    /// Ends all connections and processes, and removes the files of all sandboxes.
    pub async fn close(self) {
        self.service.stop();
        self.service.stopped().await;
        let sandboxes = std::mem::take(&mut *self.service.sandboxes());
        for sandbox in sandboxes {
            sandbox.end_processes().await;
            sandbox.root.remove().await;
        }
    }
}

impl Drop for Standin {
    fn drop(&mut self) {
        self.service.stop();
        self.service.sandboxes().clear();
    }
}

/// Accepts connections until the stand-in ends.
async fn accept_all(service: std::sync::Weak<Service>, listener: TcpListener, app: Router) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let Some(service) = service.upgrade() else {
                    return;
                };
                service.spawn(serve(stream, app.clone()));
            }
            // The next may find a free descriptor.
            Err(error) => tracing::warn!(%error, "a connection was not accepted"),
        }
    }
}

async fn serve(stream: TcpStream, app: Router) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set; the connection is slower");
    }
    let service = service_fn(move |request: http::Request<Incoming>| {
        let mut app = app.clone();
        async move {
            let Ok(response) = app.call(request).await;
            if response.extensions().get::<Hangup>().is_some() {
                return Err(io::Error::from(io::ErrorKind::ConnectionReset));
            }
            Ok(response)
        }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.with_upgrades().await {
        tracing::debug!(%error, "a connection ended");
    }
}
