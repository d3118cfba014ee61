//! Integration tests of `mounts`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

#[cfg(target_os = "linux")]
mod conformance;
#[cfg(target_os = "linux")]
mod opening;
#[cfg(target_os = "linux")]
mod three_mounts;
