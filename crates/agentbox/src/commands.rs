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

/// Runs the given command.
pub(crate) async fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let Cli { global, command } = cli;
    match command {
        None => console(App::new(&global)?).await,
        Some(Command::Mcp(args)) => mcp::run(App::new(&global)?, args).await,
        Some(Command::McpConfig(args)) => mcp_config::run(&App::new(&global)?, &args),
        Some(Command::Call(args)) => call::run(&App::new(&global)?, args).await,
        Some(Command::Tools(args)) => tools::run(App::new(&global)?, &args).await,
        Some(Command::Run(args)) => run::run(&App::new(&global)?, args).await,
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Doctor(args)) => doctor::run(&global, &args).await,
        #[cfg(feature = "docker")]
        Some(Command::Runtimes(args)) => runtimes::run(&App::new(&global)?, args).await,
        #[cfg(feature = "docker")]
        Some(Command::Sandboxes(args)) => sandboxes::run(&App::new(&global)?, args).await,
        #[cfg(feature = "docker")]
        Some(Command::Agent(args)) => agent::run(&App::new(&global)?, args).await,
        Some(Command::Tour(args)) => tour::run(&args).await,
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
