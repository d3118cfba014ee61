//! What a container, or somebody else at the daemon, may do to a sandbox: kill its
//! agent over and over, remove or pause the container, flood, fork, and lie.
//!
//! Every test removes what it made and looks whether it did.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set up has failed"
)]

#[path = "abuse/hostile.rs"]
mod hostile;
#[path = "abuse/inside.rs"]
mod inside;
#[path = "abuse/outside.rs"]
mod outside;
#[path = "abuse/support.rs"]
mod support;
