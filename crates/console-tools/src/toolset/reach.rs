//! What a conversation may reach, for those who do more than call tools.

use std::sync::Arc;

use backend_core::{Backend, Result};
use permissions::Guarded;

use super::chat::Chat;

impl Chat {
    /// The files as this conversation may use them: behind its policy, and with
    /// questions brought to whoever it asks. For what is no tool call, such as
    /// the resources of an MCP server.
    ///
    /// # Errors
    ///
    /// What the [`Resolver`](crate::Resolver) fails with.
    pub async fn files(&self) -> Result<Guarded<Arc<dyn Backend>>> {
        Ok(self.ground().await?.guard.clone())
    }
}
