//! Integration tests of `console-mcp`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod approvals;
mod bad_input;
mod http;
mod idle;
mod long_calls;
mod protocol;
mod roots;
mod support {
    pub(crate) mod client;
    pub(crate) mod http;
}
mod tokens;
