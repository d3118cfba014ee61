//! Integration tests of `permissions`.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

mod approval_approvers;
mod approval_audit;
mod approval_grants;
mod approval_in_flight;
mod approval_scopes;
mod approval_service;
#[cfg(feature = "shell")]
mod command;
#[cfg(feature = "shell")]
mod command_corpus;
#[cfg(not(feature = "shell"))]
mod command_without_shell;
#[cfg(all(feature = "shell", target_os = "linux"))]
mod command_work;
#[cfg(target_os = "linux")]
mod conformance;
#[cfg(target_os = "linux")]
mod guarded;
#[cfg(target_os = "linux")]
mod guarded_authorize;
#[cfg(target_os = "linux")]
mod guarded_effects;
#[cfg(target_os = "linux")]
mod guarded_mounts;
#[cfg(all(feature = "shell", target_os = "linux"))]
mod host_names;
#[cfg(target_os = "linux")]
mod kept;
#[cfg(target_os = "linux")]
mod presets;
#[cfg(target_os = "linux")]
mod protected;
mod rules;
mod rules_load;
mod rules_presets;
mod rules_properties;
mod support {
    pub(crate) mod asked;
    #[cfg(feature = "shell")]
    pub(crate) mod corpus;
    pub(crate) mod scene;
}
#[cfg(target_os = "linux")]
mod swap;
#[cfg(all(feature = "shell", target_os = "linux"))]
mod terminals;
mod watch;
