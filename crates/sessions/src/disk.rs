//! Trees of files that the commands of a session made, and may be changing: measured and
//! deleted without following a link, however deep they are.

mod measure;
mod remove;

#[cfg(all(feature = "local", target_os = "linux"))]
pub(crate) use measure::Unmeasured;
pub(crate) use measure::measure;
pub(crate) use remove::remove_tree;
