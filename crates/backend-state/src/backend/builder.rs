//! [`StateBuilder`]: the initial content of a store, its limits and its clock.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use backend_core::Result;

use super::{Inner, StateBackend};
use crate::document::{self, LoadLimits};
use crate::snapshot::{Snapshot, invalid_document};
use crate::watch::Watchers;

/// Default size limit of one file, in bytes. Small enough that a PostgreSQL `jsonb`
/// string can hold it, base64 or not.
pub const FILE_BYTES: u64 = 128 * 1024 * 1024;

/// Default size limit of all files together, in bytes. Each file and directory counts
/// 256 bytes in addition to its content.
pub const TOTAL_BYTES: u64 = 2 * 1024 * 1024 * 1024;

pub(super) type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Builds a [`StateBackend`].
pub struct StateBuilder {
    snapshot: Snapshot,
    max_file_bytes: u64,
    max_total_bytes: u64,
    clock: Clock,
}

impl StateBuilder {
    pub(super) fn new() -> Self {
        Self {
            snapshot: Snapshot::default(),
            max_file_bytes: FILE_BYTES,
            max_total_bytes: TOTAL_BYTES,
            clock: Arc::new(SystemTime::now),
        }
    }

    backend_core::setters! {
        /// Sets the initial content of the store.
        snapshot: Snapshot,
        /// Sets the size limit of one file, in bytes.
        max_file_bytes: u64,
        /// Sets the size limit of all files together, in bytes. Each file and directory
        /// counts 256 bytes in addition to its content.
        max_total_bytes: u64,
    }

    /// Sets the initial content of the store from a document, in the format of
    /// [`Snapshot::from_json`]. Set the limits first: a document that exceeds them is
    /// refused, and no more of it is held in memory.
    ///
    /// # Errors
    ///
    /// `InvalidInput` that names the problem and its position, also if reading fails.
    pub fn load(self, document: impl io::Read) -> Result<Self> {
        let limits = LoadLimits {
            file: self.max_file_bytes,
            total: self.max_total_bytes,
        };
        let tree = document::read(document, limits).map_err(invalid_document)?;
        Ok(self.snapshot(Snapshot { tree }))
    }

    /// Sets the clock for the times of files; the system's clock by default.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Builds the backend.
    pub fn build(self) -> StateBackend {
        StateBackend {
            inner: Arc::new(Inner {
                tree: Mutex::new(self.snapshot.tree),
                max_file_bytes: self.max_file_bytes,
                max_total_bytes: self.max_total_bytes,
                clock: self.clock,
                watchers: Watchers::default(),
            }),
        }
    }
}

impl fmt::Debug for StateBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateBuilder")
            .field("snapshot", &self.snapshot)
            .field("max_file_bytes", &self.max_file_bytes)
            .field("max_total_bytes", &self.max_total_bytes)
            .finish_non_exhaustive()
    }
}
