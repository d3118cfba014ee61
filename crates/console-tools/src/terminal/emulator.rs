//! A terminal of a known size, for programs that draw on the whole screen.

use std::fmt;

use avt::parser::Function;
use avt::{Line, Observation, Observer};
use backend_core::ops::TerminalSize;

use super::visible;

/// Rows that a program can scroll with commands between two reads; after that, each
/// command scrolls one row.
const MAX_REQUESTED_ROWS: usize = 10_000;

/// Rows that one command scrolls, at most.
const MAX_SCROLLED_ROWS: usize = 1_000;

/// A terminal whose program draws anywhere on the screen. Memory is bounded: lines that
/// scroll off are returned by [`push`](Self::push) and then forgotten.
pub(crate) struct Emulator {
    parser: avt::Parser,
    terminal: avt::Terminal,
    /// The beginning of a character whose rest was not read yet.
    partial: Vec<u8>,
}

/// A screen with all its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScreenContent {
    /// The rows, without trailing spaces and without empty rows at the end.
    pub(crate) text: String,
    /// Row and column of the cursor, counted from 1, unless it is hidden.
    pub(crate) cursor: Option<(usize, usize)>,
}

impl fmt::Debug for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (columns, rows) = self.terminal.size();
        write!(f, "Emulator({rows}x{columns})")
    }
}

impl Emulator {
    /// Creates an empty terminal, unless the size is zero.
    pub(crate) fn new(size: TerminalSize) -> Option<Self> {
        let terminal = avt::Terminal::new(size.columns.into(), size.rows.into());
        Some(Self {
            parser: avt::Parser::new(),
            terminal: terminal.ok()?,
            partial: Vec::new(),
        })
    }

    /// Processes output, and returns the lines that scrolled off the screen.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let mut scrolled = ScrolledLines::default();
        let mut bytes = bytes;
        let joined;
        if !self.partial.is_empty() {
            self.partial.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.partial);
            bytes = &joined;
        }
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            for c in chunk.valid().chars() {
                self.feed(c, &mut scrolled);
            }
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && is_incomplete(invalid) {
                invalid.clone_into(&mut self.partial);
            } else if !invalid.is_empty() {
                self.feed(char::REPLACEMENT_CHARACTER, &mut scrolled);
            }
        }
        scrolled.text
    }

    fn feed(&mut self, c: char, scrolled: &mut ScrolledLines) {
        let Some(mut function) = self.parser.feed(c) else {
            return;
        };
        // A few bytes must not print or scroll thousands of lines, again and again.
        match &mut function {
            Function::Rep(count) => *count = (*count).min(self.columns()),
            Function::Su(count) if scrolled.requested > MAX_REQUESTED_ROWS => *count = 1,
            Function::Su(count) => scrolled.requested += usize::from(*count).min(MAX_SCROLLED_ROWS),
            _ => {}
        }
        self.terminal.execute_with(function, scrolled);
    }

    fn columns(&self) -> u16 {
        u16::try_from(self.terminal.size().0).unwrap_or(u16::MAX)
    }

    /// Returns what the screen shows.
    pub(crate) fn screen(&self) -> ScreenContent {
        let mut text = String::new();
        for line in self.terminal.screen().visible_lines() {
            push_line(&mut text, line);
        }
        text.truncate(text.trim_end_matches('\n').len());
        let cursor = self.terminal.cursor().position();
        ScreenContent {
            text,
            cursor: cursor.map(|(column, row)| (row + 1, column + 1)),
        }
    }

    /// Returns whether the program asked for the other encoding of the cursor keys.
    pub(crate) fn has_application_cursor_keys(&self) -> bool {
        self.terminal.cursor_key_app_mode()
    }
}

/// Returns `true` if more bytes could make a character of it.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

fn push_line(text: &mut String, line: &Line) {
    let start = text.len();
    text.extend(line.chars().map(visible));
    let shown = text.get(start..).unwrap_or_default().trim_end_matches(' ');
    text.truncate(start + shown.len());
    text.push('\n');
}

/// The lines that scrolled off the screen. Rows that a long line was wrapped to become
/// one line again.
#[derive(Debug, Default)]
struct ScrolledLines {
    text: String,
    /// The number of rows that the program asked to scroll.
    requested: usize,
}

