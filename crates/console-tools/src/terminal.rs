//! Renders the output of a command as a terminal would show it.
//!
//! A model should read what a person would see. A progress bar that was drawn ten
//! thousand times is one line, colours disappear, and an erased line is gone.
//! [`Renderer`] emulates the terminal in bounded memory:
//!
//! - Carriage return, backspace, erase-in-line, erase-to-the-end and relative cursor
//!   movements are applied. The cursor can move back over the last [`ROWS`] lines,
//!   enough for tools that redraw several progress bars.
//! - Lines that have scrolled further away never change. Clearing the screen and moving
//!   the cursor to an absolute row erase nothing: the height of the screen is unknown,
//!   and losing output is worse than showing it twice.
//! - Colours, titles, links and all other sequences are dropped. A title or other
//!   string that is not closed ends with its line, so it cannot swallow the rest of the
//!   output.
//! - Tabs stay. Other control characters become their picture (`␀`), except those that
//!   only ring the bell or switch character sets, which are dropped. Invalid UTF-8 and
//!   the controls U+0080 to U+009F show as U+FFFD.
//! - One character is one column. A line of more than [`COLUMNS`] columns is still one
//!   line in the result, but a carriage return only goes back to the last multiple of
//!   that width.

mod emulator;
mod parser;
mod screen;

pub(crate) use emulator::{Emulator, ScreenContent};
use parser::Parser;
use screen::Screen;

/// Number of lines that the cursor can move back over.
pub const ROWS: usize = 64;

/// Number of columns that a carriage return can go back over.
pub const COLUMNS: usize = 4_096;

/// Renders `bytes` as a terminal would show them.
///
/// ```
/// use console_tools::terminal::render;
/// assert_eq!(render(b"\x1b[31mred\x1b[0m\r\n 10%\r100%\n"), "red\n100%\n");
/// ```
pub fn render(bytes: &[u8]) -> String {
    let mut renderer = Renderer::new();
    renderer.push(bytes);
    renderer.finish()
}

/// A terminal that output is written to piece by piece. The cuts do not matter: an
/// escape sequence or a character may be split anywhere.
///
/// ```
/// use console_tools::terminal::Renderer;
/// let mut renderer = Renderer::new();
/// for piece in [&b"caf\xc3"[..], b"\xa9 \x1b[", b"1mbold"] {
///     renderer.push(piece);
/// }
/// assert_eq!(renderer.finish(), "café bold");
/// ```
#[derive(Debug, Default)]
pub struct Renderer {
    parser: Parser,
    screen: Screen,
}

impl Renderer {
    /// Creates an empty terminal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Processes the next piece of output.
    pub fn push(&mut self, bytes: &[u8]) {
        self.parser.advance(bytes, &mut self.screen);
    }

    /// Takes the lines that can no longer change. Calling this after each
    /// [`push`](Self::push) keeps the memory bounded and makes no difference to the
    /// text as a whole.
    pub fn take_done(&mut self) -> String {
        self.screen.take_done()
    }

    /// Takes everything that is shown so far, including the unfinished line, and
    /// continues on an empty line. An incomplete character or sequence stays buffered.
    pub fn drain(&mut self) -> String {
        self.screen.drain()
    }

    /// Returns everything that is shown and was not taken.
    pub fn finish(mut self) -> String {
        self.parser.finish(&mut self.screen);
        self.screen.drain()
    }
}

/// Shows `output` on a screen, whole and in pieces.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz(output: &[u8], piece: usize) {
    let size = backend_core::ops::TerminalSize::new(5, 12);
    let (Some(mut whole), Some(mut pieces)) = (Emulator::new(size), Emulator::new(size)) else {
        return;
    };
    let scrolled = whole.push(output);
    let shown = whole.screen();
    let is_control = |c: char| c.is_control() && c != '\n';
    assert!(!scrolled.contains(is_control) && !shown.text.contains(is_control));
    let parts: String = output
        .chunks(piece.max(1))
        .map(|piece| pieces.push(piece))
        .collect();
    assert_eq!((parts, pieces.screen()), (scrolled, shown));
}

/// Replaces a control character with its picture.
pub(crate) fn visible(c: char) -> char {
    match c {
        '\t' => c,
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\x7f' => '\u{2421}',
        '\u{80}'..='\u{9f}' => '\u{fffd}',
        _ => c,
    }
}

/// Maximum number of characters of a text on one line.
const ONE_LINE_CHARS: usize = 200;

/// Formats text for a message: on one line, and truncated if it is long.
pub(crate) fn on_one_line(text: &str) -> String {
    let mut shown: String = text.chars().take(ONE_LINE_CHARS).map(visible).collect();
    if text.chars().nth(ONE_LINE_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests;
