#![doc = include_str!("../README.md")]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "backend-local runs on Linux only so far: use backend-state for files in memory, or \
     backend-docker for files and commands in containers"
);

#[cfg(target_os = "linux")]
mod backend;
#[cfg(target_os = "linux")]
mod builder;
#[cfg(target_os = "linux")]
mod cancel;
#[cfg(target_os = "linux")]
mod denied;
#[cfg(target_os = "linux")]
mod engine;
#[cfg(target_os = "linux")]
mod exec;
#[cfg(target_os = "linux")]
mod fs;
#[cfg(target_os = "linux")]
mod random;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod search;
#[cfg(target_os = "linux")]
pub mod supervisor;
#[cfg(target_os = "linux")]
mod watch;

#[cfg(target_os = "linux")]
pub use backend::LocalBackend;
#[cfg(target_os = "linux")]
pub use builder::{LocalBuilder, NameSpace, Resolution};
#[cfg(target_os = "linux")]
pub use exec::{Commands, Environment, Supervisor};
#[cfg(target_os = "linux")]
pub use supervisor::{Confinement, Landlock, Limits};
