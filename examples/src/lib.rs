//! Runnable examples: `cargo run --example quickstart`. [`chat`] is the loop with a model
//! that several of them share, and `web` a service around it.
//!
//! The rest is the project's README, so that its code is compiled and run.
#![doc = include_str!("../../README.md")]

pub mod chat;
#[cfg(feature = "web")]
pub mod web;

#[doc = include_str!("../../docs/tools.md")]
pub mod tools {}

#[doc = include_str!("../../docs/errors.md")]
pub mod errors {}

#[cfg(test)]
mod pages;
