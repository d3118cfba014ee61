//! Integration tests of `agentbox-sessions`.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod ceilings;
#[cfg(target_os = "linux")]
mod conformance;
mod connections;
#[cfg(all(feature = "daytona", target_os = "linux"))]
mod daytona_processes;
#[cfg(all(feature = "daytona", target_os = "linux"))]
mod daytona_sessions;
#[cfg(feature = "docker")]
mod docker_engine;
#[cfg(feature = "docker")]
mod docker_processes;
#[cfg(feature = "docker")]
mod docker_soak;
mod events;
mod hanging;
mod idle;
#[cfg(feature = "k8s")]
mod k8s_agent_sandbox;
#[cfg(feature = "k8s")]
mod k8s_calls;
#[cfg(feature = "k8s")]
mod k8s_processes;
#[cfg(feature = "k8s")]
mod k8s_rbac;
#[cfg(feature = "k8s")]
mod k8s_sessions;
#[cfg(all(feature = "local", target_os = "linux"))]
mod local;
mod manager;
mod model;
mod processes;
mod support;
#[cfg(feature = "tools")]
mod tools;