impl Observer for &mut ScrolledLines {
    type Output = ();

    fn evicted(&mut self, _: &mut Observation<'_>, line: &Line) {
        if line.is_wrapped() {
            self.text.extend(line.chars().map(visible));
        } else {
            push_line(&mut self.text, line);
        }
    }

    fn end(&mut self, _: &mut Observation<'_>) {}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn emulator() -> Emulator {
        Emulator::new(TerminalSize::new(4, 10)).unwrap()
    }

    #[test]
    fn a_program_draws_anywhere_and_the_screen_shows_it() {
        let mut emulator = emulator();
        let drawn = b"shell$ vi\r\n\x1b[?1049h\x1b[2J\x1b[3;3Hfile\x1b[1;1H~\x1b[4;1H-- INSERT";
        assert_eq!(emulator.push(drawn), "");
        assert_eq!(emulator.screen().text, "~\n\n  file\n-- INSERT");
        // The screen before comes back.
        emulator.push(b"\x1b[?1049l");
        let screen = emulator.screen();
        assert_eq!(screen.text, "shell$ vi");
        assert_eq!(screen.cursor, Some((2, 1)));
        emulator.push(b"\x1b[?25l");
        assert_eq!(emulator.screen().cursor, None);
    }

    #[test]
    fn lines_that_scroll_off_are_returned_once() {
        let mut emulator = emulator();
        assert_eq!(emulator.push(b"1\r\n2\r\n3\r\n4\r\n5"), "1\n");
        assert_eq!(emulator.screen().text, "2\n3\n4\n5");
        assert_eq!(emulator.push(b"\r\n\r\n"), "2\n3\n");
        // Cleared lines are returned as well.
        assert_eq!(emulator.push(b"\x1b[H\x1b[2J"), "4\n5\n");
        assert_eq!(emulator.screen().text, "");
        // A long line is one line.
        assert_eq!(emulator.push(&[b'x'; 41]), "x".repeat(10));
        assert_eq!(emulator.push(b"\r\n"), "x".repeat(10));
    }

    #[test]
    fn a_few_bytes_print_no_more_than_a_row() {
        let mut emulator = emulator();
        assert_eq!(emulator.push(b"x\x1b[65535b"), "");
        assert_eq!(emulator.screen().text, "xxxxxxxxxx\nx");
    }

    #[test]
    fn a_flood_of_scroll_commands_scrolls_little() {
        let scrolled = emulator().push("\x1b[65535S".repeat(1_000).as_bytes());
        let rows = scrolled.lines().count();
        assert!((1_000..1_100).contains(&rows), "{rows}");
    }

    #[test]
    fn nothing_that_controls_a_terminal_is_left() {
        let mut emulator = emulator();
        emulator.push(b"a\x07\x00b\x1b]0;title\x07\x1b[31mc\x7f\xc2\x85d");
        assert!(
            !emulator
                .screen()
                .text
                .contains(|c: char| c.is_control() && c != '\n')
        );
    }

    proptest! {
        #[test]
        fn cuts_make_no_difference(
            bytes in prop::collection::vec(
                prop_oneof![
                    any::<u8>().prop_map(|byte| vec![byte]),
                    "[ -~é漢]{1,12}".prop_map(String::into_bytes),
                    (0..80_u16, 0..30_u16, "[@A-Za-z`]").prop_map(|(a, b, action)| {
                        format!("\x1b[{a};{b}{action}").into_bytes()
                    }),
                    Just(b"\x1b[?1049h".to_vec()),
                    Just(b"\x1b[?1049l".to_vec()),
                    Just(b"\r\n".to_vec()),
                ],
                0..60,
            ),
            at in any::<prop::sample::Index>(),
        ) {
            let bytes = bytes.concat();
            let mut whole = emulator();
            let scrolled = whole.push(&bytes);
            let (before, after) = bytes.split_at(at.index(bytes.len() + 1));
            let mut cut = emulator();
            let mut parts = cut.push(before);
            parts += &cut.push(after);
            prop_assert_eq!(scrolled, parts);
            prop_assert_eq!(whole.screen(), cut.screen());
            prop_assert!(whole.screen().text.lines().count() <= 4);
        }
    }
}
