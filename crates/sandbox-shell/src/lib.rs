#![doc = include_str!("../README.md")]

mod command;
mod failure;
mod hosted;
mod pool;
mod read;
mod record;
mod sandbox;
mod search;
mod sentinel;
mod tree;
mod worker;
mod write;

pub use hosted::{HostedMachine, HostedSandbox, Mode};
pub use sandbox::PortableSandbox;
