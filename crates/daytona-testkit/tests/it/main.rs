//! The stand-in, through its HTTP interface: the behaviours that were measured on the real
//! service, and the faults.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod client;
mod ends;
mod faults;
mod files;
mod git;
mod lifecycle;
mod process;
mod proxy;
mod sessions;
mod terminals;
