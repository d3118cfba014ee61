//! The program as its users see it: arguments in, output and exit codes out.

mod agent;
mod call;
mod check;
mod configured;
mod containers;
mod forward;
mod help;
mod hosted;
mod machine;
mod mcp;
mod mcp_config;
mod own_files;
mod pages;
mod pods;
mod run;
mod sessions;
mod shell;
mod signals;
mod state;
mod terminal;
mod tour;
mod trees;
mod watch;
