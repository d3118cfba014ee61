#![doc = include_str!("../README.md")]

mod backend;
mod document;
mod search;
mod snapshot;
mod tree;
mod watch;
mod yield_timer;

pub use backend::{FILE_BYTES, StateBackend, StateBuilder, TOTAL_BYTES};
pub use snapshot::{Snapshot, SnapshotFile};
