//! `agentbox man [DIR]`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Command;
use clap_mangen::Man;

use crate::exit::{Failure, environment};
use crate::output;

/// Options of `man`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The directory for the pages of all commands, such as ~/.local/share/man/man1.
    directory: Option<PathBuf>,
}

/// Prints or writes the manual pages of `program`.
pub(crate) fn run(args: &Args, program: Command) -> Result<ExitCode, Failure> {
    match &args.directory {
        Some(directory) => {
            // One page for each command, but none for `help`.
            let program = program.disable_help_subcommand(true);
            let written = std::fs::create_dir_all(directory)
                .and_then(|()| clap_mangen::generate_to(program, directory));
            written.map_err(|error| {
                let directory = directory.display();
                environment!(
                    "the pages cannot be written to {directory}: {error}; give another directory"
                )
            })?;
        }
        None => {
            let mut page = Vec::new();
            let rendered = Man::new(program).render(&mut page);
            rendered.map_err(anyhow::Error::from)?;
            output::print(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
