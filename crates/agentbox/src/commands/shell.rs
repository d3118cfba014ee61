//! `agentbox shell`: an interactive shell in the sandbox, on this terminal.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;

use backend_core::Backend as _;
use backend_core::ops::CommandStatus;
use permissions::Guarded;

use crate::app::App;
use crate::attach::{self, End, Typing};
use crate::commands::run::command_line;
use crate::exit::{self, Failure};
use crate::signals::Interrupts;
use crate::{approval, output};

/// Options of `shell`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program and its arguments; by default bash, or sh where there is none.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "shell needs a terminal; use agentbox run for a command whose output goes elsewhere",
        ));
    }
    let interrupts = Interrupts::watch()?;
    let opened = interrupts.unless(app.open()).await??;
    let guarded = Guarded::builder(Arc::clone(&opened.backend))
        .policy(app.policy(&opened))
        .approver(approval::terminal(app.approval_advice(&opened)))
        .build();
    let talk = async {
        let none =
            || Failure::environment("this backend runs no commands; use --backend local:DIR");
        let sandbox = opened.backend.as_sandbox().ok_or_else(none)?;
        let line = match &args.command[..] {
            [] => attach::usual_shell(sandbox).await?,
            words => command_line(words),
        };
        let shell = guarded.as_sandbox().ok_or_else(none)?;
        let shell = shell.shell_start(attach::command(line)).await?;
        // Allowing a terminal allows everything that is typed there, so attaching to
        // it is not asked about again.
        let connection = sandbox.shell_attach(&shell.id).await?;
        let end = attach::converse(sandbox, &shell.id, connection, Typing::Keys).await?;
        if end == End::Left {
            // Processes that ignore the hang-up are killed before the program ends.
            sandbox.shell_kill(&shell.id).await?;
        }
        Ok::<_, Failure>(code(end))
    };
    let talked = interrupts.unless(talk).await;
    opened.stop().await;
    Ok(ExitCode::from(talked??))
}

/// Returns the exit code.
fn code(end: End) -> u8 {
    match end {
        End::Left => {
            output::note("\nagentbox: you left the shell, which was ended");
            exit::SUCCESS
        }
        End::Ended(CommandStatus::Signalled(signal)) => exit::signalled(signal),
        End::Ended(CommandStatus::Exited(code)) => u8::try_from(code).unwrap_or(u8::MAX),
        End::Ended(_) => exit::FIXABLE,
    }
}
