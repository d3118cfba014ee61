//! `agentbox completions SHELL`.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::exit::Failure;
use crate::output;

/// Options of `completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut program: clap::Command) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "agentbox", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
