//! Integration tests of `backend-sync`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

#[cfg(target_os = "linux")]
mod commands;
#[cfg(target_os = "linux")]
mod conformance;
mod contexts;
mod support {
    pub(crate) mod flat;
    pub(crate) mod inline;
    pub(crate) mod slow;
}
#[cfg(feature = "tools")]
mod toolset;
