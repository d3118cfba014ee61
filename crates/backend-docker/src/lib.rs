#![doc = include_str!("../README.md")]

mod archive;
mod attach;
mod builder;
mod check;
mod daemon;
mod dockerfile;
mod environment;
pub mod image;
mod labels;
mod leftovers;
mod machine;
mod options;
pub mod runtime;
mod sandbox;
mod settings;
mod spec;
mod stats;

pub use attach::Attach;
pub use builder::DockerBuilder;
pub use daemon::{Daemon, DaemonInfo};
pub use leftovers::{Leftover, leftovers, reap};
pub use options::{Delivery, Mode, Network, Relaxation, Volume};
pub use runtime::{PackageManager, Packages, Runtime, Runtimes};
pub use sandbox::{ContainerState, DockerSandbox};
pub use settings::{DEFAULT_MEMORY, DEFAULT_PIDS, DEFAULT_WORKING_DIR};
pub use stats::Stats;
