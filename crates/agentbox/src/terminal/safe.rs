//! Makes untrusted text safe for a terminal: of what is invisible, only colours stay.

use std::borrow::Cow;

/// Maximum length of a sequence that sets colours.
const SEQUENCE: usize = 64;

/// Resets all colours and styles.
const RESET: &str = "\x1b[0m";

/// Makes every control character visible, except line ends and tabs.
pub(crate) fn text(text: &str) -> String {
    let line = |c: char| match c {
        '\n' => c,
        c => visible(c),
    };
    text.replace("\r\n", "\n").chars().map(line).collect()
}

/// Replaces characters that could move the cursor, hide text or change its direction.
pub(crate) fn sanitized(text: &str) -> Cow<'_, str> {
    let bad = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_unseen(c);
    if text.contains(bad) {
        Cow::Owned(text.replace(bad, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns `true` if a text has nothing that would have to be made visible.
pub(crate) fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c != '\t' && visible(c) == c)
}

/// Returns the character to show: a control picture for a control character.
fn visible(c: char) -> char {
    match c {
        '\t' => c,
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\x7f' => '\u{2421}',
        c if is_unseen(c) => '\u{fffd}',
        _ => c,
    }
}

/// Returns the parameters of a colour sequence without the one that conceals text.
fn revealed(parameters: &str) -> String {
    let mut all = parameters.split(';');
    let mut kept: Vec<&str> = Vec::new();
    while let Some(one) = all.next() {
        let number = one.split(':').next().unwrap_or_default();
        if number.trim_start_matches('0') == "8" {
            continue;
        }
        kept.push(one);
        // A colour by number: the following parameters belong to it.
        if matches!(one, "38" | "48" | "58")
            && let Some(kind) = all.next()
        {
            kept.push(kind);
            let more = if kind == "5" { 1 } else { 3 };
            kept.extend(all.by_ref().take(more));
        }
    }
    if kept.is_empty() && !parameters.is_empty() {
        // An empty parameter list would reset everything.
        return "28".to_owned();
    }
    kept.join(";")
}

/// Returns `true` for a character beyond ASCII that models and programs see but people
/// do not: the second set of controls, marks that change the writing direction, and
/// blanks without width.
pub(crate) fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Filters a command's output, piece by piece. It does not matter where it is cut.
#[derive(Debug)]
pub(crate) struct Filter {
    colour: bool,
    state: State,
    /// The bytes of an incomplete character.
    half: Vec<u8>,
    /// Whether a carriage return is pending.
    returned: bool,
    /// Whether the cursor is at the start of a line.
    pub(crate) at_start: bool,
    /// Whether a colour may be set.
    coloured: bool,
}

#[derive(Debug, PartialEq)]
enum State {
    Text,
    /// After the escape character.
    Escape,
    /// After the escape character and an intermediate that one character follows.
    Short,
    /// After `ESC [`, with the parameters so far.
    Sequence(String),
    /// A sequence that does not set a colour.
    Other,
    /// A title or similar. `true` if the last character was the escape character.
    Title(bool),
}

impl Filter {
    pub(crate) fn new(colour: bool) -> Self {
        Self {
            colour,
            state: State::Text,
            half: Vec::new(),
            returned: false,
            at_start: true,
            coloured: false,
        }
    }

    /// Returns the text to show for the next piece.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let mut out = String::with_capacity(bytes.len());
        self.half.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.half);
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            chunk.valid().chars().for_each(|c| self.take(c, &mut out));
            let invalid = chunk.invalid();
            let is_incomplete =
                |bytes| str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none());
            if chunks.peek().is_none() && is_incomplete(invalid) {
                self.half = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.take('\u{fffd}', &mut out);
            }
        }
        out
    }

    /// Returns the text that ends the output: it ends the line and resets the colours.
    pub(crate) fn finish(&mut self) -> String {
        let mut out = String::new();
        self.state = State::Text;
        if !std::mem::take(&mut self.half).is_empty() {
            self.take('\u{fffd}', &mut out);
        }
        if std::mem::take(&mut self.coloured) {
            out.push_str(RESET);
        }
        if !self.at_start {
            out.push('\n');
        }
        (self.at_start, self.returned) = (true, false);
        out
    }

    fn take(&mut self, c: char, out: &mut String) {
        match (&mut self.state, c) {
            (State::Title(escaped), '\x1b') => *escaped = true,
            (_, '\x1b') => self.state = State::Escape,
            (State::Text, c) => self.show(c, out),
            (State::Escape, '[') => self.state = State::Sequence(String::new()),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => self.state = State::Title(false),
            (State::Escape, ' '..='/') => self.state = State::Short,
            (State::Escape | State::Short, '0'..='~') => self.state = State::Text,
            (State::Sequence(so_far), '0'..='9' | ';' | ':') if so_far.len() < SEQUENCE => {
                so_far.push(c);
            }
            (State::Sequence(so_far), 'm') => {
                if self.colour {
                    self.coloured = true;
                    out.push_str("\x1b[");
                    out.push_str(&revealed(so_far));
                    out.push('m');
                }
                self.state = State::Text;
            }
            // Any sequence other than a colour is dropped.
            (State::Sequence(_) | State::Other, ' '..='?') => self.state = State::Other,
            (State::Sequence(_) | State::Other, '@'..='~') => self.state = State::Text,
            (State::Title(_), '\x07') | (State::Title(true), '\\') => self.state = State::Text,
            (State::Title(escaped), c) if c != '\n' && c != '\r' => *escaped = false,
            // The sequence is invalid: it ends, and this character is shown.
            (_, c) => {
                self.state = State::Text;
                self.show(c, out);
            }
        }
    }

    fn show(&mut self, c: char, out: &mut String) {
        match c {
            '\r' => self.returned = true,
            '\n' => {
                self.returned = false;
                self.at_start = true;
                out.push(c);
            }
            '\x07' | '\x0e' | '\x0f' => {}
            c => {
                if std::mem::take(&mut self.returned) && !self.at_start {
                    // A program that redraws its line gets an empty one.
                    out.push_str("\r\x1b[2K");
                }
                self.at_start = false;
                out.push(visible(c));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(pieces: &[&[u8]]) -> String {
        let mut filter = Filter::new(true);
        pieces.iter().map(|piece| filter.push(piece)).collect()
    }

    #[test]
    fn control_codes_do_not_reach_a_terminal() {
        assert_eq!(sanitized("a\tb\nc"), "a\tb\nc");
        assert_eq!(
            sanitized("\u{1b}[2Jx\r\u{202e}"),
            "\u{fffd}[2Jx\u{fffd}\u{fffd}"
        );
        assert_eq!(sanitized("a\u{200b}\u{e0041}b"), "a\u{fffd}\u{fffd}b");
    }

    #[test]
    fn colours_pass_and_nothing_else() {
        assert_eq!(shown(&[b"\x1b[1;31mred\x1b[0m"]), "\x1b[1;31mred\x1b[0m");
        assert_eq!(shown(&[b"\x1b[2J\x1b[H\x1b[?25l\x1b[6n\x1bc\x1b(0a"]), "a");
        assert_eq!(shown(&[b"\x1b]0;title\x07a\x1b]52;c;eA==\x1b\\b"]), "ab");
        assert_eq!(shown(&[b"\x1b]0;never closed\nb"]), "\nb");
        assert_eq!(shown(&[b"\x1b[>4;1mx\x1b[?1m"]), "x");
        assert_eq!(shown(&[b"a\x08\x00\x07\x7f"]), "a␈␀␡");
        assert_eq!(
            shown(&["\u{9b}2J\u{202e}x".as_bytes()]),
            "\u{fffd}2J\u{fffd}x"
        );
        let mut plain = Filter::new(false);
        assert_eq!(plain.push(b"\x1b[31mred\x1b[0m"), "red");
    }

    #[test]
    fn nothing_is_concealed() {
        assert_eq!(shown(&[b"\x1b[8mhidden\x1b[0m"]), "\x1b[28mhidden\x1b[0m");
        assert_eq!(shown(&[b"\x1b[31;8;1mx\x1b[0m"]), "\x1b[31;1mx\x1b[0m");
        assert_eq!(shown(&[b"\x1b[08;8:1mx\x1b[m"]), "\x1b[28mx\x1b[m");
        // The eighth colour is valid, and does not conceal text.
        for colour in ["38;5;8", "48;2;8;8;8", "38:5:8", "1;38;5;8;4"] {
            let text = format!("\x1b[{colour}mx\x1b[0m");
            assert_eq!(shown(&[text.as_bytes()]), text);
        }
        assert_eq!(
            shown(&[b"\x1b[38;2;1;2;3;8mx\x1b[0m"]),
            "\x1b[38;2;1;2;3mx\x1b[0m"
        );
        let invisible = "a\u{200b}\u{200d}\u{2060}\u{feff}\u{ad}\u{e0041}\u{2066}b";
        let seen = format!("a{}b", "\u{fffd}".repeat(7));
        assert_eq!(shown(&[invisible.as_bytes()]), seen);
        assert_eq!(text(invisible), seen);
        assert!(!is_plain("\u{200b}") && !is_plain("\u{e0041}"));
        assert_eq!(
            text("naïve e\u{301} नमस्ते 日本 ❤\u{fe0f}"),
            "naïve e\u{301} नमस्ते 日本 ❤\u{fe0f}"
        );
    }

    #[test]
    fn a_line_can_be_drawn_anew() {
        assert_eq!(shown(&[b"10%\r", b"20%\r\n", b"x"]), "10%\r\x1b[2K20%\nx");
    }

    #[test]
    fn the_end_sets_everything_back() {
        let mut filter = Filter::new(true);
        filter.push(b"\x1b[31mred");
        assert_eq!(filter.finish(), "\x1b[0m\n");
        assert_eq!(filter.finish(), "");
    }

    #[test]
    fn text_has_no_controls() {
        assert_eq!(text("a\r\nb\t\x1b[31m\u{85}"), "a\nb\t␛[31m\u{fffd}");
        assert!(is_plain("ä b") && !is_plain("\x1b") && !is_plain("a\nb") && !is_plain("\u{202e}"));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_harmless(pieces in prop::collection::vec(prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b"\x1b[]m;0?\r\n\x07\\".to_vec())], 0..12), 0..6)) {
            let mut filter = Filter::new(true);
            let mut cut: String = pieces.iter().map(|piece| filter.push(piece)).collect();
            cut.push_str(&filter.finish());
            let mut filter = Filter::new(true);
            let mut whole = filter.push(&pieces.concat());
            whole.push_str(&filter.finish());
            prop_assert_eq!(&cut, &whole);
            // Remove the allowed sequences; no control character may be left.
            let mut left = whole.replace("\r\x1b[2K", "");
            while let Some(at) = left.find("\x1b[") {
                let end = left[at..].find('m').unwrap();
                prop_assert!(left[at + 2..at + end].chars().all(|c| "0123456789;:".contains(c)));
                left.replace_range(at..=at + end, "");
            }
            prop_assert!(left.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()), "{left:?}");
        }
    }
}
