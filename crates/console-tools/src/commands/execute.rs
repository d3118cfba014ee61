//! `execute`: runs a command to its end.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use backend_core::limits::OUTPUT_HARD_BYTES;
use backend_core::ops::{Command, CommandStatus, Event, ShellId, ShellInfo, ShellState};
use backend_core::{Error, Sandbox};
use futures_util::StreamExt as _;
use permissions::tool::Tool;
use schemars::JsonSchema;
use serde::Serialize;

use super::command;
use crate::args::commands::ExecuteArgs;
use crate::context::Context;
use crate::conversation::conversation_shells::ForegroundShell;
use crate::counted::counted;
use crate::kept_outputs::{Collector, ShownOutput};
use crate::reply::{Reply, ToolError, ToolResult, fixable};
use crate::tool::Builtin;

/// Maximum timeout of a call in seconds: one day.
pub(super) const MAX_SECONDS: u64 = 86_400;

/// Duration of a single wait for a command without a time limit.
const READ_WAIT: Duration = Duration::from_secs(3_600);

pub(crate) struct ExecuteTool;

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct ExecuteOutput {
    /// The output of both streams, as far as the reply shows it.
    output: String,
    /// Its exit code, if it ended by itself.
    exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// Whether it timed out.
    timed_out: bool,
    /// Whether it was ended for printing too much.
    output_limited: bool,
    /// The background shell as which it continues after the timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    shell_id: Option<String>,
    /// Processes that it left running and that were ended.
    leftovers: u32,
    /// Whether a part of the output is not shown.
    truncated: bool,
    /// The file that has all of the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_file: Option<String>,
}

/// The outcome of a call: its command ended, or continues in the background.
enum Outcome {
    /// With this number of processes that it left running.
    Ended(CommandStatus, u32),
    /// It continues as this shell.
    InBackground(ShellId),
}

#[async_trait]
impl Builtin for ExecuteTool {
    type Args = ExecuteArgs;
    type Output = ExecuteOutput;
    const TOOL: Tool = Tool::Execute;

    async fn run(context: &Context, args: ExecuteArgs) -> ToolResult {
        let sandbox = context
            .backend
            .as_sandbox()
            .ok_or_else(|| ToolError::environment("Backend does not support command execution"))?;
        let timeout = timeout(context, args.timeout)?;
        let command = command(context, args.command, args.directory.as_deref())?;
        let limits = &context.options.limits;
        let mut output = Collector::new(limits);
        let ran = if context.options.continues_in_background() {
            run_as_shell(context, sandbox, command, timeout, &mut output).await
        } else {
            run(context, sandbox, command.timeout(timeout), &mut output).await
        };
        let shown = output.finish(limits, &context.conversation.outputs);
        match ran {
            Ok(outcome) => Ok(reply(context, &outcome, shown, timeout)),
            Err(error) => Err(with_output(error, &shown)),
        }
    }
}

fn timeout(context: &Context, given: Option<Option<i64>>) -> Result<Option<Duration>, ToolError> {
    let seconds = match given {
        Some(None) => return Ok(None),
        None => context.options.limits.execute_seconds.clamp(1, MAX_SECONDS),
        Some(Some(seconds)) => match u64::try_from(seconds) {
            Ok(seconds @ 1..=MAX_SECONDS) => seconds,
            _ => {
                return Err(fixable!(
                    "timeout must be from 1 to {MAX_SECONDS} seconds, or null for none, not {seconds}"
                ));
            }
        },
    };
    Ok(Some(Duration::from_secs(seconds)))
}

async fn run(
    context: &Context,
    sandbox: &dyn Sandbox,
    command: Command,
    output: &mut Collector,
) -> Result<Outcome, Error> {
    let mut events = sandbox.stream(command).await?;
    while let Some(event) = events.next().await {
        match event? {
            Event::Stdout(bytes) | Event::Stderr(bytes) => {
                notify_observer(context, &bytes);
                output.push(&bytes);
            }
            Event::Ended(ended) => return Ok(Outcome::Ended(ended.status, ended.leftovers)),
            _ => {}
        }
    }
    Err(Error::internal(
        "the command's output ended without the status of the command",
    ))
}

fn notify_observer(context: &Context, bytes: &[u8]) {
    if let Some(observer) = &context.observer
        && !bytes.is_empty()
    {
        observer.output(bytes);
    }
}

