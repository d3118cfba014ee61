#![cfg_attr(all(feature = "local", target_os = "linux"), doc = include_str!("../README.md"))]
#![cfg_attr(
    not(all(feature = "local", target_os = "linux")),
    doc = "Named mounts with modes, suffixes, sizes and approvals, and scopes that only narrow."
)]

mod area;
mod config;
mod derive;
mod error;
mod exclude;
#[cfg(all(feature = "local", target_os = "linux"))]
mod hosts;
mod judge;
mod mount;
mod narrow;
#[cfg(all(feature = "local", target_os = "linux"))]
mod opener;
mod parse;
mod restriction;
mod scope;
mod table;
#[cfg(all(feature = "local", target_os = "linux"))]
mod tree;

pub use config::MountConfig;
pub use derive::{DERIVE_DEPTH, DERIVE_ENTRIES, Derive, DeriveError};
pub use error::MountError;
pub use mount::{Mode, Mount};
pub use narrow::derive;
#[cfg(all(feature = "local", target_os = "linux"))]
pub use opener::Opener;
pub use scope::{Resolved, Scope};
pub use table::Mounts;
#[cfg(all(feature = "local", target_os = "linux"))]
pub use tree::MountTree;
