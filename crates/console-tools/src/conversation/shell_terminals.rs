//! Terminal state of each background shell. It is kept between reads, because a read
//! may end in the middle of a character or of an escape sequence.

use std::sync::Mutex;

use backend_core::ops::{ShellId, ShellOutput, ShellState, TerminalSize};
use backend_core::sync::lock;

use crate::terminal::{Emulator, Renderer, ScreenContent};

/// Maximum number of tracked shells. The oldest may lose part of a character.
const MAX_TERMINALS: usize = 2 * backend_core::limits::SHELLS;

#[derive(Debug, Default)]
pub(crate) struct ShellTerminals(Mutex<Vec<ShellTerminal>>);

#[derive(Debug)]
struct ShellTerminal {
    sandbox: String,
    shell: ShellId,
    display: Display,
    ended: bool,
}

#[derive(Debug)]
enum Display {
    /// The output is text, line by line.
    Lines(Renderer),
    /// The shell has a terminal, whose screen is shown.
    Screen(Box<Emulator>),
}

/// New output of a shell, as a terminal shows it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RenderedOutput {
    /// The new output, or the lines that have scrolled off the screen.
    pub(crate) text: String,
    /// The screen of a shell that has a terminal.
    pub(crate) screen: Option<ScreenContent>,
}

impl ShellTerminals {
    pub(crate) fn render(
        &self,
        sandbox: &str,
        shell: &ShellId,
        output: &ShellOutput,
    ) -> RenderedOutput {
        // Locked to the end: a second read of the same shell continues where this one ends.
        let mut all = lock(&self.0);
        let display = take(&mut all, sandbox, shell);
        let ended = output.state != ShellState::Running;
        let (display, rendered) = match display {
            Some(Display::Screen(mut emulator)) => {
                let mut text = emulator.push(&output.stdout);
                text.push_str(&emulator.push(&output.stderr));
                let screen = Some(emulator.screen());
                // The last screen of an ended shell can be read again.
                let display = Some(Display::Screen(emulator));
                (display, RenderedOutput { text, screen })
            }
            lines => {
                let mut renderer = match lines {
                    Some(Display::Lines(renderer)) => renderer,
                    _ => Renderer::new(),
                };
                renderer.push(&output.stdout);
                renderer.push(&output.stderr);
                let (display, text) = if ended {
                    (None, renderer.finish())
                } else {
                    let text = renderer.drain();
                    (Some(Display::Lines(renderer)), text)
                };
                (display, RenderedOutput { text, screen: None })
            }
        };
        if let Some(display) = display {
            push(&mut all, sandbox, shell, display, ended);
        }
        rendered
    }

    /// Continues a shell with the state of `renderer`, which replaces any earlier one.
    pub(crate) fn insert(&self, sandbox: &str, shell: &ShellId, renderer: Renderer) {
        self.replace(sandbox, shell, Display::Lines(renderer));
    }

    /// Begins to show a shell as a screen.
    pub(crate) fn insert_screen(&self, sandbox: &str, shell: &ShellId, size: TerminalSize) {
        if let Some(emulator) = Emulator::new(size) {
            self.replace(sandbox, shell, Display::Screen(Box::new(emulator)));
        }
    }

    fn replace(&self, sandbox: &str, shell: &ShellId, display: Display) {
        let mut all = lock(&self.0);
        take(&mut all, sandbox, shell);
        push(&mut all, sandbox, shell, display, false);
    }

    /// Returns whether the program in the shell's terminal asked for the other encoding of
    /// the cursor keys, or `None` if the shell has no terminal.
    pub(crate) fn application_cursor_keys(&self, sandbox: &str, shell: &ShellId) -> Option<bool> {
        let all = lock(&self.0);
        match &all.iter().find(|one| one.is(sandbox, shell))?.display {
            Display::Screen(emulator) => Some(emulator.has_application_cursor_keys()),
            Display::Lines(_) => None,
        }
    }
}

impl ShellTerminal {
    fn is(&self, sandbox: &str, shell: &ShellId) -> bool {
        self.shell == *shell && self.sandbox == sandbox
    }
}

fn take(all: &mut Vec<ShellTerminal>, sandbox: &str, shell: &ShellId) -> Option<Display> {
    let at = all.iter().position(|one| one.is(sandbox, shell))?;
    Some(all.remove(at).display)
}

