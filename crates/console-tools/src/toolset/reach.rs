//! Access to a conversation's files for hosts that do more than call tools.

use std::sync::Arc;

use backend_core::{Backend, Result};
use permissions::Guarded;

use super::chat::Chat;

impl Chat {
    /// Returns the files as this conversation may use them: behind its policy, with
    /// questions sent to its approver. For accesses that are not tool calls, such as
    /// the resources of an MCP server.
    ///
    /// # Errors
    ///
    /// Returns the error of the [`Resolver`](crate::Resolver).
    pub async fn files(&self) -> Result<Guarded<Arc<dyn Backend>>> {
        Ok(self.ground().await?.guard.clone())
    }
}
