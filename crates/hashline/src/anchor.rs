//! [`Anchor`]: a reference to a line by number and tag.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::tag::{Tag, TagError, shorten};

/// A reference to a line in the form it is shown: `12:ab`.
///
/// It is parsed from the text that a model copies, with or without the content of the line:
/// `12:ab`, `12:AB` and `12:ab|the text` all refer to line 12.
///
/// ```
/// use hashline::Anchor;
///
/// let anchor: Anchor = "2:92|b".parse()?;
/// assert_eq!(anchor.line, 2);
/// assert_eq!(anchor.text.as_deref(), Some("b"));
/// assert_eq!(anchor.to_string(), "2:92");
/// # Ok::<(), hashline::AnchorError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Anchor {
    /// The line's number, counted from 1.
    pub line: usize,
    /// The tag that the line was shown with.
    pub tag: Tag,
    /// The text that was copied with it.
    ///
    /// If the tag is the tag of this text, the text is known to be the whole line. It must then
    /// be equal to the line, and if the line has moved, the error says where to. Otherwise the
    /// text is ignored, because it may have been cut or retyped.
    pub text: Option<String>,
}

impl Anchor {
    /// Creates an anchor for the line with this number, counted from 1, and this tag.
    pub const fn new(line: usize, tag: Tag) -> Self {
        Self {
            line,
            tag,
            text: None,
        }
    }

    /// Returns the copied text if it is the whole line.
    pub(crate) fn full_text(&self) -> Option<&str> {
        self.text.as_deref().filter(|text| self.tag.matches(text))
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.tag)
    }
}

impl FromStr for Anchor {
    type Err = AnchorError;

    fn from_str(text: &str) -> Result<Self, AnchorError> {
        let one_line = text
            .strip_suffix('\n')
            .map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
        if one_line.contains('\n') {
            let found = shorten(one_line);
            return Err(AnchorError::SeveralLines { found });
        }
        let (head, text) = match one_line.split_once('|') {
            Some((head, text)) => (head, Some(text.to_owned())),
            None => (one_line, None),
        };
        let Some((line, tag)) = head.split_once(':') else {
            let found = shorten(one_line);
            return Err(AnchorError::Shape { found });
        };
        Ok(Self {
            line: parse_line(line.trim())?,
            tag: tag.trim().parse()?,
            text,
        })
    }
}

fn parse_line(text: &str) -> Result<usize, AnchorError> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| is_number && *number > 0);
    number.ok_or_else(|| AnchorError::Line {
        found: shorten(text),
    })
}

/// The reason why a text is not an [`Anchor`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnchorError {
    /// There is no colon.
    #[error(
        "{found:?} is not a line anchor; write the line's number and tag as shown, such as 12:ab"
    )]
    #[non_exhaustive]
    Shape {
        /// The given text, shortened.
        found: String,
    },
    /// The part before the colon is not a line number.
    #[error("{found:?} is not a line number; lines are counted from 1, copy the number before `:`")]
    #[non_exhaustive]
    Line {
        /// The given text, shortened.
        found: String,
    },
    /// The part after the colon is not a tag.
    #[error(transparent)]
    Tag(#[from] TagError),
    /// There is more than one line.
    #[error("{found:?} is more than one line; give one line, and the end of a range separately")]
    #[non_exhaustive]
    SeveralLines {
        /// The given text, shortened.
        found: String,
    },
}

#[cfg(test)]
mod tests {
    use super::{Anchor, AnchorError};

    fn parse(text: &str) -> Result<Anchor, AnchorError> {
        text.parse()
    }

    #[test]
    fn forms_a_model_may_write() {
        for (text, copied) in [
            ("12:0c", None),
            ("12:0C", None),
            ("  12:0c  ", None),
            ("12: 0c", None),
            ("012:0c", None),
            ("12:0c\r\n", None),
            ("12:0c|", Some("")),
            ("12:0c| a|b:c ", Some(" a|b:c ")),
            ("12:0c |a\n", Some("a")),
            ("\t12:0c|a\r", Some("a\r")),
        ] {
            let anchor = parse(text).unwrap();
            assert_eq!(anchor.to_string(), "12:0c", "{text:?}");
            assert_eq!(anchor.text.as_deref(), copied, "{text:?}");
        }
        assert_eq!(parse("3:0CC1|a").unwrap().to_string(), "3:0cc1");
    }

    #[test]
    fn what_is_no_anchor() {
        for text in ["", "12", "12|a:b", "ab"] {
            assert!(
                matches!(parse(text), Err(AnchorError::Shape { .. })),
                "{text:?}"
            );
        }
        let huge = format!("{}:ab", "9".repeat(30));
        for text in [
            ":ab", "0:ab", "+1:ab", "-1:ab", "1.0:ab", "L1:ab", "１:ab", &huge,
        ] {
            assert!(
                matches!(parse(text), Err(AnchorError::Line { .. })),
                "{text:?}"
            );
        }
        for text in ["1:", "1:|a", "1:a", "1:abc", "1:xy", "1:ab:cd", "1:ab text"] {
            assert!(matches!(parse(text), Err(AnchorError::Tag(_))), "{text:?}");
        }
        for text in ["1:ab\n2:cd", "1:ab|x\n\n", "\n1:ab"] {
            let is_refused = matches!(parse(text), Err(AnchorError::SeveralLines { .. }));
            assert!(is_refused, "{text:?}");
        }
    }

    #[test]
    fn a_copied_text_counts_only_if_it_is_whole() {
        assert_eq!(parse("1:0c|a").unwrap().full_text(), Some("a"));
        assert_eq!(parse("1:0cc1|a").unwrap().full_text(), Some("a"));
        assert_eq!(parse("1:0c|a ").unwrap().full_text(), None);
        assert_eq!(parse("1:0c").unwrap().full_text(), None);
    }
}
