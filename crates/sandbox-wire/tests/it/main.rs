//! Integration tests of `sandbox-wire`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod calls;
#[cfg(target_os = "linux")]
mod conformance;
mod portable_conformance;
mod portable_docker;
mod portable_hostile;
mod portable_same;
mod serving;
mod support {
    pub(crate) mod hanging;
    pub(crate) mod liar;
    pub(crate) mod pipe;
    pub(crate) mod pipes;
    pub(crate) mod portable_machine;
}
mod transfer;
