//! The subcommands, one file each.

#[cfg(feature = "docker")]
pub(crate) mod agent;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod mcp_config;
pub(crate) mod run;
#[cfg(feature = "docker")]
pub(crate) mod runtimes;
#[cfg(feature = "docker")]
pub(crate) mod sandboxes;
pub(crate) mod tools;
pub(crate) mod tour;

use std::process::ExitCode;

use crate::app::App;
use crate::cli::{Cli, Command};
use crate::console;
use crate::exit::{self, Failure};
use crate::runtime::{block_on, block_on_one_thread};

/// Runs the given command.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let Cli { global, command } = cli;
    match command {
        None => block_on(console(App::new(&global)?)),
        Some(Command::Mcp(args)) => {
            let app = App::new(&global)?;
            // Passing each message of a single client between threads costs more than
            // handling it.
            match args.listens(&app.config.mcp) {
                true => block_on(mcp::run(app, args)),
                false => block_on_one_thread(mcp::run(app, args)),
            }
        }
        Some(Command::McpConfig(args)) => mcp_config::run(&App::new(&global)?, &args),
        Some(Command::Call(args)) => block_on(call::run(&App::new(&global)?, args)),
        Some(Command::Tools(args)) => block_on(tools::run(App::new(&global)?, &args)),
        Some(Command::Run(args)) => block_on(run::run(&App::new(&global)?, args)),
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Doctor(args)) => block_on(doctor::run(&global, &args)),
        #[cfg(feature = "docker")]
        Some(Command::Runtimes(args)) => block_on(runtimes::run(&App::new(&global)?, args)),
        #[cfg(feature = "docker")]
        Some(Command::Sandboxes(args)) => block_on(sandboxes::run(&App::new(&global)?, args)),
        #[cfg(feature = "docker")]
        Some(Command::Agent(args)) => block_on(agent::run(&App::new(&global)?, args)),
        Some(Command::Tour(args)) => block_on(tour::run(&args)),
        Some(Command::Completions(args)) => completions::run(&args),
        Some(Command::Man(args)) => man::run(&args),
    }
}

/// Runs the console, which handles Ctrl-C and shows the location of the files itself.
async fn console(mut app: App) -> Result<ExitCode, Failure> {
    app.spec.quiet = true;
    let opened = app.open().await?;
    let session = console::Session::new(app.toolset(&opened), app.allowing(&opened));
    let code = console::run(session.backend(app.spec.text())).await;
    opened.stop().await;
    // The user's input may be to blame.
    code.map_err(|error| Failure::from(error).code(exit::FIXABLE))
}
