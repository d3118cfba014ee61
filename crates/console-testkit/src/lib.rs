#![doc = include_str!("../README.md")]

mod chats;
mod client;
mod environment;
mod mask;
mod play;
mod script;
mod transcript;

pub use chats::Chats;
pub use client::{BlockSummary, Call, Client, Outcome};
pub use environment::Environment;
pub use mask::Mask;
pub use play::play;
pub use script::{Need, Script, ScriptError, Seed, Setup, Step, YesNo};
pub use transcript::{Entry, Transcript};
