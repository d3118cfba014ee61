//! Programs and background shells on the user's terminal.

use std::sync::Arc;

use backend_core::ops::{CommandStatus, ShellId, TerminalSize};
use backend_core::{Backend, Sandbox};
use permissions::Guarded;

use crate::attach::{self, End, Typing};
use crate::exit::Failure;
use crate::{output, system};

/// Programs that need a terminal.
const FULL_SCREEN: &[&str] = &[
    "atop", "bpython", "btop", "emacs", "fzf", "gdb", "gitui", "helix", "htop", "hx", "iotop",
    "ipython", "irb", "joe", "k9s", "kak", "lazygit", "less", "man", "mc", "micro", "more", "most",
    "mutt", "nano", "ncdu", "nethogs", "nvim", "passwd", "pico", "ranger", "screen", "ssh", "tig",
    "tmux", "top", "tui", "vi", "view", "vim", "vimdiff", "visudo", "watch",
];

/// Returns `true` if the program of a command line needs a terminal.
pub(super) fn is_full_screen(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let program = words.find(|word| !word.contains('=') && *word != "exec" && *word != "sudo");
    let name = program.map(|program| program.rsplit('/').next().unwrap_or(program));
    name.is_some_and(|name| FULL_SCREEN.contains(&name))
}

/// The backend of the console, whose shells can have the user's terminal.
#[derive(Debug)]
pub(super) struct TerminalShells {
    pub(super) backend: Arc<dyn Backend>,
    /// The same backend, where rules and the user decide.
    pub(super) guarded: Guarded<Arc<dyn Backend>>,
}

impl TerminalShells {
    /// Returns `true` if commands can have a terminal.
    pub(super) fn has_terminals(&self) -> bool {
        self.backend.info().capabilities.terminals
    }

    /// Runs a program, or a shell without one, until it ends or the user leaves it.
    /// Returns what there is to say about its end.
    pub(super) async fn run(&self, line: Option<String>) -> Result<Option<String>, Failure> {
        let (shells, sandbox) = (sandbox(&self.guarded)?, sandbox(&self.backend)?);
        let line = match line {
            Some(line) => line,
            None => attach::usual_shell(sandbox).await?,
        };
        let shell = shells.shell_start(attach::command(line)).await?;
        // Allowing a terminal allows everything that is typed there, so attaching to it is
        // not asked about again.
        let running = RunningShell(Some((Arc::clone(&self.backend), shell.id.clone())));
        let connection = sandbox.shell_attach(&shell.id).await?;
        let end = attach::converse(sandbox, &shell.id, connection, Typing::Keys).await;
        running.end().await;
        Ok(match end? {
            End::Ended(status) => failure(status),
            End::Left => Some("\nyou left it, and it was ended".to_owned()),
        })
    }

    /// Attaches to a background shell until it ends or the user leaves it. Returns what
    /// there is to say.
    pub(super) async fn attach(&self, id: &str) -> Result<Option<String>, Failure> {
        let id = ShellId::new(id);
        let sandbox = sandbox(&self.backend)?;
        let shells = sandbox.shell_list().await?;
        let shell = shells.into_iter().find(|shell| shell.id == id);
        let connection = self::sandbox(&self.guarded)?.shell_attach(&id).await?;
        let size = shell.and_then(|shell| shell.terminal);
        let (typing, leave) = match size {
            Some(_) => (Typing::Keys, "Enter ~ . leaves it"),
            None => (Typing::Lines, "a line ~. leaves it"),
        };
        output::note(&format!("attached to background shell {id}; {leave}"));
        if size.is_some() {
            // A program draws its screen anew when the size changes, so it is changed in any
            // case. An ended shell has none.
            let here = system::terminal_size();
            let other = TerminalSize::new(here.rows.saturating_add(1), here.columns);
            let _ = sandbox.shell_resize(&id, other).await;
            let _ = sandbox.shell_resize(&id, here).await;
        }
        let end = attach::converse(sandbox, &id, connection, typing).await;
        if let Some(size) = size {
            // Others who read its screen expect the size that it was started with.
            let _ = sandbox.shell_resize(&id, size).await;
        }
        Ok(Some(match end? {
            End::Ended(status) => format!("background shell {id} {}", ended(status)),
            End::Left => format!("\nbackground shell {id} runs on; attach {id} returns to it"),
        }))
    }
}

/// A shell that is ended with the future that drives it.
struct RunningShell(Option<(Arc<dyn Backend>, ShellId)>);

impl RunningShell {
    async fn end(mut self) {
        if let Some((backend, id)) = self.0.take() {
            kill(&*backend, &id).await;
        }
    }
}

impl Drop for RunningShell {
    fn drop(&mut self) {
        if let Some((backend, id)) = self.0.take() {
            tokio::spawn(async move { kill(&*backend, &id).await });
        }
    }
}

async fn kill(backend: &dyn Backend, id: &ShellId) {
    if let Some(sandbox) = backend.as_sandbox() {
        // It may have ended.
        let _ = sandbox.shell_kill(id).await;
    }
}

fn sandbox(backend: &dyn Backend) -> Result<&dyn Sandbox, Failure> {
    let none = || Failure::environment("this backend runs no commands; use --backend local:DIR");
    backend.as_sandbox().ok_or_else(none)
}

fn failure(status: CommandStatus) -> Option<String> {
    (!status.success()).then(|| ended(status))
}

fn ended(status: CommandStatus) -> String {
    match status {
        CommandStatus::Exited(code) => format!("exited with code {code}"),
        status => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_draw_on_the_screen_are_known_by_their_names() {
        for line in [
            "vim a.txt",
            "/usr/bin/top -d 1",
            "TERM=vt100 less x",
            "sudo htop",
            "exec vi",
        ] {
            assert!(is_full_screen(line), "{line}");
        }
        for line in ["", "echo vim", "vimtutor", "ls | less", "A=vim"] {
            assert!(!is_full_screen(line), "{line}");
        }
    }
}
