//! [`Tag`]: a few digits that reveal that a line has changed.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::md5;

/// Lines of text up to which two digits are safe enough; see [`TagWidth::recommended`].
const TWO_DIGIT_LINES: usize = 1_024;

/// The number of digits of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum TagWidth {
    /// Two digits, the common format. A changed line keeps its tag once in 256 times.
    #[default]
    Two,
    /// Four digits. A changed line keeps its tag once in 65,536 times.
    Four,
}

impl TagWidth {
    /// Returns the number of digits.
    pub const fn digits(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// Returns the width to use for a text of `lines` lines, if the reader knows both.
    ///
    /// Lines of one text may share a tag, since an anchor also has the line number. The
    /// question is whether a line that changed, or another that moved into its place, keeps the
    /// tag. If a whole text moves by one line, `lines / 256` of its lines seem unmoved with two
    /// digits: four lines of the 1,024 up to which two digits are recommended. Four digits cost
    /// two characters per line, which is little compared to the cost of a wrong edit.
    ///
    /// ```
    /// use hashline::TagWidth;
    ///
    /// assert_eq!(TagWidth::recommended(300), TagWidth::Two);
    /// assert_eq!(TagWidth::recommended(20_000), TagWidth::Four);
    /// ```
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
/// The whole line is hashed, without its line end. A tag is parsed from two or four digits in
/// upper or lower case, and shown in lower case.
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
    /// Only the upper half is used if the width is two.
    bytes: u16,
    width: TagWidth,
}

impl Tag {
    /// Computes the tag of `line`, which must not include its line end.
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

    /// Returns the number of digits of this tag.
    pub const fn width(self) -> TagWidth {
        self.width
    }

    /// Whether this tag equals that of `line` in all of its digits.
    pub fn matches(self, line: &str) -> bool {
        self == Self::of(line, self.width)
    }

    /// Returns the digits of all four places; the last two are valid only if the width is four.
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

/// The error for a text that is not a [`Tag`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{found:?} is not a tag; copy the two or four hexadecimal digits between `:` and `|` of the line"
)]
#[non_exhaustive]
pub struct TagError {
    /// The given text, shortened.
    pub found: String,
}

/// Shortens foreign text for a message.
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
