//! The workspace's own commands: `cargo xtask help` lists them.
//!
//! All checks of the project are started from here, so that contributors and CI run the
//! same code.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a command-line tool prints, reads its environment and polls child processes"
)]

mod agent;
mod api;
mod bench;
mod book;
mod cluster;
mod dist;
mod docker;
mod flags;
mod images;
mod lock;
mod markdown;
mod metadata;
mod packages;
mod process;
mod provision;
mod scratch;
mod sealed;
mod table;
mod test_all;
mod tidy;
mod workspace;
mod xterm;

use std::process::ExitCode;

use anyhow::Result;

use crate::flags::{Xtask, XtaskCmd};

fn main() -> ExitCode {
    match run(Xtask::from_env_or_exit()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one command. Returns `false` if it ran and its check failed.
fn run(flags: Xtask) -> Result<bool> {
    match flags.subcommand {
        XtaskCmd::Help(_) => {
            println!("{}", Xtask::help());
            Ok(true)
        }
        XtaskCmd::TestAll(flags) => test_all::run(&flags),
        XtaskCmd::Tidy(flags) => tidy::run(&flags),
        XtaskCmd::Api(flags) => api::run(&flags),
        XtaskCmd::Agent(flags) => agent::run(&flags),
        XtaskCmd::Dist(flags) => match &flags.check {
            Some(archive) => test_all::try_archive(archive),
            None => dist::run(&flags),
        },
        XtaskCmd::Xterm(_) => xterm::run(),
        XtaskCmd::Cluster(flags) => cluster::run(&flags),
        XtaskCmd::Book(_) => book::run(),
        XtaskCmd::Bench(flags) => bench::run(&flags),
    }
}
