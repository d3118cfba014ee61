//! Integration tests of `agentbox`: the program, started as its users start it.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod cli;
mod console_pipe;
mod console_recording;
mod console_terminal;
#[cfg(all(feature = "daytona", target_os = "linux"))]
mod daytona_conversation;
#[cfg(all(feature = "daytona", target_os = "linux"))]
mod daytona_program;
#[cfg(all(feature = "daytona", target_os = "linux"))]
mod daytona_sessions;
mod docker_program;
mod docker_sessions;
mod docker_terminal;
#[cfg(feature = "k8s")]
mod k8s_program;
#[cfg(feature = "k8s")]
mod k8s_sessions;
mod support;
