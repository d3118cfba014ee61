//! [`CharWindow`]: a range of characters of a text that arrives in chunks of bytes. Its
//! memory is bounded by the window, whatever the length of the text.

/// The bytes are not valid UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotText;

/// Keeps the requested characters and counts all. `\r\n` and `\r` become one `\n`.
#[derive(Debug, Default)]
pub(super) struct CharWindow {
    offset: u64,
    max_chars: u64,
    /// Bytes that the content may still use as a JSON string.
    budget: usize,
    content: String,
    taken: u64,
    total: u64,
    after_return: bool,
    /// The first bytes of an incomplete character.
    partial: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WindowText {
    /// The requested characters, up to the size limit.
    pub(super) content: String,
    /// Number of characters in `content`.
    pub(super) chars_read: u64,
    /// Number of characters in the whole text.
    pub(super) total_chars: u64,
}

impl CharWindow {
    /// Creates a window of at most `max_chars` characters after the first `offset`,
    /// limited to `budget` bytes within a JSON string.
    pub(super) fn new(offset: u64, max_chars: u64, budget: usize) -> Self {
        Self {
            offset,
            max_chars,
            budget,
            ..Self::default()
        }
    }

    /// Processes the complete characters and buffers an incomplete one.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), NotText> {
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend_from_slice(piece);
        let whole = match str::from_utf8(&bytes) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_some() => return Err(NotText),
            Err(error) => error.valid_up_to(),
        };
        self.partial = bytes.split_off(whole);
        let text = str::from_utf8(&bytes).map_err(|_| NotText)?;
        text.chars().for_each(|c| self.take(c));
        Ok(())
    }

    fn take(&mut self, c: char) {
        let ends_return = self.after_return && c == '\n';
        self.after_return = c == '\r';
        if ends_return {
            return;
        }
        let c = if c == '\r' { '\n' } else { c };
        if self.total >= self.offset && self.taken < self.max_chars {
            match self.budget.checked_sub(json_bytes(c)) {
                Some(left) => {
                    self.budget = left;
                    self.taken += 1;
                    self.content.push(c);
                }
                // The content ends before the first character that does not fit.
                None => self.max_chars = self.taken,
            }
        }
        self.total += 1;
    }

    pub(super) fn finish(self) -> Result<WindowText, NotText> {
        if !self.partial.is_empty() {
            return Err(NotText);
        }
        Ok(WindowText {
            content: self.content,
            chars_read: self.taken,
            total_chars: self.total,
        })
    }
}

/// Returns the number of bytes that a character takes within a JSON string.
pub(super) fn json_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(text: &[u8], offset: u64, max: u64, step: usize) -> Result<WindowText, NotText> {
        let mut window = CharWindow::new(offset, max, usize::MAX);
        for piece in text.chunks(step) {
            window.push(piece)?;
        }
        window.finish()
    }

    #[test]
    fn line_ends_and_characters_survive_any_cut() {
        let text = "\u{feff}a\r\n\rb\r\r\n😀é€\r".as_bytes();
        for step in 1..=text.len() {
            let found = window(text, 0, u64::MAX, step).unwrap();
            assert_eq!(
                found.content, "\u{feff}a\n\nb\n\n😀é€\n",
                "pieces of {step}"
            );
            assert_eq!((found.chars_read, found.total_chars), (11, 11));
        }
    }

    #[test]
    fn what_is_no_text_is_refused_in_any_cut() {
        for text in [&b"ab\xff"[..], b"\xe2\x82", b"a\xf0\x9f\x98", b"\xc3("] {
            for step in 1..=text.len() {
                assert_eq!(window(text, 0, 1, step), Err(NotText), "{text:?} by {step}");
            }
        }
    }

    #[test]
    fn the_budget_cuts_where_a_character_does_not_fit() {
        for (text, budget, content) in [
            ("abc", 2, "ab"),
            ("a\"b", 2, "a"),
            ("a\u{1}bc", 6, "a"),
            ("aéb", 3, "aé"),
            ("a", 0, ""),
        ] {
            let mut window = CharWindow::new(0, 99, budget);
            window.push(text.as_bytes()).unwrap();
            let found = window.finish().unwrap();
            assert_eq!(found.content, content, "{text:?} in {budget}");
            assert_eq!(found.total_chars, text.chars().count() as u64);
        }
    }

    proptest! {
        #[test]
        fn it_is_a_slice_of_the_normal_form(
            text in "[ab\r\n\u{e9}\u{20ac}\u{1f600}]{0,40}",
            offset in 0u64..50,
            max in 0u64..50,
            step in 1usize..9,
        ) {
            let normal = text.replace("\r\n", "\n").replace('\r', "\n");
            let slice: String = normal.chars().skip(offset as usize).take(max as usize).collect();
            let found = window(text.as_bytes(), offset, max, step).unwrap();
            prop_assert_eq!(found.chars_read, slice.chars().count() as u64);
            prop_assert_eq!(found.content, slice);
            prop_assert_eq!(found.total_chars, normal.chars().count() as u64);
        }

        #[test]
        fn the_budget_counts_as_json_does(text in any::<String>()) {
            let bytes: usize = text.chars().map(json_bytes).sum();
            prop_assert_eq!(bytes + 2, serde_json::to_string(&text).unwrap().len());
        }
    }
}
