#![doc = include_str!("../README.md")]

pub mod dockerfile;
mod environment;
mod error;
pub mod options;
mod read;
mod registry;
mod runtime;
mod validate;

pub use environment::environment;
pub use registry::Runtimes;
pub use runtime::{PackageManager, Packages, Runtime, WORK_DIR};
pub use validate::SYSTEM_DIRECTORIES;
