//! Connects this terminal to a shell in the sandbox.

mod keys;

use std::io;
use std::sync::Once;

use backend_core::ops::{Command, CommandStatus, ShellId, ShellState};
use backend_core::{Connection, Sandbox};
use futures::StreamExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::signal::unix::{SignalKind, signal};

use self::keys::{Key, Keys};
use crate::exit::{Failure, environment};
use crate::system::{self, RawTerminal};

/// The reason why a conversation with a shell is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The shell ended.
    Ended(CommandStatus),
    /// The user left it.
    Left,
}

/// Returns the shell that is opened without a command: bash, or `sh` where there is none.
pub(crate) async fn usual_shell(sandbox: &dyn Sandbox) -> Result<String, Failure> {
    let looked = sandbox.execute(Command::new("command -v bash")).await?;
    let has_bash = looked.status.success();
    Ok(if has_bash { "bash" } else { "sh" }.to_owned())
}

/// Returns a command that runs in a terminal of the size of this one.
pub(crate) fn command(line: String) -> Command {
    // Output is shown as it comes, so its size does not matter.
    Command::new(line)
        .terminal(system::terminal_size())
        .hard_output_bytes(u64::MAX)
}

/// The way in which keys reach a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typing {
    /// Each key as it is typed: the shell has a terminal.
    Keys,
    /// Line by line, shown and edited here: the shell has none.
    Lines,
}

/// Passes keys to the shell and its output to the terminal, until the shell ends or the
/// user leaves it.
pub(crate) async fn converse(
    sandbox: &dyn Sandbox,
    id: &ShellId,
    connection: Connection,
    typing: Typing,
) -> Result<End, Failure> {
    if exchange(sandbox, id, connection, typing).await? {
        return Ok(End::Left);
    }
    let shells = sandbox.shell_list().await?;
    let shell = shells.into_iter().find(|shell| shell.id == *id);
    match shell.map(|shell| shell.state) {
        Some(ShellState::Ended(status)) => Ok(End::Ended(status)),
        _ => Err(Failure::environment(
            "the shell ended without a status; try again",
        )),
    }
}

/// Returns `true` if the user left the shell, and `false` if it ended.
async fn exchange(
    sandbox: &dyn Sandbox,
    id: &ShellId,
    connection: Connection,
    typing: Typing,
) -> Result<bool, Failure> {
    let cannot =
        |error: io::Error| environment!("the terminal cannot be used: {error}; try another one");
    let mut resized = signal(SignalKind::window_change()).map_err(cannot)?;
    restore_after_a_panic();
    let _raw = match typing {
        Typing::Keys => Some(RawTerminal::enter().map_err(cannot)?),
        Typing::Lines => None,
    };
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
        Ok(false)
    };
    let typing = async {
        while let Key::Bytes(bytes) = keys.next().await {
            if outgoing.send(bytes).await.is_err() {
                // The shell reads no more. Its last output follows.
                std::future::pending::<()>().await;
            }
        }
        Ok(true)
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
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            system::restore_terminal();
            before(panic);
        }));
    });
}
