//! Tests of examples that need more than this machine.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops where it fails, and reads what `cargo xtask test-all` sets"
)]

mod docker_volume_persistence;
