//! What a terminal would show of a command's output.
//!
//! A model should read what a person would see: a progress bar that was drawn ten
//! thousand times is one line, colours are nothing, and a line that was erased is
//! gone. [`Renderer`] plays the terminal in bounded memory:
//!
//! - Carriage return, backspace, erase-in-line, erase-to-the-end and relative
//!   cursor movements are applied. The cursor reaches back over the last
//!   [`ROWS`] lines, which is what tools use that redraw several bars.
//! - Nothing that has scrolled further away is ever changed. Clearing the screen
//!   and placing the cursor on a row erase nothing: how high the screen would be
//!   is not known, and losing output is worse than seeing it twice.
//! - Colours, titles, links and every other sequence are dropped. A title or
//!   another string that is not closed ends with its line, so that it cannot
//!   swallow the rest of the output.
//! - Tabs stay. Other control characters become their picture (`␀`), except those
//!   that only ring or switch character sets, which go. What is not UTF-8, and
//!   the controls U+0080 to U+009F, show as U+FFFD.
//! - One character is one column. A line of more than [`COLUMNS`] columns is still
//!   one line in the result, but a carriage return goes back only to its last
//!   multiple of that.

mod parser;
mod screen;

use parser::Parser;
use screen::Screen;

/// Lines that the cursor can reach back over.
pub const ROWS: usize = 64;

/// Columns that a carriage return can reach back over.
pub const COLUMNS: usize = 4_096;

/// What a terminal would show of `bytes`.
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

/// A terminal that output is written to piece by piece. How it is cut into pieces
/// does not matter: an escape sequence or a character may be split anywhere.
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
    /// An empty terminal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece of output.
    pub fn push(&mut self, bytes: &[u8]) {
        self.parser.advance(bytes, &mut self.screen);
    }

    /// Takes the lines that nothing can change any more. Calling this after each
    /// [`push`](Self::push) keeps the memory bounded; whether it is called makes no
    /// difference to the text as a whole.
    pub fn take_done(&mut self) -> String {
        self.screen.take_done()
    }

    /// Takes everything that is shown so far, the unfinished line too, and begins
    /// again on an empty one. A character or sequence that is half there waits for
    /// its other half.
    pub fn drain(&mut self) -> String {
        self.screen.drain()
    }

    /// Everything that is shown and was not taken.
    pub fn finish(mut self) -> String {
        self.parser.finish(&mut self.screen);
        self.screen.drain()
    }
}

/// How a control character is shown in text: its picture. Other characters are
/// shown as they are.
pub(crate) fn visible(c: char) -> char {
    match c {
        '\t' => c,
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\x7f' => '\u{2421}',
        '\u{80}'..='\u{9f}' => '\u{fffd}',
        _ => c,
    }
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
