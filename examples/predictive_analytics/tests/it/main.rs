//! The program as a browser sees it: built, over HTTP on loopback.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod chat;
mod docker_engine;
mod refusals;
mod sites;
mod turn;

use examples::web::tester::Built;

const APP: Built = Built(env!("CARGO_BIN_EXE_predictive_analytics"));
