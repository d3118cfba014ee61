//! [`Clients`]: the backends of a server's clients.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::sync::lock;
use backend_core::{Error, ErrorKind};
use console_mcp::{Client, Connect};
use console_tools::Toolset;

use crate::app::App;
use crate::backend::open_backend::StopActions;
use crate::backend::spec::Prepare;
use crate::exit::Failure;

/// Interval at which backends of disconnected clients are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The backends of a server's clients.
#[async_trait]
pub(super) trait Clients: Connect {
    /// Loops forever, taking care of clients that have disconnected.
    async fn sweep(&self);

    /// Ends what belongs to the clients that are still connected.
    async fn stop(&self);
}

/// Opens a separate backend for every client.
#[derive(Debug)]
pub(super) struct Backends {
    app: App,
    /// The first one is opened before a client connects, so that errors are reported at
    /// once.
    first: Mutex<Option<Toolset>>,
    opened: Mutex<Vec<Arc<StopActions>>>,
}

impl Backends {
    pub(super) async fn open(mut app: App) -> Result<Self, Failure> {
        // A client does not wait minutes for its first response.
        app.spec.prepare = Prepare::Background;
        let backends = Self {
            app,
            first: Mutex::default(),
            opened: Mutex::default(),
        };
        let first = backends.open_one().await?;
        *lock(&backends.first) = Some(first);
        Ok(backends)
    }

    async fn open_one(&self) -> Result<Toolset, Failure> {
        let mut new = self.app.open().await?;
        lock(&self.opened).push(Arc::new(new.take_stop_actions()));
        Ok(self.app.toolset(&new).build()?)
    }
}

#[async_trait]
impl Connect for Backends {
    fn check(&self, client: &Client) -> backend_core::Result<()> {
        if client.session.is_none() {
            return Ok(());
        }
        Err(Error::invalid_input(
            "this server has no sessions; leave out the header Agentbox-Session, or start it with \
             --workspaces or names of tokens",
        ))
    }

    async fn connect(&self, _: &Client) -> backend_core::Result<Toolset> {
        let first = lock(&self.first).take();
        match first {
            Some(toolset) => Ok(toolset),
            None => self.open_one().await.map_err(|failure| {
                let kind = if failure.is_usage() {
                    ErrorKind::Config
                } else {
                    ErrorKind::Unavailable
                };
                Error::new(kind, failure.to_string())
            }),
        }
    }
}

#[async_trait]
impl Clients for Backends {
    /// Closes the backends of disconnected clients.
    async fn sweep(&self) {
        let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            ticks.tick().await;
            let left: Vec<Arc<StopActions>> = {
                let opened = lock(&self.opened);
                let left = opened.iter().filter(|actions| !actions.is_used());
                left.cloned().collect()
            };
            futures::future::join_all(left.iter().map(|actions| actions.stop())).await;
            let is_left =
                |actions: &Arc<StopActions>| left.iter().any(|one| Arc::ptr_eq(one, actions));
            lock(&self.opened).retain(|actions| !is_left(actions));
        }
    }

    async fn stop(&self) {
        let opened = std::mem::take(&mut *lock(&self.opened));
        futures::future::join_all(opened.iter().map(|actions| actions.stop())).await;
    }
}
