//! [`Conversation`]: what is remembered from call to call.

use std::sync::Arc;

use crate::commands::{OwnShells, Screens};
use crate::spill::Spills;
use crate::tracker::Tracker;

/// What is remembered from call to call, apart for each conversation. When it is
/// dropped, the background shells that it started are ended.
#[derive(Debug, Default)]
pub struct Conversation {
    /// Which files were read, and what they held.
    pub(crate) tracker: Tracker,
    /// Outputs that were too long for a reply.
    pub(crate) spills: Arc<Spills>,
    /// Where the output of each background shell stands.
    pub(crate) screens: Arc<Screens>,
    /// The background shells that it started.
    pub(crate) shells: Arc<OwnShells>,
}

impl Conversation {
    /// Ends the background shells that it started and drops the outputs that it
    /// keeps. Returns how many shells still ran.
    ///
    /// # Errors
    ///
    /// What a sandbox fails with. The other shells are ended; those that are not
    /// are tried again by the next call, or when the conversation is dropped.
    pub async fn close(&self) -> backend_core::Result<usize> {
        self.spills.clear();
        self.shells.end().await
    }

    /// What a call that is only tried works with: it sees what this one knows,
    /// remembers nothing in it, and waits for no other call.
    pub(crate) fn aside(&self) -> Self {
        Self {
            tracker: self.tracker.aside(),
            spills: Arc::clone(&self.spills),
            screens: Arc::clone(&self.screens),
            shells: Arc::clone(&self.shells),
        }
    }

    /// A conversation that has just begun.
    pub fn new() -> Self {
        Self::default()
    }
}
