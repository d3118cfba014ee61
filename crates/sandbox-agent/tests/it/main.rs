//! Integration tests of `sandbox-agent`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

#[cfg(target_os = "linux")]
mod conformance;
#[cfg(target_os = "linux")]
mod idle;
#[cfg(target_os = "linux")]
mod life;
#[cfg(target_os = "linux")]
mod listen;
#[cfg(target_os = "linux")]
mod ports;
#[cfg(target_os = "linux")]
mod socket;
mod support {
    pub(crate) mod escapees;
    pub(crate) mod listening;
    pub(crate) mod machine;
    #[cfg(target_os = "linux")]
    pub(crate) mod open;
}
