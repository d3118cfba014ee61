//! Integration tests of `backend-composite`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod commands;
mod conformance;
mod failures;
mod flat;
mod routes;
mod support {
    pub(crate) mod call;
    pub(crate) mod fixture;
    pub(crate) mod pair;
    pub(crate) mod states;
    pub(crate) mod strategy;
    pub(crate) mod unseen;
}
mod transfer;
mod views;
mod watch;
