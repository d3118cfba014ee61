//! Integration tests of `command-line`.

#![cfg(feature = "shell")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod findings;
#[cfg(target_os = "linux")]
mod globs;
#[cfg(target_os = "linux")]
mod shells;
