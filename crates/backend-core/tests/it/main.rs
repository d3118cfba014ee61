//! Integration tests of `backend-core`.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod derived;
#[cfg(feature = "serde")]
mod round_trip;
