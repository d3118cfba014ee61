//! The command line.

#[cfg(test)]
mod reference;

use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::app::App;
#[cfg(feature = "docker")]
use crate::commands::runtimes;
#[cfg(unix)]
use crate::commands::shell;
#[cfg(containers)]
use crate::commands::{agent, sandboxes};
use crate::commands::{
    call, check, completions, doctor, forward, man, mcp, mcp_config, run, sessions, tools, tour,
    watch,
};
use crate::console;
use crate::exit::Failure;
use crate::options::CommonOptions;
use crate::runtime::{block_on, block_on_one_thread};

const AFTER_HELP: &str = "\
Every option can also be set by a variable (AGENTBOX_BACKEND for --backend) or in \
the config file, ~/.config/agentbox/config.toml unless --config names another. A flag \
outranks a variable, a variable the file.

Exit codes: 0 success, 1 other arguments can succeed, 2 refused, 3 the machine or the \
backend cannot do it, 64 wrong usage, 130 ended by Ctrl-C.";

/// Files and commands for AI agents, from a terminal or any MCP client.
///
/// Without a command: a console in which a person uses the tools that a model would.
#[derive(Debug, Parser)]
#[command(name = "agentbox", version, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    options: CommonOptions,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
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
    #[cfg(unix)]
    /// Opens an interactive shell in the sandbox; Enter, ~ and . leave it.
    Shell(shell::Args),
    /// Makes ports of the sandbox reachable on this machine.
    Forward(forward::Args),
    /// Prints the changes of a tree as they happen, until Ctrl-C.
    Watch(watch::Args),
    /// Explains what rules say about an operation; exit code 0 allow, 1 deny, 2 ask.
    Check(check::Args),
    /// Tells what this machine can host and what is missing.
    Doctor(doctor::Args),
    #[cfg(feature = "docker")]
    /// Lists, shows and builds what containers can be made of.
    Runtimes(runtimes::Args),
    #[cfg(containers)]
    /// Lists and removes sandboxes whose program is gone.
    ///
    /// A container that was to be kept is only stopped; docker rm removes it.
    Sandboxes(sandboxes::Args),
    #[cfg(containers)]
    /// Installs the program that makes calls into containers fast.
    Agent(agent::Args),
    /// Lists and ends the sessions of a server's clients, and shows their files.
    Sessions(sessions::Args),
    /// Shows what the tools do, in two minutes.
    Tour(tour::Args),
    /// Prints completions for a shell.
    Completions(completions::Args),
    /// Prints the manual page, or writes all of them to a directory.
    Man(man::Args),
}

impl Cli {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let app = || App::new(&self.options);
        match self.command {
            None => block_on(console::run(app()?)),
            Some(Command::Mcp(args)) => {
                let app = app()?;
                // Passing a single client's messages between threads costs more time.
                if args.listens(&app.config.mcp) {
                    block_on(mcp::run(app, args))
                } else {
                    block_on_one_thread(mcp::run(app, args))
                }
            }
            Some(Command::McpConfig(args)) => mcp_config::run(&app()?, &args),
            Some(Command::Call(args)) => block_on(call::run(&app()?, args)),
            Some(Command::Tools(args)) => block_on(tools::run(app()?, &args)),
            Some(Command::Run(args)) => block_on(run::run(&app()?, args)),
            #[cfg(unix)]
            Some(Command::Shell(args)) => block_on(shell::run(&app()?, args)),
            Some(Command::Forward(args)) => block_on(forward::run(app()?, args)),
            Some(Command::Watch(args)) => block_on(watch::run(&app()?, args)),
            Some(Command::Check(args)) => check::run(&args),
            Some(Command::Doctor(args)) => block_on(doctor::run(&self.options, &args)),
            #[cfg(feature = "docker")]
            Some(Command::Runtimes(args)) => block_on(runtimes::run(&app()?, args)),
            #[cfg(containers)]
            Some(Command::Sandboxes(args)) => block_on(sandboxes::run(&app()?, args)),
            #[cfg(containers)]
            Some(Command::Agent(args)) => block_on(agent::run(&app()?, args)),
            Some(Command::Sessions(args)) => block_on(sessions::run(&app()?, args)),
            Some(Command::Tour(args)) => block_on(tour::run(&args)),
            Some(Command::Completions(args)) => completions::run(&args, Self::command()),
            Some(Command::Man(args)) => man::run(&args, Self::command()),
        }
    }
}

/// Adds the possible values of missing arguments to an error about them: clap only lists
/// them for wrong values.
pub(crate) fn with_values(mut error: clap::Error) -> clap::Error {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing))
            if error.kind() == ErrorKind::MissingRequiredArgument =>
        {
            missing
        }
        _ => return error,
    };
    let mut cli = Cli::command();
    cli.build();
    let arguments = cli.get_subcommands().flat_map(clap::Command::get_arguments);
    let tips = arguments.filter_map(|argument| {
        let name = argument.to_string();
        let values = argument.get_possible_values();
        let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
        let is_listed = missing.contains(&name) && !names.is_empty();
        is_listed.then(|| format!("{name} is one of {}", names.join(", ")).into())
    });
    let tips: Vec<StyledStr> = tips.collect();
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_missing_argument_may_be_is_listed() {
        for (line, tip) in [
            (
                &["agentbox", "mcp-config"][..],
                "tip: <CLIENT> is one of claude-code, ",
            ),
            (
                &["agentbox", "mcp-config", "--backend", "state"],
                ", windsurf, zed\n",
            ),
            (
                &["agentbox", "completions"],
                "tip: <SHELL> is one of bash, ",
            ),
        ] {
            let error = with_values(Cli::try_parse_from(line).unwrap_err()).to_string();
            assert!(error.contains(tip), "{error}");
        }
        let other = with_values(Cli::try_parse_from(["agentbox", "run"]).unwrap_err());
        assert!(!other.to_string().contains("tip:"), "{other}");
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
