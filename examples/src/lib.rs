//! Runnable examples: `cargo run --example quickstart`.
//!
//! What follows is the project's README, so that its code is compiled and run.
#![doc = include_str!("../../README.md")]
