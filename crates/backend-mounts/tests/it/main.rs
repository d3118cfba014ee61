//! Integration tests of `backend-mounts`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod config;
#[cfg(all(feature = "local", target_os = "linux"))]
mod conformance;
mod derive;
#[cfg(all(feature = "local", target_os = "linux"))]
mod opening;
mod properties;
mod scope;
mod search;
mod support {
    pub(crate) mod scope;
}
#[cfg(all(feature = "local", target_os = "linux"))]
mod three_mounts;