/// Runs a command as a background shell, which continues if the time limit expires.
/// Dropping the call ends it. The approval to start the shell covers reading its
/// output.
async fn run_as_shell(
    context: &Context,
    sandbox: &dyn Sandbox,
    command: Command,
    timeout: Option<Duration>,
    output: &mut Collector,
) -> Result<Outcome, Error> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let ShellInfo { id, .. } = sandbox.shell_start(command).await?;
    let (shells, backend) = (&context.conversation.shells, &context.non_interactive);
    let shell = ForegroundShell::new(shells, backend, sandbox.id(), id.clone());
    let followed = backend.as_sandbox().unwrap_or(sandbox);
    // Like any command, it gets no input. It may already have ended.
    let _ = followed.shell_write(&id, None).await;
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let new = followed.shell_read(&id, left.unwrap_or(READ_WAIT)).await?;
        if new.dropped > 0 {
            let note = format!("\n[... {} bytes were lost ...]\n", new.dropped);
            output.push(note.as_bytes());
        }
        for bytes in [&new.stdout, &new.stderr] {
            notify_observer(context, bytes);
            output.push(bytes);
        }
        if let ShellState::Ended(status) = new.state {
            shell.forget();
            return Ok(Outcome::Ended(status, 0));
        }
        if left.is_some_and(|left| left.is_zero()) {
            // The next output may begin in the middle of a character.
            let terminals = &context.conversation.terminals;
            terminals.insert(&sandbox.id(), &id, output.release());
            shells.prune(&**backend, &sandbox.id()).await;
            shell.keep_running();
            return Ok(Outcome::InBackground(id));
        }
    }
}

/// Converts an error of the sandbox and adds the output so far.
fn with_output(error: Error, shown: &ShownOutput) -> ToolError {
    let error = ToolError::from(error);
    if shown.text.is_empty() {
        return error;
    }
    let message = format!("{error}\nBefore that the command printed:\n{}", shown.text);
    error.reworded(message)
}

fn reply(
    context: &Context,
    outcome: &Outcome,
    shown: ShownOutput,
    timeout: Option<Duration>,
) -> Reply {
    let background = context.options.include_background;
    let mut executed = ExecuteOutput {
        truncated: shown.truncated,
        output_file: shown.output_file,
        ..ExecuteOutput::default()
    };
    let seconds = counted(timeout.map_or(0, |timeout| timeout.as_secs()), "second");
    let printed = match shown.text.as_str() {
        "" => "(no output)",
        text => text,
    };
    let mut text = match outcome {
        Outcome::InBackground(id) => {
            executed.timed_out = true;
            executed.shell_id = Some(id.to_string());
            format!(
                "Command is still running after {seconds} and continues as background shell {id}.\n\
                 Use read_output('{id}') to follow its output and kill_shell('{id}') to stop it.\n\
                 Output so far:\n{printed}"
            )
        }
        Outcome::Ended(status, leftovers) => {
            executed.leftovers = *leftovers;
            match *status {
                CommandStatus::Exited(code) => {
                    executed.exit_code = Some(code);
                    match code {
                        0 => printed.to_owned(),
                        _ => format!("Command failed (exit code {code}):\n{printed}"),
                    }
                }
                CommandStatus::Signalled(signal) => {
                    executed.signal = Some(signal);
                    format!("Command was ended by signal {signal}:\n{printed}")
                }
                CommandStatus::TimedOut => {
                    executed.timed_out = true;
                    let or = background.then_some(", or use run_in_background");
                    let or = or.unwrap_or_default();
                    format!(
                        "Command timed out after {seconds} and was ended; give it a longer \
                         timeout{or}. Output so far:\n{printed}"
                    )
                }
                CommandStatus::OutputLimited => {
                    executed.output_limited = true;
                    format!(
                        "Command was ended because it printed more than {OUTPUT_HARD_BYTES} bytes; \
                         write its output to a file:\n{printed}"
                    )
                }
                status => format!("Command ended: {status}\n{printed}"),
            }
        }
    };
    if executed.leftovers > 0 {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let left = match executed.leftovers {
            1 => "a process that it left running was ended".to_owned(),
            count => format!("{count} processes that it left running were ended"),
        };
        let instead = if background {
            "use run_in_background for processes that should keep running"
        } else {
            "let the command wait for the processes that it starts"
        };
        text.push_str(&format!("({left}; {instead})"));
    }
    executed.output = shown.text;
    Reply::text(text).data(&executed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::FailureClass;

    #[test]
    fn what_a_lost_command_printed_is_told() {
        let shown = ShownOutput {
            text: "half of it".into(),
            ..ShownOutput::default()
        };
        let error = with_output(Error::unavailable("the sandbox is gone; start it"), &shown);
        assert_eq!(error.class(), FailureClass::Environment);
        assert_eq!(
            error.to_string(),
            "the sandbox is gone; start it\nBefore that the command printed:\nhalf of it"
        );
        let error = with_output(Error::invalid_input("no"), &ShownOutput::default());
        assert_eq!(
            (error.class(), error.to_string()),
            (FailureClass::Fixable, "no".into())
        );
    }
}
