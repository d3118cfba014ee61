//! [`Edit`]: one change to a range of lines.

use thiserror::Error;

use crate::anchor::{Anchor, AnchorError};
use crate::tag::Tag;

/// One change to a text.
///
/// `content` is a list of lines. The line end of the last one may be omitted: `"a"` and `"a\n"`
/// are the same single line, `"\n"` is one blank line, and `""` is no line at all. Line ends are
/// converted to those of the surrounding text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Edit {
    /// Replaces a line, or an inclusive range of lines, with `content`. Without content, the
    /// lines are deleted.
    Replace {
        /// The line, or the first of the range.
        start: Anchor,
        /// The last line of the range.
        end: Option<RangeEnd>,
        /// The new lines.
        content: String,
    },
    /// Inserts `content` after a line.
    InsertAfter {
        /// The line.
        anchor: Anchor,
        /// The lines to insert; at least one.
        content: String,
    },
    /// Inserts `content` before a line.
    InsertBefore {
        /// The line.
        anchor: Anchor,
        /// The lines to insert; at least one.
        content: String,
    },
    /// Inserts `content` before the first line, whatever that is.
    InsertFirst {
        /// The lines to insert; at least one.
        content: String,
    },
    /// Deletes a line, or an inclusive range of lines.
    Delete {
        /// The line, or the first of the range.
        start: Anchor,
        /// The last line of the range.
        end: Option<RangeEnd>,
    },
}

/// The last line of a range.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RangeEnd {
    /// A number, counted from 1. The line is not checked for changes.
    Line(usize),
    /// A number and a tag.
    Anchor(Anchor),
}

impl From<usize> for RangeEnd {
    fn from(line: usize) -> Self {
        Self::Line(line)
    }
}

impl From<Anchor> for RangeEnd {
    fn from(anchor: Anchor) -> Self {
        Self::Anchor(anchor)
    }
}

/// An [`Edit`] in the form of a tool with separate fields.
///
/// ```
/// use hashline::{Edit, EditFields};
///
/// let fields = EditFields {
///     start_line: 2,
///     start_hash: "92",
///     new_content: "B",
///     ..EditFields::default()
/// };
/// assert!(matches!(Edit::try_from(fields)?, Edit::Replace { end: None, .. }));
/// # Ok::<(), hashline::FieldError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EditFields<'a> {
    /// The line, or the first of a range. 0 with `insert_after` inserts before the first line.
    pub start_line: usize,
    /// Its tag. `12:ab` and `12:ab|text` are accepted if the number equals `start_line`.
    pub start_hash: &'a str,
    /// The new lines; empty content deletes the range.
    pub new_content: &'a str,
    /// The last line of a range.
    pub end_line: Option<usize>,
    /// Its tag. An empty string means no tag.
    pub end_hash: Option<&'a str>,
    /// `true` to insert after the line instead of replacing it.
    pub insert_after: bool,
}

/// The reason why [`EditFields`] are not a valid [`Edit`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The tag of the first line is invalid.
    #[error("start_hash: {0}")]
    StartHash(AnchorError),
    /// The tag of the last line is invalid.
    #[error("end_hash: {0}")]
    EndHash(AnchorError),
    /// A line number and the number in its tag differ.
    #[error("the line is {line}, but its hash was copied from line {copied}; make them agree")]
    #[non_exhaustive]
    LinesDiffer {
        /// The number given as the line.
        line: usize,
        /// The number given with the tag.
        copied: usize,
    },
    /// The end has a tag but no line number.
    #[error("end_hash is given without end_line; add end_line, or leave out end_hash")]
    EndHashAlone,
    /// An insertion has the end of a range.
    #[error("end_line and end_hash cannot be combined with insert_after; leave them out")]
    EndWithInsert,
    /// Line 0 is to be replaced.
    #[error("start_line is 0, but lines are counted from 1; use 0 only with insert_after")]
    LineZero,
}

impl TryFrom<EditFields<'_>> for Edit {
    type Error = FieldError;

    fn try_from(fields: EditFields<'_>) -> Result<Self, FieldError> {
        let end_hash = fields.end_hash.filter(|hash| !hash.is_empty());
        let content = fields.new_content.to_owned();
        if fields.insert_after {
            if fields.end_line.is_some() || end_hash.is_some() {
                return Err(FieldError::EndWithInsert);
            }
            if fields.start_line == 0 {
                return Ok(Self::InsertFirst { content });
            }
        }
        if fields.start_line == 0 {
            return Err(FieldError::LineZero);
        }
        let start = field(fields.start_line, fields.start_hash, FieldError::StartHash)?;
        let end = match (fields.end_line, end_hash) {
            (None, None) => None,
            (None, Some(_)) => return Err(FieldError::EndHashAlone),
            (Some(line), None) => Some(RangeEnd::Line(line)),
            (Some(line), Some(hash)) => Some(field(line, hash, FieldError::EndHash)?.into()),
        };
        Ok(if fields.insert_after {
            Self::InsertAfter {
                anchor: start,
                content,
            }
        } else {
            Self::Replace {
                start,
                end,
                content,
            }
        })
    }
}

