//! The web app as a browser sees it: the built program, over HTTP on loopback.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod chat;
mod docker_sessions;
mod files;
mod lifetime;
mod sites;
mod terminal;

use examples::web::tester::Built;

const APP: Built = Built(env!("CARGO_BIN_EXE_web_app"));
