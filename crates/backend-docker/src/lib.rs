#![doc = include_str!("../README.md")]

mod archive;
mod attach;
mod builder;
mod check;
pub mod containers;
mod daemon;
mod environment;
pub mod image;
mod inspect;
mod labels;
mod leftovers;
mod machine;
mod options;
mod sandbox;
mod settings;
mod sockets;
mod spec;
mod stats;

pub use attach::Attach;
pub use builder::DockerBuilder;
pub use daemon::{Daemon, DaemonInfo};
pub use inspect::ContainerState;
pub use leftovers::{Leftover, leftovers, reap};
pub use options::{Delivery, Network, Relaxation, Volume};
pub use sandbox::DockerSandbox;
pub use settings::{DEFAULT_MEMORY, DEFAULT_PIDS};

pub use sandbox_shell::{Mode, Stats};
pub use sandbox_wire::agent::AgentBinary;

pub use sandbox_runtime::{
    PackageManager, Packages, Runtime, Runtimes, WORK_DIR as DEFAULT_WORKING_DIR,
};
