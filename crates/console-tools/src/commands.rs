//! The tools that run commands.

mod execute;
mod keys;
mod kill_shell;
mod list_shells;
mod read_output;
mod run_in_background;
#[cfg(test)]
mod tests;
mod write_input;

pub(crate) use execute::ExecuteTool;
pub(crate) use kill_shell::KillShellTool;
pub(crate) use list_shells::ListShellsTool;
pub(crate) use read_output::ReadOutputTool;
pub(crate) use run_in_background::RunInBackgroundTool;
pub(crate) use write_input::WriteInputTool;

use backend_core::ops::{Command, CommandStatus, ShellId, ShellState, Streams};
use backend_core::{Error, Quoted, Sandbox};

use crate::context::Context;
use crate::reply::{ToolError, fixable};

/// Returns the sandbox that runs background shells.
fn shells(context: &Context) -> Result<&dyn Sandbox, ToolError> {
    let sandbox = context.backend.as_sandbox();
    sandbox.ok_or_else(|| ToolError::environment("Backend does not support background processes"))
}

/// Formats the state of a shell, with `before` in front of an exit code, which is
/// returned as well.
fn state(state: ShellState, before: &str) -> (String, Option<i32>) {
    match state {
        ShellState::Ended(CommandStatus::Exited(code)) => {
            (format!("exited{before}{code})"), Some(code))
        }
        ShellState::Ended(status) => (status.to_string(), None),
        _ => ("running".to_owned(), None),
    }
}

/// Builds a command as a model sees it: both streams merged, in the order in which they
/// were printed.
fn command(context: &Context, line: String, directory: Option<&str>) -> Result<Command, ToolError> {
    if line.trim().is_empty() {
        return Err(ToolError::fixable(
            "command is empty; give the command to run",
        ));
    }
    let mut command = Command::new(line).streams(Streams::Merged);
    if let Some(directory) = directory {
        let path = context.path(directory);
        let path = path.map_err(|error| fixable!("directory: {error}"))?;
        command = command.directory(path);
    }
    Ok(command)
}

/// A background shell that this conversation started.
struct OwnShell<'a> {
    context: &'a Context,
    sandbox: &'a dyn Sandbox,
    id: ShellId,
}

impl<'a> OwnShell<'a> {
    /// Refuses a shell that this conversation did not start. The answer does not reveal
    /// whether the shell exists.
    async fn find(context: &'a Context, id: String) -> Result<Self, ToolError> {
        let shell = Self {
            context,
            sandbox: shells(context)?,
            id: ShellId::new(id),
        };
        let sandbox = shell.sandbox.id();
        if context.conversation.shells.contains(&sandbox, &shell.id) {
            Ok(shell)
        } else {
            Err(shell.missing().await)
        }
    }

    /// Turns an error about the shell into a message for the model. If there is no such
    /// shell, the message lists the known ones. Otherwise it names the shell.
    async fn checked<T>(&self, done: Result<T, Error>) -> Result<T, ToolError> {
        let error = match done {
            Ok(done) => return Ok(done),
            Err(error) if error.is_not_found() => return Err(self.missing().await),
            Err(error) => error,
        };
        let id = Quoted::new(self.id.as_str());
        let message = format!("background shell {id}: {}", error.message());
        Err(ToolError::from(error).reworded_if_fixable(message))
    }

    async fn missing(&self) -> ToolError {
        let listed = match self.context.non_interactive.as_sandbox() {
            Some(non_interactive) => non_interactive.shell_list().await.unwrap_or_default(),
            None => Vec::new(),
        };
        let shells = &self.context.conversation.shells;
        let known = shells.filter(&self.sandbox.id(), listed);
        let known: Vec<_> = known.iter().map(|shell| shell.id.as_str()).collect();
        let known = match known.as_slice() {
            [] => "there are none; start one with run_in_background".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        let id = Quoted::new(self.id.as_str());
        fixable!("there is no background shell {id}; {known}")
    }
}