/// Creates an anchor for `line` from `hash`, which holds a tag or a whole anchor.
fn field(
    line: usize,
    hash: &str,
    wrap: fn(AnchorError) -> FieldError,
) -> Result<Anchor, FieldError> {
    if !hash.contains(':') {
        let tag: Tag = hash
            .trim()
            .parse()
            .map_err(|error| wrap(AnchorError::Tag(error)))?;
        return Ok(Anchor::new(line, tag));
    }
    let anchor: Anchor = hash.parse().map_err(wrap)?;
    if anchor.line == line {
        return Ok(anchor);
    }
    let copied = anchor.line;
    Err(FieldError::LinesDiffer { line, copied })
}

#[cfg(test)]
mod tests {
    use super::{Edit, EditFields, FieldError, RangeEnd};

    const FIELDS: EditFields<'static> = EditFields {
        start_line: 2,
        start_hash: "92",
        new_content: "x",
        end_line: None,
        end_hash: None,
        insert_after: false,
    };

    fn refused(fields: EditFields<'_>) -> FieldError {
        Edit::try_from(fields).unwrap_err()
    }

    #[test]
    fn fields_make_an_edit() {
        let Ok(Edit::Replace {
            start,
            end,
            content,
        }) = Edit::try_from(FIELDS)
        else {
            panic!("not a replacement");
        };
        assert_eq!(
            (start.to_string().as_str(), end, content.as_str()),
            ("2:92", None, "x")
        );
        let fields = EditFields {
            start_hash: "2:92|b",
            end_line: Some(4),
            end_hash: Some(""),
            ..FIELDS
        };
        let Ok(Edit::Replace { start, end, .. }) = Edit::try_from(fields) else {
            panic!("not a replacement");
        };
        assert_eq!(start.text.as_deref(), Some("b"));
        assert_eq!(end, Some(RangeEnd::Line(4)));
        let fields = EditFields {
            end_line: Some(4),
            end_hash: Some("0c"),
            ..FIELDS
        };
        let Ok(Edit::Replace {
            end: Some(RangeEnd::Anchor(end)),
            ..
        }) = Edit::try_from(fields)
        else {
            panic!("no end");
        };
        assert_eq!(end.to_string(), "4:0c");
    }

    #[test]
    fn fields_make_an_insertion() {
        let fields = EditFields {
            insert_after: true,
            end_hash: Some(""),
            ..FIELDS
        };
        assert!(matches!(
            Edit::try_from(fields),
            Ok(Edit::InsertAfter { .. })
        ));
        for start_hash in ["", "anything"] {
            let first = EditFields {
                start_line: 0,
                start_hash,
                ..fields
            };
            assert!(matches!(
                Edit::try_from(first),
                Ok(Edit::InsertFirst { .. })
            ));
        }
    }

    #[test]
    fn fields_that_contradict_one_another() {
        let insert = EditFields {
            insert_after: true,
            ..FIELDS
        };
        let end_line = Some(3);
        let end_hash = Some("0c");
        assert_eq!(
            refused(EditFields { end_line, ..insert }),
            FieldError::EndWithInsert
        );
        assert_eq!(
            refused(EditFields { end_hash, ..insert }),
            FieldError::EndWithInsert
        );
        assert_eq!(
            refused(EditFields { end_hash, ..FIELDS }),
            FieldError::EndHashAlone
        );
        assert_eq!(
            refused(EditFields {
                start_line: 0,
                ..FIELDS
            }),
            FieldError::LineZero
        );
        let start_hash = "3:92";
        assert_eq!(
            refused(EditFields {
                start_hash,
                ..FIELDS
            }),
            FieldError::LinesDiffer { line: 2, copied: 3 }
        );
        let start_hash = "b";
        let error = refused(EditFields {
            start_hash,
            ..FIELDS
        })
        .to_string();
        assert!(
            error.starts_with("start_hash: \"b\" is not a tag; "),
            "{error}"
        );
        let end_hash = Some("3:zz");
        let error = refused(EditFields {
            end_line,
            end_hash,
            ..FIELDS
        })
        .to_string();
        assert!(
            error.starts_with("end_hash: \"zz\" is not a tag; "),
            "{error}"
        );
    }
}
