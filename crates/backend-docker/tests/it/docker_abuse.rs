//! What a container, or somebody else at the daemon, may do to a sandbox: kill its
//! agent over and over, remove or pause the container, flood, fork, and lie.
//!
//! Every test removes what it made and looks whether it did.
mod hostile;
mod inside;
mod outside;
mod support;
