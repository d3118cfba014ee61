//! [`Connect`]: the tools of each connection.

use async_trait::async_trait;
use backend_core::Result;
use console_tools::Toolset;

use crate::client::Client;

/// Creates the tools for one connection, so that each client gets its own backend.
///
/// # Signatures
///
/// The methods, as they are written under `#[async_trait]`; `check` may be left out:
///
/// ```text
/// fn check(&self, client: &Client) -> Result<()>;
/// async fn connect(&self, client: &Client) -> Result<Toolset>;
/// ```
#[async_trait]
pub trait Connect: std::fmt::Debug + Send + Sync + 'static {
    /// Decides whether a client may connect, before an HTTP session begins. It is called
    /// with every request that may begin one, so it should be quick.
    ///
    /// # Errors
    ///
    /// The reason, which the client is told as plain text: with status 403 for
    /// `PermissionDenied`, else with 400.
    fn check(&self, client: &Client) -> Result<()> {
        let _ = client;
        Ok(())
    }

    /// Returns the tools for a new connection.
    ///
    /// # Errors
    ///
    /// Any error that prevents it. The client is told.
    async fn connect(&self, client: &Client) -> Result<Toolset>;
}
