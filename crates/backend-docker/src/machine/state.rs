//! [`State`]: the last known state of a container.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OnceCell;

pub(super) type State = sandbox_shell::State<Facts>;

/// The facts about a container.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Identifies the agent that is mounted in it.
    pub(super) bound: Option<String>,
    /// Path that the agent was uploaded to since the container was started.
    pub(super) uploaded: Option<String>,
    /// The directory of its host that it has for sockets.
    pub(super) sockets: Option<String>,
    pub(super) read_only: bool,
    pub(super) architecture: String,
    /// Number of times this object has started it.
    pub(super) starts: u64,
    /// An archive that must be unpacked in it before any operation.
    pub(super) pending: Option<Arc<Pending>>,
}

/// An archive that must be unpacked in the container, once.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) archive: Bytes,
    pub(super) done: OnceCell<()>,
}
