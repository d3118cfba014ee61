#![doc = include_str!("../README.md")]

mod hosts;
mod opener;
mod tree;

pub use opener::Opener;
pub use permissions::mounts::{Derive, Mode, Mount, MountConfig, Scope};
pub use tree::MountTree;
