//! `read_output`: returns the output of a background shell since the last read.

use std::time::Duration;

use async_trait::async_trait;
use backend_core::ops::{CommandStatus, ShellState};
use permissions::Op;
use permissions::tool::Tool;
use schemars::JsonSchema;
use serde::Serialize;

use super::{OwnShell, state};
use crate::args::commands::ReadOutputArgs;
use crate::context::Context;
use crate::kept_outputs::Collector;
use crate::number_bounds::within;
use crate::reply::{Reply, ToolResult};
use crate::terminal::{ScreenContent, on_one_line};
use crate::tool::{Annotations, Builtin};

/// Maximum time that a read may wait, in seconds.
const MAX_WAIT_SECONDS: usize = 600;

/// Time without output after which a screen counts as drawn.
const SETTLING_TIME: Duration = Duration::from_millis(100);

/// Number of times that a read waits for a screen to be drawn.
const SETTLING_READS: usize = 10;

pub(crate) struct ReadOutputTool;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReadOutputResult {
    /// The shell's id.
    shell_id: String,
    /// Whether it still runs.
    running: bool,
    /// Its exit code, if it ended by itself.
    exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// The new output, as far as the reply shows it. In a terminal: the lines that
    /// scrolled off the screen.
    output: String,
    /// The screen of its terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    screen: Option<ShownScreen>,
    /// Bytes that were printed but not kept until this read.
    lost_bytes: u64,
    /// Whether a part of the new output is not shown.
    truncated: bool,
    /// The file that has all of the new output.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_file: Option<String>,
}

/// The screen of a terminal.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownScreen {
    /// Its rows.
    text: String,
    /// The row of the cursor, counted from 1, unless it is hidden.
    cursor_row: Option<usize>,
    /// The column of the cursor, counted from 1, unless it is hidden.
    cursor_column: Option<usize>,
}

#[async_trait]
impl Builtin for ReadOutputTool {
    type Args = ReadOutputArgs;
    type Output = ReadOutputResult;
    const TOOL: Tool = Tool::ReadOutput;
    // The next read returns only newer output.
    const ANNOTATIONS: Annotations = Annotations {
        idempotent: false,
        ..Annotations::of(&[Op::Read])
    };

    fn call_description(args: &ReadOutputArgs) -> String {
        let id = on_one_line(&args.shell_id);
        format!("Read the output of background shell {id}")
    }

    async fn run(context: &Context, args: ReadOutputArgs) -> ToolResult {
        let wait = args.wait_seconds.unwrap_or(0);
        let wait = within("wait_seconds", wait, 0..=MAX_WAIT_SECONDS)?;
        let wait = Duration::from_secs(wait as u64);
        let shell = OwnShell::find(context, args.shell_id).await?;
        let (sandbox, id) = (shell.sandbox, &shell.id);
        let mut output = shell.checked(sandbox.shell_read(id, wait).await).await?;
        let limits = &context.options.limits;
        let conversation = &context.conversation;
        let mut collector = Collector::new(limits);
        let mut rendered = conversation.terminals.render(&sandbox.id(), id, &output);
        // A program draws its screen piece by piece.
        let mut reads = if wait.is_zero() { 0 } else { SETTLING_READS };
        while let (Some(sandbox), 1..) = (context.non_interactive.as_sandbox(), reads)
            && rendered.screen.is_some()
            && output.state == ShellState::Running
            && !output.stdout.is_empty()
        {
            let next = sandbox.shell_read(id, SETTLING_TIME).await;
            let next = shell.checked(next).await?;
            let more = conversation.terminals.render(&sandbox.id(), id, &next);
            rendered.text.push_str(&more.text);
            rendered.screen = more.screen;
            let dropped = output.dropped + next.dropped;
            output = next;
            output.dropped = dropped;
            reads -= 1;
        }
        collector.push_text(&rendered.text);
        let shown = collector.finish(limits, &conversation.outputs);
        let (state, exit_code) = state(output.state, " (code ");
        let mut text = format!("[{id}] {state}\n");
        if output.dropped > 0 {
            let lost = format!(
                "[... {} bytes were lost; read more often ...]\n",
                output.dropped
            );
            text.push_str(&lost);
        }
        let new = shown.text.trim_end_matches('\n');
        match &rendered.screen {
            Some(screen) => {
                if !new.is_empty() {
                    text.push_str(&format!(
                        "(scrolled off the screen since the last read)\n{new}\n"
                    ));
                }
                text.push_str(&screen_text(screen));
            }
            None if new.is_empty() => text.push_str("(no new output)"),
            None => text.push_str(new),
        }
        let result = ReadOutputResult {
            shell_id: id.to_string(),
            running: output.state == ShellState::Running,
            exit_code,
            signal: match output.state {
                ShellState::Ended(CommandStatus::Signalled(signal)) => Some(signal),
                _ => None,
            },
            output: shown.text,
            screen: rendered.screen.map(|screen| ShownScreen {
                text: screen.text,
                cursor_row: screen.cursor.map(|(row, _)| row),
                cursor_column: screen.cursor.map(|(_, column)| column),
            }),
            lost_bytes: output.dropped,
            truncated: shown.truncated || output.dropped > 0,
            output_file: shown.output_file,
        };
        Ok(Reply::text(text).data(&result))
    }
}

fn screen_text(screen: &ScreenContent) -> String {
    let cursor = match screen.cursor {
        Some((row, column)) => format!("cursor at row {row}, column {column}"),
        None => "no cursor".to_owned(),
    };
    let text = match &*screen.text {
        "" => "(empty)",
        text => text,
    };
    format!("(screen, {cursor})\n{text}")
}
