#![doc = include_str!("../README.md")]

mod backend;
mod coop;
mod document;
mod search;
mod snapshot;
mod tree;

pub use backend::{FILE_BYTES, StateBackend, StateBuilder, TOTAL_BYTES};
pub use snapshot::{Snapshot, SnapshotFile, SnapshotFiles};
