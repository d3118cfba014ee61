//! Integration tests of `backend-docker`.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod build_fake_daemon;
mod docker_abuse;
mod docker_attach;
mod docker_build;
mod docker_build_runtimes;
mod docker_conformance;
mod docker_containers;
mod docker_conversation;
mod docker_daemon;
mod docker_faults;
mod docker_hardening;
mod docker_leftovers;
mod docker_lifecycle;
mod docker_sockets;
mod docker_volumes;
mod leftovers_fake_daemon;
mod names_fake_daemon;
mod support {
    pub(crate) mod build;
    pub(crate) mod docker;
    pub(crate) mod fake_daemon;
}
