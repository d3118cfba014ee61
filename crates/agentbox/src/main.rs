//! `agentbox`: files and commands for AI agents, from a terminal or any MCP client.
#![cfg_attr(
    not(all(local, feature = "docker")),
    allow(
        dead_code,
        unused_imports,
        reason = "some of it serves directories of this machine, or containers, alone"
    )
)]

#[cfg(containers)]
mod agent;
mod app;
mod approval;
#[cfg(unix)]
mod attach;
mod backend;
mod cli;
mod commands;
mod config;
mod console;
mod exit;
mod files;
mod log;
mod options;
mod output;
mod owner;
#[cfg(feature = "docker")]
mod progress;
mod rules;
mod runtime;
mod signals;
mod system;
mod terminal;
mod token;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::cli::Cli;

fn main() -> ExitCode {
    // This program also supervises the commands it runs, which end with it.
    #[cfg(local)]
    backend_local::supervisor::run_if_asked();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let error = cli::with_values(error);
            let _ = error.print();
            let fine = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            return ExitCode::from(if fine { exit::SUCCESS } else { exit::USAGE });
        }
    };
    cli.run().unwrap_or_else(|failure| {
        output::error(&failure);
        failure.exit_code()
    })
}
