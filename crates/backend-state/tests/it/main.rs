//! Integration tests of `backend-state`.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod conformance;
mod document;
mod jsonb;
mod store;
mod watch;
