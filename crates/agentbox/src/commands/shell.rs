//! `agentbox shell`: an interactive shell in the sandbox, on this terminal.

mod keys;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;

use backend_core::ops::{Command, CommandStatus, ShellId, ShellState};
use backend_core::{Backend as _, Connection, Sandbox};
use futures::StreamExt as _;
use permissions::Guarded;
use tokio::io::AsyncWriteExt as _;
use tokio::signal::unix::{SignalKind, signal};

use self::keys::{Key, Keys};
use crate::app::App;
use crate::approval;
use crate::commands::run::command_line;
use crate::exit::{self, Failure, environment};
use crate::output;
use crate::signals::Interrupts;
use crate::system::{self, RawTerminal};

/// The shell that is opened without a command.
const SHELL: &str = "if command -v bash >/dev/null 2>&1; then exec bash; fi; exec sh";

/// Options of `shell`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program and its arguments; by default bash, or sh where there is none.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// The reason why a conversation with a shell is over.
enum End {
    /// The shell ended.
    Ended,
    /// The user left it.
    Left,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "shell needs a terminal; use agentbox run for a command whose output goes elsewhere",
        ));
    }
    let interrupts = Interrupts::watch()?;
    let opened = interrupts.unless(app.open()).await??;
    let line = match &args.command[..] {
        [] => SHELL.to_owned(),
        words => command_line(words),
    };
    // Output is shown as it comes, so its size does not matter.
    let command = Command::new(line)
        .terminal(system::terminal_size())
        .hard_output_bytes(u64::MAX);
    let guarded = Guarded::builder(Arc::clone(&opened.backend))
        .policy(app.policy(&opened))
        .approver(approval::terminal(app.approval_advice(&opened)))
        .build();
    let talk = async {
        let none =
            || Failure::environment("this backend runs no commands; use --backend local:DIR");
        let shell = guarded.as_sandbox().ok_or_else(none)?;
        let shell = shell.shell_start(command).await?;
        // Allowing a terminal allows everything that is typed there, so attaching to
        // it is not asked about again.
        let sandbox = opened.backend.as_sandbox().ok_or_else(none)?;
        let connection = sandbox.shell_attach(&shell.id).await?;
        let end = converse(sandbox, &shell.id, connection).await?;
        code(sandbox, &shell.id, end).await
    };
    let talked = interrupts.unless(talk).await;
    opened.stop().await;
    Ok(ExitCode::from(talked??))
}

/// Passes keys to the shell and its output to the terminal, until the shell ends or the
/// user leaves it.
async fn converse(
    sandbox: &dyn Sandbox,
    id: &ShellId,
    connection: Connection,
) -> Result<End, Failure> {
    let cannot = |error: std::io::Error| {
        environment!("the terminal cannot be used: {error}; try another one")
    };
    let mut resized = signal(SignalKind::window_change()).map_err(cannot)?;
    restore_after_a_panic();
    let _raw = RawTerminal::enter().map_err(cannot)?;
    let Connection {
        mut incoming,
        mut outgoing,
    } = connection;
    let mut keys = Keys::read().map_err(cannot)?;
    let show = async {
        let mut out = tokio::io::stdout();
        while let Some(piece) = incoming.next().await {
            let piece = piece?;
            let written = async {
                out.write_all(&piece).await?;
                out.flush().await
            };
            written.await.map_err(cannot)?;
        }
        Ok(End::Ended)
    };
    let typing = async {
        while let Some(Key::Bytes(bytes)) = keys.next().await {
            if outgoing.send(bytes).await.is_err() {
                // The shell reads no more. Its last output follows.
                std::future::pending::<()>().await;
            }
        }
        Ok(End::Left)
    };
    let follow_size = async {
        while resized.recv().await.is_some() {
            // A shell that has just ended has no size.
            let _ = sandbox.shell_resize(id, system::terminal_size()).await;
        }
        std::future::pending().await
    };
    tokio::select! {
        biased;
        end = show => end,
        end = typing => end,
        end = follow_size => end,
    }
}

/// Makes a panic restore the terminal before it is reported.
fn restore_after_a_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        system::restore_terminal();
        before(panic);
    }));
}

/// Returns the exit code.
async fn code(sandbox: &dyn Sandbox, id: &ShellId, end: End) -> Result<u8, Failure> {
    if let End::Left = end {
        output::note("\nagentbox: you left the shell, which was ended");
        return Ok(exit::SUCCESS);
    }
    let shells = sandbox.shell_list().await?;
    let shell = shells.into_iter().find(|shell| shell.id == *id);
    match shell.map(|shell| shell.state) {
        Some(ShellState::Ended(CommandStatus::Exited(code))) => {
            Ok(u8::try_from(code).unwrap_or(u8::MAX))
        }
        Some(ShellState::Ended(CommandStatus::Signalled(signal))) => Ok(exit::signalled(signal)),
        _ => Err(Failure::environment(
            "the shell ended without a status; try again",
        )),
    }
}
