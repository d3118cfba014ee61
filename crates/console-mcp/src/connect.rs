//! [`Connect`]: the tools of each connection.

use async_trait::async_trait;
use backend_core::Result;
use console_tools::Toolset;

use crate::client::Client;

/// Creates the tools for one connection, so that each client gets its own backend.
///
/// # Signatures
///
/// The method, as it is written under `#[async_trait]`:
///
/// ```text
/// async fn connect(&self, client: &Client) -> Result<Toolset>;
/// ```
#[async_trait]
pub trait Connect: std::fmt::Debug + Send + Sync + 'static {
    /// Returns the tools for a new connection.
    ///
    /// # Errors
    ///
    /// Any error that prevents it. The client is told.
    async fn connect(&self, client: &Client) -> Result<Toolset>;
}
