//! Integration tests of `console-tools`.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops where it fails"
)]

/// Writes calls of tools: the name and the arguments, and for some what is expected.
macro_rules! calls {
    ($($tool:ident $arguments:tt;)+) => {
        [$((stringify!($tool), serde_json::json!($arguments))),+]
    };
    ($($tool:ident $arguments:tt => $expected:expr;)+) => {
        [$((stringify!($tool), serde_json::json!($arguments), $expected)),+]
    };
}

mod bad_input;
mod capability;
mod conversation;
mod custom;
mod definitions;
mod filesystem_profile;
mod filesystem_refusals;
#[cfg(target_os = "linux")]
mod host_names;
mod kept_outputs;
mod one_question;
mod previews;
mod read_tracking;
#[cfg(target_os = "linux")]
mod requests;
#[cfg(target_os = "linux")]
mod shells;
mod snapshots_commands;
mod snapshots_schemas;
mod snapshots_texts;
mod support {
    pub(crate) mod approver;
    pub(crate) mod cases;
    pub(crate) mod fields;
    pub(crate) mod mounted;
    pub(crate) mod script;
    pub(crate) mod valid;
}
#[cfg(target_os = "linux")]
mod tool_reference;
mod toolset;
#[cfg(target_os = "linux")]
mod transcripts;
