//! Integration tests of `sandbox-shell`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod conformance;
mod hosted;
mod hostile;
mod same;
mod support {
    pub(crate) mod host_machine;
    pub(crate) mod liar;
    pub(crate) mod pipes;
}
