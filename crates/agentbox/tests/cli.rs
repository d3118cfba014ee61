//! The program as its users see it: arguments in, output and exit codes out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set up has failed"
)]

#[path = "cli/agent.rs"]
mod agent;
#[path = "cli/call.rs"]
mod call;
#[path = "cli/check.rs"]
mod check;
#[path = "cli/configured.rs"]
mod configured;
#[path = "cli/containers.rs"]
mod containers;
#[path = "cli/help.rs"]
mod help;
#[path = "cli/machine.rs"]
mod machine;
#[path = "cli/mcp.rs"]
mod mcp;
#[path = "cli/mcp_config.rs"]
mod mcp_config;
#[path = "cli/run.rs"]
mod run;
#[path = "cli/signals.rs"]
mod signals;
#[path = "cli/state.rs"]
mod state;
#[path = "cli/support.rs"]
mod support;
#[path = "cli/terminal.rs"]
mod terminal;
#[path = "cli/tour.rs"]
mod tour;
#[path = "cli/trees.rs"]
mod trees;
