#![doc = include_str!("../README.md")]

mod engine;
mod error;
mod id;
#[cfg(all(feature = "local", target_os = "linux"))]
mod local;
mod record;
mod request;
mod time;

pub use engine::{Attached, Claim, Engine};
pub use error::{CapacityError, CapacityScope, QuotaError};
pub use id::{ID_BYTES, SessionId};
#[cfg(all(feature = "local", target_os = "linux"))]
pub use local::{
    ARCHIVE_ENTRIES, LocalEngine, LocalEngineBuilder, StoredFiles, StoredSessions, TREE_DEPTH,
    TREE_ENTRIES, Tree, TreeOptions,
};
pub use record::{Record, RecordState, Usage};
pub use request::{OpenRequest, fingerprint};
pub use time::Clock;
