//! The options of a view: its lines and their format.

use crate::setters::setters;
use crate::tag::TagWidth;

/// The format of a line.
///
/// ```
/// use hashline::{Format, TagWidth};
///
/// let format = Format::default().tag_width(TagWidth::Four);
/// assert_eq!(format.max_line_bytes, 2_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Format {
    /// Number of digits of the tags. The default is two.
    pub tag_width: TagWidth,
    /// Number of bytes shown of a line, 2,000 by default. A longer line is cut between
    /// characters and marked; the tag is that of the whole line.
    pub max_line_bytes: usize,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            tag_width: TagWidth::Two,
            max_line_bytes: 2_000,
        }
    }
}

impl Format {
    setters! {
        /// Sets the number of digits of the tags.
        tag_width(width: TagWidth),
        /// Sets the number of bytes shown of a line.
        max_line_bytes(bytes: usize),
    }
}

/// The lines to show, and their format.
///
/// ```
/// use hashline::ViewOptions;
///
/// let second_page = ViewOptions::default().offset(2_000);
/// assert_eq!(second_page.limit, 2_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ViewOptions {
    /// Number of lines to skip. The default is none.
    pub offset: usize,
    /// Most lines to show; at least 1. The default is 2,000.
    pub limit: usize,
    /// Most bytes of lines to show. The end of a line counts as one. The view ends before the
    /// line that would exceed this, but always holds one line. The default is 1 MiB.
    pub max_bytes: usize,
    /// The format of a line.
    pub format: Format,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self {
            offset: 0,
            limit: 2_000,
            max_bytes: 1 << 20,
            format: Format::default(),
        }
    }
}

impl ViewOptions {
    /// Returns options for all lines, each of them whole.
    pub fn everything() -> Self {
        Self {
            offset: 0,
            limit: usize::MAX,
            max_bytes: usize::MAX,
            format: Format::default().max_line_bytes(usize::MAX),
        }
    }

    setters! {
        /// Sets the number of lines to skip.
        offset(lines: usize),
        /// Sets the most lines to show.
        limit(lines: usize),
        /// Sets the most bytes of lines to show.
        max_bytes(bytes: usize),
        /// Sets the format of a line.
        format(format: Format),
    }
}
