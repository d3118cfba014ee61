#![doc = include_str!("../README.md")]

mod backend;
mod builder;
mod document;
mod search;
mod snapshot;
mod tree;
mod yield_timer;

pub use backend::StateBackend;
pub use builder::{FILE_BYTES, StateBuilder, TOTAL_BYTES};
pub use snapshot::{Snapshot, SnapshotFile, SnapshotFiles};
