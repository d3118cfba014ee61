//! [`State`]: the last known state of a container.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OnceCell;

use crate::settings::Settings;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) demand: Demand,
    pub(super) presence: Presence,
    /// A container of this name may exist that this object created.
    pub(super) attempted: bool,
    /// Identifies the agent that is mounted in it.
    pub(super) bound: Option<String>,
    /// Path that the agent was uploaded to since the container was started.
    pub(super) uploaded: Option<String>,
    pub(super) read_only: bool,
    pub(super) architecture: String,
    /// Number of times this object has started it.
    pub(super) starts: u64,
    /// An archive that must be unpacked in it before any operation.
    pub(super) pending: Option<Arc<Pending>>,
}

/// Whether callers need the container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Demand {
    /// No caller has requested it yet.
    #[default]
    None,
    Requested,
    /// The last clone is dropped: nothing is created or started any more.
    Closed,
}

/// The container as it was last inspected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Presence {
    /// It was never there.
    #[default]
    Unseen,
    /// It was there, so if it is missing now, it was removed.
    Seen,
    /// It was running, and this object has not stopped it since.
    Running,
}

impl Presence {
    /// A container without settings was attached to, so it exists.
    pub(super) fn initial(settings: Option<&Settings>) -> Self {
        settings.map_or(Self::Seen, |_| Self::Unseen)
    }
}

impl State {
    pub(super) fn existed(&self) -> bool {
        self.presence != Presence::Unseen
    }

    pub(super) fn set_seen(&mut self) {
        self.presence = self.presence.max(Presence::Seen);
    }

    pub(super) fn set_not_running(&mut self) {
        self.presence = self.presence.min(Presence::Seen);
    }
}

/// An archive that must be unpacked in the container, once.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) archive: Bytes,
    pub(super) done: OnceCell<()>,
}
