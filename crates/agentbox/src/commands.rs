//! The subcommands, one file each.

#[cfg(containers)]
pub(crate) mod agent;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod forward;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod mcp_config;
pub(crate) mod run;
#[cfg(feature = "docker")]
pub(crate) mod runtimes;
#[cfg(containers)]
pub(crate) mod sandboxes;
pub(crate) mod sessions;
#[cfg(unix)]
pub(crate) mod shell;
pub(crate) mod tools;
pub(crate) mod tour;
pub(crate) mod watch;
