//! Damage that a container, or another client of the daemon, can do to a sandbox: kill
//! its agent repeatedly, remove or pause the container, flood, fork, and lie.
//!
//! Every test removes what it created and verifies that.
mod hostile;
mod inside;
mod outside;
mod support;
