//! [`Tag`]: the few digits that tell a line from what it was before.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::md5;

/// How many lines of text keep two digits safe enough; see [`TagWidth::recommended`].
const TWO_DIGIT_LINES: usize = 1_024;

/// How many digits a tag has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum TagWidth {
    /// Two digits, the known format. A changed line keeps its tag once in 256 times.
    #[default]
    Two,
    /// Four digits. A changed line keeps its tag once in 65,536 times.
    Four,
}

impl TagWidth {
    /// The number of digits.
    #[must_use]
    pub const fn digits(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// The width to show a text of `lines` lines in, if the reader knows both.
    ///
    /// Lines of one text may share a tag, since an anchor also names the line.
    /// What counts is whether a line that changed, or another that moved into its place, keeps
    /// the tag. If a whole text moves by one line, `lines / 256` of its lines seem unmoved with
    /// two digits: four lines of the 1,024 up to which two digits are recommended. Four digits
    /// cost two characters a line, which is little beside what a wrong edit costs.
    ///
    /// ```
    /// use hashline::TagWidth;
    ///
    /// assert_eq!(TagWidth::recommended(300), TagWidth::Two);
    /// assert_eq!(TagWidth::recommended(20_000), TagWidth::Four);
    /// ```
    #[must_use]
    pub const fn recommended(lines: usize) -> Self {
        if lines <= TWO_DIGIT_LINES {
            Self::Two
        } else {
            Self::Four
        }
    }
}

/// The first hexadecimal digits of a line's MD5.
///
/// The line is taken whole and without its line end. A tag is parsed from two or four digits
/// in either case, and shown in lower case.
///
/// ```
/// use hashline::{Tag, TagWidth};
///
/// let tag = Tag::of("a", TagWidth::Two);
/// assert_eq!(tag.to_string(), "0c");
/// assert_eq!("0C".parse(), Ok(tag));
/// assert!(tag.matches("a") && !tag.matches("a "));
/// assert_eq!(Tag::of("a", TagWidth::Four).to_string(), "0cc1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag {
    /// Only the upper half counts if the width is two.
    bytes: u16,
    width: TagWidth,
}

impl Tag {
    /// The tag of `line`, which is without its line end.
    #[must_use]
    pub fn of(line: &str, width: TagWidth) -> Self {
        let mut bytes = 0;
        md5::first_bytes([line].into_iter(), [&mut bytes]);
        Self::new(bytes, width)
    }

    pub(crate) const fn new(bytes: u16, width: TagWidth) -> Self {
        let bytes = match width {
            TagWidth::Two => bytes & 0xff00,
            TagWidth::Four => bytes,
        };
        Self { bytes, width }
    }

    /// How many digits this tag has.
    #[must_use]
    pub const fn width(self) -> TagWidth {
        self.width
    }

    /// Whether this may be the tag of `line`, as far as its digits go.
    #[must_use]
    pub fn matches(self, line: &str) -> bool {
        self == Self::of(line, self.width)
    }

    /// The digits of all four places; the last two count only if the width is four.
    pub(crate) fn digits(self) -> [u8; 4] {
        let digit = |shift: u32| match (self.bytes >> shift) & 0xf {
            value @ 0..=9 => b'0' + value as u8,
            value => b'a' - 10 + value as u8,
        };
        [digit(12), digit(8), digit(4), digit(0)]
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width {
            TagWidth::Two => write!(f, "{:02x}", self.bytes >> 8),
            TagWidth::Four => write!(f, "{:04x}", self.bytes),
        }
    }
}

impl FromStr for Tag {
    type Err = TagError;

    fn from_str(text: &str) -> Result<Self, TagError> {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bytes = u16::from_str_radix(text, 16).ok().filter(|_| is_hex);
        match (bytes, text.len()) {
            (Some(bytes), 2) => Ok(Self::new(bytes << 8, TagWidth::Two)),
            (Some(bytes), 4) => Ok(Self::new(bytes, TagWidth::Four)),
            _ => Err(TagError {
                found: shorten(text),
            }),
        }
    }
}

/// A text that is no [`Tag`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{found:?} is not a tag; copy the two or four hexadecimal digits between `:` and `|` of the line"
)]
#[non_exhaustive]
pub struct TagError {
    /// What was given, shortened.
    pub found: String,
}

/// As much of a foreign text as a message has room for.
pub(crate) fn shorten(text: &str) -> String {
    const CHARS: usize = 40;
    match text.char_indices().nth(CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Tag, TagWidth, shorten};

    #[test]
    fn tags_of_known_lines() {
        for (line, two, four) in [
            ("a", "0c", "0cc1"),
            ("", "d4", "d41d"),
            ("a\r", "1a", "1acf"),
            (" a", "95", "9529"),
        ] {
            for (width, expected) in [(TagWidth::Two, two), (TagWidth::Four, four)] {
                let tag = Tag::of(line, width);
                assert_eq!(tag.to_string(), expected, "{line:?}");
                assert_eq!(&tag.digits()[..width.digits()], expected.as_bytes());
                assert_eq!(expected.to_uppercase().parse(), Ok(tag));
                assert!(tag.matches(line));
            }
        }
    }

    #[test]
    fn what_is_no_tag() {
        for text in [
            "", "a", "abc", "abcde", "+a", "-1", "0x", " ab", "gg", "é", "०१",
        ] {
            let error = text.parse::<Tag>().unwrap_err();
            assert_eq!(error.found, text);
        }
        let long = "z".repeat(1_000_000).parse::<Tag>().unwrap_err();
        assert_eq!(long.found, format!("{}...", "z".repeat(40)));
    }

    #[test]
    fn shortening_does_not_split_characters() {
        assert_eq!(shorten(&"é".repeat(40)), "é".repeat(40));
        assert_eq!(shorten(&"é".repeat(41)), "é".repeat(40) + "...");
    }
}
