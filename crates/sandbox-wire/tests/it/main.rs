//! Integration tests of `sandbox-wire`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod calls;
#[cfg(target_os = "linux")]
mod conformance;
mod connections;
mod serving;
mod support {
    pub(crate) mod hanging;
    pub(crate) mod pipe;
}
mod transfer;
mod watch;
#[cfg(all(feature = "websocket", target_os = "linux"))]
mod websocket;