fn push(
    all: &mut Vec<ShellTerminal>,
    sandbox: &str,
    shell: &ShellId,
    display: Display,
    ended: bool,
) {
    if all.len() >= MAX_TERMINALS {
        let oldest = all.iter().position(|one| one.ended).unwrap_or(0);
        all.remove(oldest);
    }
    all.push(ShellTerminal {
        sandbox: sandbox.to_owned(),
        shell: shell.clone(),
        display,
        ended,
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

    fn text(
        terminals: &ShellTerminals,
        sandbox: &str,
        shell: &ShellId,
        output: &ShellOutput,
    ) -> String {
        let rendered = terminals.render(sandbox, shell, output);
        assert_eq!(rendered.screen, None);
        rendered.text
    }

    #[test]
    fn each_shell_has_a_screen_of_its_own() {
        let terminals = ShellTerminals::default();
        let (one, two) = (ShellId::new("bg_1"), ShellId::new("bg_2"));
        assert_eq!(text(&terminals, "a", &one, &output(b"x\xc3")), "x");
        assert_eq!(text(&terminals, "a", &two, &output(b"\xa9")), "\u{fffd}");
        assert_eq!(text(&terminals, "b", &one, &output(b"\xa9")), "\u{fffd}");
        assert_eq!(text(&terminals, "a", &one, &output(b"\xa9")), "é");
    }

    #[test]
    fn a_shell_has_one_terminal() {
        let terminals = ShellTerminals::default();
        let id = ShellId::new("bg_1");
        text(&terminals, "a", &id, &output(b"\xc3"));
        // A restarted sandbox may use the id again.
        let mut renderer = Renderer::new();
        renderer.push(b"\xe2\x82");
        terminals.insert("a", &id, renderer);
        assert_eq!(text(&terminals, "a", &id, &output(b"\xac")), "€");
        let mut last = output(b"");
        last.state = ShellState::Ended(CommandStatus::Exited(0));
        assert_eq!(text(&terminals, "a", &id, &last), "");
        assert!(terminals.0.lock().unwrap().is_empty());
    }

    #[test]
    fn an_ended_shell_is_forgotten() {
        let terminals = ShellTerminals::default();
        let id = ShellId::new("bg_1");
        let mut last = output(b"x\xc3");
        last.state = ShellState::Ended(CommandStatus::Exited(0));
        assert_eq!(text(&terminals, "a", &id, &last), "x\u{fffd}");
        assert!(terminals.0.lock().unwrap().is_empty());
        for number in 0..3 * MAX_TERMINALS {
            terminals.render("a", &ShellId::new(number.to_string()), &output(b"x"));
        }
        assert_eq!(terminals.0.lock().unwrap().len(), MAX_TERMINALS);
    }

    #[test]
    fn the_screen_of_a_terminal_outlives_its_shell() {
        let terminals = ShellTerminals::default();
        let id = ShellId::new("bg_1");
        assert_eq!(terminals.application_cursor_keys("a", &id), None);
        terminals.insert_screen("a", &id, TerminalSize::new(2, 20));
        assert_eq!(terminals.application_cursor_keys("a", &id), Some(false));
        let read = |bytes, ended: bool| {
            let mut output = output(bytes);
            if ended {
                output.state = ShellState::Ended(CommandStatus::Exited(0));
            }
            let rendered = terminals.render("a", &id, &output);
            (rendered.text, rendered.screen.unwrap().text)
        };
        let shown = |text: &str, screen: &str| (text.to_owned(), screen.to_owned());
        assert_eq!(read(b"1\r\n2\r\n3\x1b[?1h", false), shown("1\n", "2\n3"));
        assert_eq!(terminals.application_cursor_keys("a", &id), Some(true));
        assert_eq!(read(b"!", true), shown("", "2\n3!"));
        assert_eq!(read(b"", true), shown("", "2\n3!"));
        // Ended shells make room for others.
        for number in 0..MAX_TERMINALS {
            let running = ShellId::new(number.to_string());
            text(&terminals, "a", &running, &output(b"x"));
        }
        assert_eq!(terminals.application_cursor_keys("a", &id), None);
    }
}
