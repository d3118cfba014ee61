//! Runs the steps of the tour: prints texts, calls and replies.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _};
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use backend_local::LocalBackend;
use console_tools::{Chat, EditFormat, Options, Reply, Toolset};
use permissions::Preset;
use permissions::approval::{Answer, Interactive};
use serde_json::Value;

use crate::exit::Failure;
use crate::output;
use crate::terminal::safe::sanitized;

/// Maximum number of lines shown of a reply.
const SHOWN_LINES: usize = 16;

#[derive(Debug)]
pub(super) struct Stage {
    backend: LocalBackend,
    /// Whether to wait for the user to press Enter between steps.
    waits: bool,
    steps: usize,
}

impl Stage {
    pub(super) fn new(backend: LocalBackend, waits: bool) -> Self {
        let terminals = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        Self {
            backend,
            waits: waits && terminals,
            steps: 0,
        }
    }

    pub(super) fn without_approval(&self, edit_format: EditFormat) -> Result<Chat, Failure> {
        let mut options = Options::default();
        options.require_execute_approval = false;
        options.edit_format = edit_format;
        let toolset = Toolset::builder(Arc::new(self.backend.clone())).options(options);
        Ok(toolset.build()?.conversation("tour"))
    }

    /// Returns tools that ask before they change something. The tour answers.
    pub(super) fn with_approval(&self) -> Result<Chat, Failure> {
        let person = Interactive::new(async |question| {
            let style = AnsiColor::Yellow.on_default();
            let mut text = String::new();
            for line in question.to_string().lines() {
                let _ = writeln!(text, "    {style}? {line}{style:#}");
            }
            let _ = writeln!(text, "    {style}? (the tour answers yes){style:#}");
            let _ = output::print(&text);
            Ok(Answer::yes())
        });
        let toolset = Toolset::builder(Arc::new(self.backend.clone()))
            .ruleset(Preset::Default.ruleset())
            .approver(person);
        Ok(toolset.build()?.conversation("tour"))
    }

    pub(super) async fn step(&mut self, title: &str, text: &str) -> Result<(), Failure> {
        if self.steps > 0 && self.waits {
            pause().await?;
        }
        self.steps += 1;
        let (bold, number) = (Style::new().bold(), self.steps);
        output::print(&format!("\n{bold}{number}. {title}{bold:#}\n{text}\n"))
    }

    /// Calls a tool, and prints the call and the reply.
    pub(super) async fn call(
        &self,
        chat: &Chat,
        tool: &str,
        arguments: Value,
    ) -> Result<Reply, Failure> {
        let call = AnsiColor::Cyan.on_default();
        output::print(&format!("\n  {call}> {tool} {arguments}{call:#}\n"))?;
        let reply = chat.call(tool, arguments).await;
        let style = if reply.is_success() {
            Style::new()
        } else {
            AnsiColor::Red.on_default()
        };
        let mut text = String::new();
        let lines: Vec<&str> = reply.text.lines().collect();
        for line in lines.iter().take(SHOWN_LINES) {
            let _ = writeln!(text, "    {style}{}{style:#}", sanitized(line));
        }
        if lines.len() > SHOWN_LINES {
            let _ = writeln!(text, "    [{} more lines]", lines.len() - SHOWN_LINES);
        }
        output::print(&text)?;
        Ok(reply)
    }
}

/// Waits for Enter.
async fn pause() -> Result<(), Failure> {
    let dim = Style::new().dimmed();
    output::print(&format!("\n{dim}[Enter]{dim:#}\n"))?;
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)
    });
    // If input cannot be read, the tour continues without pauses.
    let _ = read.await;
    Ok(())
}
