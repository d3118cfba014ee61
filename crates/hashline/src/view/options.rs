//! Which lines a view shows, and how.

use crate::tag::TagWidth;

/// How a line is shown.
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
    /// How many digits tags are shown with. The default is two.
    pub tag_width: TagWidth,
    /// How many bytes of a line are shown, 2,000 by default. What is longer is cut between
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
    /// Sets how many digits tags are shown with.
    #[must_use]
    pub const fn tag_width(mut self, width: TagWidth) -> Self {
        self.tag_width = width;
        self
    }

    /// Sets how many bytes of a line are shown.
    #[must_use]
    pub const fn max_line_bytes(mut self, bytes: usize) -> Self {
        self.max_line_bytes = bytes;
        self
    }
}

/// Which lines to show, and how.
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
    /// How many lines to pass over. The default is none.
    pub offset: usize,
    /// The most lines to show; at least 1. The default is 2,000.
    pub limit: usize,
    /// The most bytes of lines to show, each counted with one for its end. The view ends before
    /// the line that would pass it, but always holds one line. The default is 1 MiB.
    pub max_bytes: usize,
    /// How a line is shown.
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
    /// All lines, each of them whole.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            offset: 0,
            limit: usize::MAX,
            max_bytes: usize::MAX,
            format: Format::default().max_line_bytes(usize::MAX),
        }
    }

    /// Sets how many lines to pass over.
    #[must_use]
    pub const fn offset(mut self, lines: usize) -> Self {
        self.offset = lines;
        self
    }

    /// Sets the most lines to show.
    #[must_use]
    pub const fn limit(mut self, lines: usize) -> Self {
        self.limit = lines;
        self
    }

    /// Sets the most bytes of lines to show.
    #[must_use]
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets how a line is shown.
    #[must_use]
    pub const fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }
}
