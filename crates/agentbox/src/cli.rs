//! The command line.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand};
use toml::{Table, Value};

use crate::backend;
#[cfg(feature = "docker")]
use crate::commands::{agent, runtimes, sandboxes};
use crate::commands::{call, check, completions, doctor, man, mcp, mcp_config, run, tools, tour};
use crate::config::resolve_path;

const MORE: &str = "\
Every option can also be set by a variable (AGENTBOX_BACKEND for --backend) or in \
the config file, ~/.config/agentbox/config.toml unless --config names another. A flag \
outranks a variable, a variable the file.

Exit codes: 0 success, 1 other arguments can succeed, 2 refused, 3 the machine or the \
backend cannot do it, 64 wrong usage, 130 ended by Ctrl-C.";

/// Files and commands for AI agents, from a terminal or any MCP client.
///
/// Without a command: a console in which a person uses the tools that a model would.
#[derive(Debug, Parser)]
#[command(name = "agentbox", version, after_help = MORE)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Options common to all commands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Global {
    #[arg(long, global = true, value_name = "BACKEND", help = backend::help())]
    backend: Option<String>,
    /// The permission rules: default, permissive, readonly, strict, or a file with
    /// rules; without it everything inside the backend is allowed.
    #[arg(long, global = true, value_name = "PRESET|FILE")]
    permissions: Option<String>,
    /// Another directory that the file tools of local:DIR reach; paths are then
    /// those of this machine. Can be given more than once.
    #[arg(long = "allow-dir", global = true, value_name = "DIR")]
    allow_dirs: Vec<String>,
    /// The format of file edits.
    #[arg(long, global = true, value_name = "FORMAT", value_parser = PossibleValuesParser::new(["str_replace", "hashline"]))]
    edit_format: Option<String>,
    /// Which tools there are, and how much their descriptions say.
    #[arg(long, global = true, value_name = "PROFILE", value_parser = PossibleValuesParser::new(profiles()))]
    profile: Option<String>,
    /// The level logged to standard error: off, error, warn, info, debug, trace, or a
    /// filter such as warn,backend_local=debug.
    #[arg(long, global = true, value_name = "LEVEL|FILTER")]
    log: Option<String>,
    /// The config file.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Returns the profiles. `agent`, an alias of `lean`, is its name in
/// pydantic-ai-backend.
fn profiles() -> [PossibleValue; 3] {
    let lean = PossibleValue::new("lean").alias("agent");
    ["coding".into(), lean, "filesystem".into()]
}

impl Global {
    /// Returns `true` if directories were given that only one kind of backend supports.
    pub(crate) fn allows_directories(&self) -> bool {
        !self.allow_dirs.is_empty()
    }

    /// Returns the flags as a layer of the configuration.
    pub(crate) fn layer(&self) -> Table {
        let flags = [
            ("backend", &self.backend),
            ("permissions", &self.permissions),
            ("edit_format", &self.edit_format),
            ("profile", &self.profile),
            ("log", &self.log),
        ];
        let given = flags.into_iter().filter_map(|(key, value)| {
            let value = value.as_ref()?;
            Some((key.to_owned(), Value::from(value.as_str())))
        });
        let mut layer: Table = given.collect();
        if !self.allow_dirs.is_empty() {
            let here = std::env::current_dir().unwrap_or_default();
            let absolute = |path: &String| resolve_path(path, &here).to_string_lossy().into_owned();
            let paths: Vec<String> = self.allow_dirs.iter().map(absolute).collect();
            let local = Table::from_iter([(backend::ALLOWED.to_owned(), paths.into())]);
            layer.insert("local".to_owned(), local.into());
        }
        layer
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serves the tools to an MCP client.
    Mcp(mcp::Args),
    /// Prints what an MCP client's configuration needs.
    McpConfig(mcp_config::Args),
    /// Calls one tool, for scripts.
    Call(call::Args),
    /// Lists the tools.
    Tools(tools::Args),
    /// Runs a command in the sandbox, with live output.
    Run(run::Args),
    /// Explains what rules say about an operation; exit code 0 allow, 1 deny, 2 ask.
    Check(check::Args),
    /// Tells what this machine can host and what is missing.
    Doctor(doctor::Args),
    #[cfg(feature = "docker")]
    /// Lists, shows and builds what containers can be made of.
    Runtimes(runtimes::Args),
    #[cfg(feature = "docker")]
    /// Lists and removes containers whose program is gone.
    ///
    /// One that was to be kept is only stopped; docker rm removes it.
    Sandboxes(sandboxes::Args),
    #[cfg(feature = "docker")]
    /// Installs the program that makes calls into containers fast.
    Agent(agent::Args),
    /// Shows what the tools do, in two minutes.
    Tour(tour::Args),
    /// Prints completions for a shell.
    Completions(completions::Args),
    /// Prints the manual page, or writes all of them to a directory.
    Man(man::Args),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
