#![doc = include_str!("../README.md")]

mod backend;
mod builder;
mod engine;
mod exec;
mod fs;
mod random;
mod sandbox;
mod search;
pub mod supervisor;

pub use backend::LocalBackend;
pub use builder::{Builder, NameSpace, Resolution};
pub use exec::{Commands, Environment, Limits, Supervisor};
pub use supervisor::{Confinement, Landlock};
