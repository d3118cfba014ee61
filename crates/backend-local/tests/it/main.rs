//! Integration tests of `backend-local`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod attack_crash;
mod attack_inputs;
mod attack_no_process;
mod attack_race;
mod attack_regressions;
mod attack_views;
mod commands;
mod confinement;
mod conformance;
mod errors;
mod files;
mod limits_of_views;
mod names;
mod process_trees;
mod refused_views;
mod resolution;
mod search;
mod shells;
mod signals;
mod terminals;
mod support {
    pub(crate) mod canary;
    pub(crate) mod commands;
    pub(crate) mod disk;
    pub(crate) mod place;
    pub(crate) mod race;
    pub(crate) mod snapshot;
    pub(crate) mod views;
}
mod trees;
mod views;
mod watch;
