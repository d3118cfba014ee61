#![doc = include_str!("../README.md")]

mod chats;
mod client;
mod mask;
mod play;
mod script;
mod transcript;

pub use chats::Chats;
pub use client::{Call, Client, Outcome, Seen};
pub use mask::Mask;
pub use play::{Place, play};
pub use script::{Need, Script, ScriptError, Seed, Setup, Step, YesNo};
pub use transcript::{Entry, Transcript};
