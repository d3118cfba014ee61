//! [`Guarded`]: any backend behind a policy.
//!
//! Every operation is judged with the path as given, then performed with links refused.
//! Only if a link is in the way is the path resolved. Then its target is judged as well,
//! and exactly that target is used, again with links refused. So the path that was judged
//! is the path that is used, even if another process swaps links in the meantime or while
//! the approver decides.
//!
//! A guard cannot control what a command does once it runs. It judges the command line,
//! and hands the paths that the policy denies to the sandbox, which keeps them from the
//! command if it can.

mod authorize;
mod backend;
mod command_lines;
mod gate;
mod guard;
mod kept;
mod link_resolution;
mod list;
mod preview;
mod read;
mod sandbox;
mod shells;
mod tree;
mod watch;
mod write;

pub use authorize::PlannedAccesses;
pub use guard::{Guarded, GuardedBuilder};
pub use preview::PREVIEW_BYTES;
pub use tree::TREE_ENTRIES;
