//! The program as a browser sees it: built, over HTTP on loopback.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod chat;
mod refusals;
mod server;
mod sites;
