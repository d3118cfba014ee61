//! `agentbox`: files and commands for AI agents, from a terminal or any MCP client.
#![cfg_attr(
    not(all(local, feature = "docker")),
    allow(
        dead_code,
        unused_imports,
        reason = "some of it serves directories of this machine, or containers, alone"
    )
)]

#[cfg(feature = "docker")]
mod agent;
mod app;
mod approval;
mod backend;
mod cli;
mod commands;
mod config;
mod console;
mod exit;
mod log;
mod output;
#[cfg(feature = "docker")]
mod progress;
mod rules;
mod signals;
mod system;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::cli::{Cli, Command};
use crate::exit::Failure;

/// Time allowed for work that cannot be cancelled, such as replacing a file.
const LAST_WORK: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    // This program also supervises the commands it runs: they end with it, whatever
    // happens to it.
    #[cfg(local)]
    backend_local::supervisor::run_if_asked();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            let fine = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            return ExitCode::from(if fine { exit::SUCCESS } else { exit::USAGE });
        }
    };
    run(cli).unwrap_or_else(|failure| {
        output::error(&failure);
        failure.exit_code()
    })
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let runtime = threads(&cli).enable_all().build().map_err(|error| {
        Failure::environment(format!(
            "no threads can be started: {error}; end other programs"
        ))
    })?;
    let result = runtime.block_on(commands::run(cli));
    // A thread may be blocked on standard input forever.
    runtime.shutdown_timeout(LAST_WORK);
    result
}

/// Creates the runtime. A single client over pipes is served on one thread: passing
/// each message between threads costs more than handling it. Files and commands have
/// their own threads.
fn threads(cli: &Cli) -> tokio::runtime::Builder {
    match &cli.command {
        Some(Command::Mcp(args)) if args.is_on_pipes() => {
            tokio::runtime::Builder::new_current_thread()
        }
        _ => tokio::runtime::Builder::new_multi_thread(),
    }
}
