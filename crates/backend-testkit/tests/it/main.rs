//! Integration tests of `backend-testkit`.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod broken;
#[cfg(target_os = "linux")]
mod naive;
mod table;
