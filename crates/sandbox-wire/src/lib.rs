#![doc = include_str!("../README.md")]

pub mod agent;
mod agent_sandbox;
mod channel;
mod client;
pub mod engine;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;
mod handshake;
mod machine;
mod message;
pub mod owner;
mod serve;
mod socket;
#[cfg(feature = "token")]
mod token;
#[cfg(feature = "websocket")]
pub mod websocket;

pub use agent_sandbox::{AgentOptions, AgentSandbox};
pub use handshake::AgentInfo;
pub use machine::{Machine, OutputChunk, Process, Spawn};
pub use serve::{ServeOptions, serve};
#[cfg(feature = "token")]
pub use token::Token;
