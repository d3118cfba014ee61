//! The tools that run commands.

mod ending;
mod execute;
mod inputs;
mod lists;
mod outputs;
mod own;
mod screens;
mod starts;
#[cfg(test)]
mod tests;

pub(crate) use execute::ExecuteTool;
pub(crate) use inputs::WriteInputTool;
pub(crate) use lists::{KillShellTool, ListShellsTool};
pub(crate) use outputs::ReadOutputTool;
pub(crate) use own::OwnShells;
pub(crate) use screens::Screens;
pub(crate) use starts::RunInBackgroundTool;

use backend_core::ops::{Command, ShellId, Streams};
use backend_core::{Error, Quoted, Sandbox};

use crate::tool::Annotations;
use crate::{Class, Context, Options, ToolError};

/// What a tool is that may run anything.
const RUNS: Annotations = Annotations {
    read_only: false,
    destructive: true,
    idempotent: false,
    open_world: true,
};

/// Whether a command whose time runs out goes on as a background shell. Only where
/// there are tools to follow and to end it.
pub(crate) fn goes_on(options: &Options) -> bool {
    options.timeout_to_background && options.include_background
}

/// Where commands run.
fn sandbox(context: &Context) -> Result<&dyn Sandbox, ToolError> {
    let sandbox = context.backend.as_sandbox();
    sandbox.ok_or_else(|| ToolError::environment("Backend does not support command execution"))
}

/// Where background shells run.
fn shells(context: &Context) -> Result<&dyn Sandbox, ToolError> {
    let sandbox = context.backend.as_sandbox();
    sandbox.ok_or_else(|| ToolError::environment("Backend does not support background processes"))
}

/// A command as a model sees one: both streams in the order in which they were
/// printed.
fn command(context: &Context, line: String, directory: Option<&str>) -> Result<Command, ToolError> {
    if line.trim().is_empty() {
        return Err(ToolError::fixable("command is empty; say what to run"));
    }
    let mut command = Command::new(line).streams(Streams::Merged);
    if let Some(directory) = directory {
        let path = context.path(directory);
        let path = path.map_err(|error| ToolError::fixable(format!("directory: {error}")))?;
        command = command.directory(path);
    }
    Ok(command)
}

/// Refuses a shell that this conversation did not start, whether or not there is
/// one.
async fn check_own(
    context: &Context,
    sandbox: &dyn Sandbox,
    id: &ShellId,
) -> Result<(), ToolError> {
    match context.conversation.shells.has(&sandbox.id(), id) {
        true => Ok(()),
        false => Err(no_such_shell(context, sandbox, id).await),
    }
}

/// Says which shells there are if there is no such one, and of which one something
/// else is said.
async fn about_shell(
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
    let told = ToolError::from(error);
    // What is refused or out of order was said by whoever refuses.
    match told.class() {
        Class::Fixable => ToolError::fixable(message),
        _ => told,
    }
}

async fn no_such_shell(context: &Context, sandbox: &dyn Sandbox, id: &ShellId) -> ToolError {
    let listed = match context.quiet.as_sandbox() {
        Some(quiet) => quiet.shell_list().await.unwrap_or_default(),
        None => Vec::new(),
    };
    let known = context.conversation.shells.of(&sandbox.id(), listed);
    let known: Vec<_> = known.iter().map(|shell| shell.id.as_str()).collect();
    let known = match known.as_slice() {
        [] => "there are none; start one with run_in_background".to_owned(),
        known => format!("there are {}", known.join(", ")),
    };
    let id = Quoted::new(id.as_str());
    ToolError::fixable(format!("there is no background shell {id}; {known}"))
}
