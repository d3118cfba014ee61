//! Integration tests of `backend-daytona`, against a stand-in for the service.

#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod account;
mod archive;
mod create;
mod daytona_agent;
mod daytona_conformance;
mod daytona_conversation;
mod hostile;
mod instances;
mod leftovers;
mod lifecycle;
mod live;
mod portable;
mod support;
