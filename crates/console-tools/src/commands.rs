//! The tools that run commands.

mod execute;
mod kill_shell;
mod list_shells;
mod read_output;
mod run_in_background;
mod status;
#[cfg(test)]
mod tests;
mod write_input;

pub(crate) use execute::ExecuteTool;
pub(crate) use kill_shell::KillShellTool;
pub(crate) use list_shells::ListShellsTool;
pub(crate) use read_output::ReadOutputTool;
pub(crate) use run_in_background::RunInBackgroundTool;
pub(crate) use write_input::WriteInputTool;

use backend_core::ops::{Command, ShellId, Streams};
use backend_core::{Error, Quoted, Sandbox};

use crate::context::Context;
use crate::reply::ToolError;

/// Returns the sandbox that runs commands.
fn sandbox(context: &Context) -> Result<&dyn Sandbox, ToolError> {
    let sandbox = context.backend.as_sandbox();
    sandbox.ok_or_else(|| ToolError::environment("Backend does not support command execution"))
}

/// Returns the sandbox that runs background shells.
fn shells(context: &Context) -> Result<&dyn Sandbox, ToolError> {
    let sandbox = context.backend.as_sandbox();
    sandbox.ok_or_else(|| ToolError::environment("Backend does not support background processes"))
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
        let path = path.map_err(|error| ToolError::fixable(format!("directory: {error}")))?;
        command = command.directory(path);
    }
    Ok(command)
}

/// Refuses a shell that this conversation did not start. The answer does not reveal
/// whether the shell exists.
async fn check_own(
    context: &Context,
    sandbox: &dyn Sandbox,
    id: &ShellId,
) -> Result<(), ToolError> {
    if context.conversation.shells.contains(&sandbox.id(), id) {
        Ok(())
    } else {
        Err(no_such_shell(context, sandbox, id).await)
    }
}

/// Turns an error about a shell into a message for the model. If there is no such
/// shell, the message lists the known ones. Otherwise it names the shell.
async fn shell_error(
    context: &Context,
    sandbox: &dyn Sandbox,
    id: &ShellId,
    error: Error,
) -> ToolError {
    if error.is_not_found() {
        return no_such_shell(context, sandbox, id).await;
    }
    let message = format!(
        "background shell {}: {}",
        Quoted::new(id.as_str()),
        error.message()
    );
    ToolError::from(error).reworded_if_fixable(message)
}

async fn no_such_shell(context: &Context, sandbox: &dyn Sandbox, id: &ShellId) -> ToolError {
    let listed = match context.non_interactive.as_sandbox() {
        Some(non_interactive) => non_interactive.shell_list().await.unwrap_or_default(),
        None => Vec::new(),
    };
    let known = context.conversation.shells.filter(&sandbox.id(), listed);
    let known: Vec<_> = known.iter().map(|shell| shell.id.as_str()).collect();
    let known = match known.as_slice() {
        [] => "there are none; start one with run_in_background".to_owned(),
        known => format!("there are {}", known.join(", ")),
    };
    let id = Quoted::new(id.as_str());
    ToolError::fixable(format!("there is no background shell {id}; {known}"))
}
