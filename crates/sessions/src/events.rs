//! [`SessionEvent`]: what happens to sessions, as it happens, and how often it happened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tokio::sync::broadcast;

use crate::id::SessionId;
use crate::time::{Clock, moment, span};

/// Events kept for a receiver that is slow; it is told how many it missed.
pub const EVENTS: usize = 1024;

/// Something that happened to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionEvent {
    /// The session.
    pub id: SessionId,
    /// When it happened, as milliseconds since 1970 where it is written.
    #[serde(with = "moment")]
    pub at: SystemTime,
    /// The kind of event.
    pub kind: EventKind,
    /// How long it took, where that is known.
    #[serde(with = "span")]
    pub took: Option<Duration>,
}

/// The kind of a [`SessionEvent`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EventKind {
    /// Its sandbox is being created.
    Opening,
    /// The creation has come this far, in words for people.
    Progress(String),
    /// Its sandbox runs.
    Opened,
    /// It was open already.
    Reused,
    /// Its sandbox was stopped to make room; its files are kept.
    Hibernated,
    /// Its sandbox runs again.
    Woken,
    /// It was ended because it was idle or old.
    Reaped,
    /// It was ended on request.
    Released,
    /// It could not be opened, woken or ended, or its sandbox died. The text says why.
    Failed(String),
}

/// How often things have happened since the manager was built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is the number of events of its name")]
pub struct Counters {
    pub opened: u64,
    pub reused: u64,
    pub hibernated: u64,
    pub woken: u64,
    pub reaped: u64,
    pub released: u64,
    pub failed: u64,
}

/// Sends and counts events.
#[derive(Debug)]
pub(crate) struct Events {
    sender: broadcast::Sender<SessionEvent>,
    clock: Clock,
    opened: AtomicU64,
    reused: AtomicU64,
    hibernated: AtomicU64,
    woken: AtomicU64,
    reaped: AtomicU64,
    released: AtomicU64,
    failed: AtomicU64,
}

impl Events {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            sender: broadcast::Sender::new(EVENTS),
            clock,
            opened: AtomicU64::new(0),
            reused: AtomicU64::new(0),
            hibernated: AtomicU64::new(0),
            woken: AtomicU64::new(0),
            reaped: AtomicU64::new(0),
            released: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<SessionEvent> {
        self.sender.subscribe()
    }

    pub(crate) fn send(&self, id: &SessionId, kind: EventKind) {
        self.send_with(id, kind, None);
    }

    pub(crate) fn send_with(&self, id: &SessionId, kind: EventKind, took: Option<Duration>) {
        if let Some(counter) = self.counter(&kind) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        tracing::debug!(session = %id, event = ?kind, "session");
        // An error means that nothing listens.
        let _ = self.sender.send(SessionEvent {
            id: id.clone(),
            at: self.clock.now(),
            kind,
            took,
        });
    }

    fn counter(&self, kind: &EventKind) -> Option<&AtomicU64> {
        match kind {
            EventKind::Opening | EventKind::Progress(_) => None,
            EventKind::Opened => Some(&self.opened),
            EventKind::Reused => Some(&self.reused),
            EventKind::Hibernated => Some(&self.hibernated),
            EventKind::Woken => Some(&self.woken),
            EventKind::Reaped => Some(&self.reaped),
            EventKind::Released => Some(&self.released),
            EventKind::Failed(_) => Some(&self.failed),
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            opened: read(&self.opened),
            reused: read(&self.reused),
            hibernated: read(&self.hibernated),
            woken: read(&self.woken),
            reaped: read(&self.reaped),
            released: read(&self.released),
            failed: read(&self.failed),
        }
    }
}
