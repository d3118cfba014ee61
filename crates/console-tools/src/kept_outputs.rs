//! Outputs that were too long for a reply, kept for reading and searching.
//!
//! They live in memory under a virtual directory that exists in no backend, so a model
//! reads and greps them with the usual tools on any backend. They are dropped with the
//! conversation.

mod collector;
mod overlay;
mod store;

pub(crate) use collector::{Collector, ShownOutput};
pub use overlay::OutputOverlay;
pub use store::OUTPUTS;
pub(crate) use store::{OutputStore, is_kept};
