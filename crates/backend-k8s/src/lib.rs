#![doc = include_str!("../README.md")]

mod access;
mod attach;
mod builder;
mod check;
mod cluster;
mod credentials;
mod deliver;
mod exec;
mod labels;
mod leftovers;
mod machine;
mod network;
mod options;
mod overlay;
pub mod pods;
mod reason;
mod sandbox;
mod settings;
mod spec;
mod start_slots;
mod stream;

pub use attach::Attach;
pub use builder::K8sBuilder;
pub use cluster::{Cluster, ClusterInfo};
pub use leftovers::{Leftover, leftovers, reap};
pub use options::{Delivery, Network, PullPolicy, Relaxation, Volume};
pub use sandbox::K8sSandbox;
pub use settings::{DEFAULT_MEMORY, DEFAULT_REQUEST_CPUS, DEFAULT_REQUEST_MEMORY};

pub use sandbox_shell::{Mode, Stats};
pub use sandbox_wire::agent::AgentBinary;

pub use sandbox_runtime::{
    PackageManager, Packages, Runtime, Runtimes, WORK_DIR as DEFAULT_WORKING_DIR,
};
