//! `agentbox man [DIR]`.

use std::io;
use std::path::{Path, PathBuf};
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
        Some(directory) => write(directory, program).map_err(|error| {
            environment!(
                "the pages cannot be written to {}: {error}; give another directory",
                directory.display()
            )
        })?,
        None => {
            let mut page = Vec::new();
            let rendered = Man::new(program).render(&mut page);
            rendered.map_err(anyhow::Error::from)?;
            output::print(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write(directory: &Path, program: Command) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    // One page for each command, but none for `help`.
    let program = program.disable_help_subcommand(true);
    clap_mangen::generate_to(program, directory)
}
