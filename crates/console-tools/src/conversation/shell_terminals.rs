//! Terminal state of each background shell. It is kept between reads, because a read
//! may end in the middle of a character or of an escape sequence.

use std::sync::Mutex;

use backend_core::ops::{ShellId, ShellOutput, ShellState};
use backend_core::sync::lock;

use crate::terminal::Renderer;

/// Maximum number of tracked shells. The oldest may lose part of a character.
const MAX_TERMINALS: usize = 2 * backend_core::limits::SHELLS;

#[derive(Debug, Default)]
pub(crate) struct ShellTerminals(Mutex<Vec<ShellTerminal>>);

#[derive(Debug)]
struct ShellTerminal {
    sandbox: String,
    shell: ShellId,
    renderer: Renderer,
}

impl ShellTerminals {
    pub(crate) fn render(&self, sandbox: &str, shell: &ShellId, output: &ShellOutput) -> String {
        // Locked to the end: a second read of the same shell continues where this one ends.
        let mut all = lock(&self.0);
        let mut renderer = take(&mut all, sandbox, shell).unwrap_or_default();
        renderer.push(&output.stdout);
        renderer.push(&output.stderr);
        if output.state != ShellState::Running {
            return renderer.finish();
        }
        let shown = renderer.drain();
        push(&mut all, sandbox, shell, renderer);
        shown
    }

    /// Continues a shell with the state of `renderer`, which replaces any earlier one.
    pub(crate) fn insert(&self, sandbox: &str, shell: &ShellId, renderer: Renderer) {
        let mut all = lock(&self.0);
        take(&mut all, sandbox, shell);
        push(&mut all, sandbox, shell, renderer);
    }
}

fn take(all: &mut Vec<ShellTerminal>, sandbox: &str, shell: &ShellId) -> Option<Renderer> {
    let is_it = |one: &ShellTerminal| one.shell == *shell && one.sandbox == sandbox;
    let at = all.iter().position(is_it)?;
    Some(all.remove(at).renderer)
}

fn push(all: &mut Vec<ShellTerminal>, sandbox: &str, shell: &ShellId, renderer: Renderer) {
    if all.len() >= MAX_TERMINALS {
        all.remove(0);
    }
    all.push(ShellTerminal {
        sandbox: sandbox.to_owned(),
        shell: shell.clone(),
        renderer,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use backend_core::ops::CommandStatus;

    fn output(bytes: &'static [u8]) -> ShellOutput {
        let mut output = ShellOutput::new(ShellState::Running);
        output.stdout = bytes.into();
        output
    }

    #[test]
    fn each_shell_has_a_screen_of_its_own() {
        let terminals = ShellTerminals::default();
        let (one, two) = (ShellId::new("bg_1"), ShellId::new("bg_2"));
        assert_eq!(terminals.render("a", &one, &output(b"x\xc3")), "x");
        assert_eq!(terminals.render("a", &two, &output(b"\xa9")), "\u{fffd}");
        assert_eq!(terminals.render("b", &one, &output(b"\xa9")), "\u{fffd}");
        assert_eq!(terminals.render("a", &one, &output(b"\xa9")), "é");
    }

    #[test]
    fn a_shell_has_one_terminal() {
        let terminals = ShellTerminals::default();
        let id = ShellId::new("bg_1");
        terminals.render("a", &id, &output(b"\xc3"));
        // A restarted sandbox may use the id again.
        let mut renderer = Renderer::new();
        renderer.push(b"\xe2\x82");
        terminals.insert("a", &id, renderer);
        assert_eq!(terminals.render("a", &id, &output(b"\xac")), "€");
        let mut last = output(b"");
        last.state = ShellState::Ended(CommandStatus::Exited(0));
        assert_eq!(terminals.render("a", &id, &last), "");
        assert!(terminals.0.lock().unwrap().is_empty());
    }

    #[test]
    fn an_ended_shell_is_forgotten() {
        let terminals = ShellTerminals::default();
        let id = ShellId::new("bg_1");
        let mut last = output(b"x\xc3");
        last.state = ShellState::Ended(CommandStatus::Exited(0));
        assert_eq!(terminals.render("a", &id, &last), "x\u{fffd}");
        assert!(terminals.0.lock().unwrap().is_empty());
        for number in 0..3 * MAX_TERMINALS {
            terminals.render("a", &ShellId::new(number.to_string()), &output(b"x"));
        }
        assert_eq!(terminals.0.lock().unwrap().len(), MAX_TERMINALS);
    }
}
