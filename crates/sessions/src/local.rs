//! Sessions in directories of this machine, and the reader of stored files.
//!
//! ```text
//! ROOT/
//!   alice/
//!     workspace/     the session's files
//!     session.json   its record; its time of change is that of the last use
//!     env.json       the variables of its commands, if it has any
//!     release        a request to end it, of a process that does not use it
//!   .removed-…/      files that are being deleted
//!   .engine          the mark of the engine
//! ```
//!
//! A process that uses a session holds a shared lock on its record. Whatever looks at a
//! session and then changes it holds the lock of its directory for that moment.

mod archive;
mod blocking;
mod builder;
mod engine;
mod host;
mod measure;
mod meter;
mod place;
mod root;
mod sandbox;
mod stored;
mod tree;

pub use archive::ARCHIVE_ENTRIES;
pub use builder::LocalEngineBuilder;
pub use engine::LocalEngine;
pub use stored::{StoredFiles, StoredSessions};
pub use tree::{TREE_DEPTH, TREE_ENTRIES, Tree, TreeOptions};
