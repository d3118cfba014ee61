//! Separates text, control characters and escape sequences, in constant memory.

use super::screen::Screen;

const ESCAPE: u8 = 0x1b;

/// The parser's position: the context in which the next byte is read.
#[derive(Debug, Default, Clone, Copy)]
enum State {
    /// In text.
    #[default]
    Text,
    /// After an escape character.
    Escape,
    /// In an escape sequence with more bytes, such as the selection of a character set.
    Longer,
    /// In a control sequence.
    Sequence(Sequence),
    /// In a title, a link or a picture. A bell ends only some of them.
    String { bell_ends: bool },
}

#[derive(Debug, Default, Clone, Copy)]
struct Sequence {
    numbers: [u16; 2],
    /// Index of the number being read, which may exceed those that are kept.
    index: usize,
    /// `true` for a kind of sequence that is dropped.
    other: bool,
}

#[derive(Debug, Default)]
pub(super) struct Parser {
    state: State,
    /// The first bytes of an incomplete character.
    partial: Vec<u8>,
}

impl Parser {
    pub(super) fn advance(&mut self, mut bytes: &[u8], screen: &mut Screen) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if matches!(self.state, State::Text) {
                let end = bytes.iter().position(|byte| *byte == ESCAPE);
                let (text, after) = bytes.split_at(end.unwrap_or(bytes.len()));
                self.text(text, screen);
                bytes = after;
                if let [_, rest @ ..] = after {
                    self.end_partial(screen);
                    self.state = State::Escape;
                    bytes = rest;
                }
                continue;
            }
            match byte {
                ESCAPE => self.state = State::Escape,
                // Cancels the current sequence.
                0x18 | 0x1a => self.state = State::Text,
                _ => self.step(byte, screen),
            }
            bytes = rest;
        }
    }

    /// Handles the end of the output.
    pub(super) fn finish(&mut self, screen: &mut Screen) {
        self.end_partial(screen);
        self.state = State::Text;
    }

    /// Processes a byte outside of text.
    fn step(&mut self, byte: u8, screen: &mut Screen) {
        match (self.state, byte) {
            (State::String { .. }, b'\n') => {
                self.state = State::Text;
                screen.control(byte);
            }
            (State::String { bell_ends: true }, 0x07) => self.state = State::Text,
            (State::String { .. }, _) => {}
            // Control characters take effect at once, even inside a sequence.
            (_, ..0x20) => screen.control(byte),
            (_, 0x7f) => {}
            // No sequence contains such a byte, so it is text again.
            (_, 0x80..) => {
                self.state = State::Text;
                self.text(&[byte], screen);
            }
            (State::Escape, b'[') => self.state = State::Sequence(Sequence::default()),
            (State::Escape, b']') => self.state = State::String { bell_ends: true },
            (State::Escape, b'P' | b'X' | b'^' | b'_') => {
                self.state = State::String { bell_ends: false };
            }
            (State::Escape | State::Longer, 0x20..=0x2f) => self.state = State::Longer,
            (State::Escape, _) => {
                self.state = State::Text;
                screen.escape(byte);
            }
            (State::Sequence(mut sequence), ..0x40) => {
                sequence.parameter(byte);
                self.state = State::Sequence(sequence);
            }
            (State::Sequence(sequence), _) => {
                self.state = State::Text;
                if !sequence.other {
                    screen.sequence(byte, sequence.numbers);
                }
            }
            (State::Longer | State::Text, _) => self.state = State::Text,
        }
    }

    /// Processes text without escape characters.
    fn text(&mut self, new: &[u8], screen: &mut Screen) {
        let joined;
        let mut bytes = new;
        if !self.partial.is_empty() {
            joined = [&std::mem::take(&mut self.partial)[..], new].concat();
            bytes = &joined;
        }
        while !bytes.is_empty() {
            let error = match str::from_utf8(bytes) {
                Ok(text) => return print(text, screen),
                Err(error) => error,
            };
            let (valid, invalid) = bytes.split_at(error.valid_up_to());
            print(str::from_utf8(valid).unwrap_or_default(), screen);
            let Some(length) = error.error_len() else {
                self.partial.extend_from_slice(invalid);
                return;
            };
            screen.print('\u{fffd}');
            bytes = invalid.get(length..).unwrap_or_default();
        }
    }

    /// Replaces an incomplete character, because its other bytes will not come.
    fn end_partial(&mut self, screen: &mut Screen) {
        if !self.partial.is_empty() {
            self.partial.clear();
            screen.print('\u{fffd}');
        }
    }
}

impl Sequence {
    /// Processes a byte before the final one, which selects the action.
    fn parameter(&mut self, byte: u8) {
        match byte {
            b'0'..=b'9' => {
                if let Some(number) = self.numbers.get_mut(self.index) {
                    let digit = u16::from(byte - b'0');
                    *number = number.saturating_mul(10).saturating_add(digit);
                }
            }
            b';' | b':' => self.index = self.index.saturating_add(1),
            _ => self.other = true,
        }
    }
}

fn print(text: &str, screen: &mut Screen) {
    for c in text.chars() {
        match c {
            '\0'..='\x1f' => screen.control(c as u8),
            _ => screen.print(c),
        }
    }
}
