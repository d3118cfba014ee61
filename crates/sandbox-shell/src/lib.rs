#![doc = include_str!("../README.md")]

mod agents;
mod command;
mod failure;
mod hosted;
mod leftovers;
mod lifecycle;
mod pool;
mod read;
mod record;
mod sampler;
mod sandbox;
mod search;
mod sentinel;
mod stats;
mod tree;
mod worker;
mod write;

pub use agents::{Agents, Mode};
pub use hosted::{HostedMachine, HostedSandbox};
pub use leftovers::{Disposal, reap_once};
pub use lifecycle::{Lifecycle, OnDemand, Presence, StartReason, State};
pub use sampler::Sampler;
pub use sandbox::PortableSandbox;
pub use stats::Stats;
