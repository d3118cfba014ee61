//! Damage that a container, or another client of the daemon, can do to a sandbox: kill
//! its agent repeatedly, remove or pause the container, flood, fork, and lie.
//!
//! Every test cleans up after itself and verifies that it did.
mod hostile;
mod inside;
mod outside;
mod support;
