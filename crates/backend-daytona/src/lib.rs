#![doc = include_str!("../README.md")]

mod account;
mod agent;
mod api;
mod archive;
mod attach;
mod builder;
mod carrier;
mod check;
mod client;
mod connect;
mod instance;
pub mod instances;
mod labels;
mod leftovers;
mod machine;
mod options;
mod refusal;
mod sandbox;
mod secret;
mod settings;
mod spec;
mod state;
mod toolbox;
mod wait;

pub use account::{Account, AccountBuilder, AccountInfo};
pub use attach::Attach;
pub use builder::DaytonaBuilder;
pub use leftovers::{Leftover, leftovers, reap};
pub use options::{Connection, Network, PreviewUrl, Volume};
pub use refusal::{CreateTimeout, Refusal, RefusalKind};
pub use sandbox::DaytonaSandbox;
pub use secret::Secret;
pub use settings::DEFAULT_WORKING_DIR;
pub use state::InstanceState;

pub use sandbox_shell::{Mode, Stats};
pub use sandbox_wire::agent::AgentBinary;

pub use sandbox_runtime::{PackageManager, Packages, Runtime, Runtimes};
