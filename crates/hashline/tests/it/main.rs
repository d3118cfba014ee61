//! Integration tests of `hashline`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod bounds;
mod properties;
mod scenarios;
