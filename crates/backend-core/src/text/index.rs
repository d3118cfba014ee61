//! [`LineIndex`]: an index of the lines of a file in memory, so that a window deep inside it
//! does not require a scan from the beginning each time.
//!
//! The index holds one number per block of [`LineIndex::BLOCK_BYTES`]. It is not used for
//! UTF-16 or binary files; a window of such a file is cut without it.

use crate::ops::TextOptions;
use crate::text::collect::{Collector, count_newlines};
use crate::text::decode::{detect, is_text};
use crate::text::scan::window;
use crate::text::window::{TextWindow, WindowError};

/// The number of line ends before each block of a file.
///
/// ```
/// use backend_core::ops::TextOptions;
/// use backend_core::text::LineIndex;
///
/// let content = "a line\n".repeat(100_000);
/// let index = LineIndex::new(content.as_bytes());
/// let window = index.window(content.as_bytes(), TextOptions::default().offset(99_999))?;
/// assert_eq!(window.lines().next().map(|line| line.number), Some(100_000));
/// # Ok::<(), backend_core::text::WindowError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineIndex {
    before: Vec<u64>,
    newlines: u64,
}

impl LineIndex {
    /// The size of a block.
    pub const BLOCK_BYTES: usize = 64 * 1024;

    /// Creates the index of a whole file.
    pub fn new(content: &[u8]) -> Self {
        let mut index = Self::default();
        for block in content.chunks(Self::BLOCK_BYTES) {
            index.push(block);
        }
        index
    }

    /// Adds the next block, which has [`BLOCK_BYTES`](Self::BLOCK_BYTES) bytes; only the last
    /// one may be shorter.
    pub fn push(&mut self, block: &[u8]) {
        self.before.push(self.newlines);
        self.newlines += count_newlines(block);
    }

    /// Cuts a window out of `content`, the file that was indexed, as [`window`] does.
    pub fn window(&self, content: &[u8], request: TextOptions) -> Result<TextWindow, WindowError> {
        let encoding = detect(content);
        // The last block that starts before the requested line: the window begins in it or
        // after it.
        let block = self.before.partition_point(|lines| *lines < request.offset);
        let Some(block) = block.checked_sub(1).filter(|_| !encoding.is_utf16()) else {
            return window(content, request);
        };
        if request.limit == 0 {
            return Err(WindowError::ZeroLimit);
        }
        if !is_text(content) {
            return Err(WindowError::NotText);
        }
        let start = (block * Self::BLOCK_BYTES).max(encoding.mark_len());
        let uncounted = request.count_total(false);
        let mut collector = Collector::resume(uncounted, self.before[block]);
        collector.feed(content.get(start..).unwrap_or_default());
        let mut window = collector.end(encoding)?;
        if request.count_total {
            let has_open_line = content.last() != Some(&b'\n');
            window.total_lines = Some(self.newlines + u64::from(has_open_line));
        }
        Ok(window)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn agrees_with_the_walk_at_every_block() {
        let line = format!("{}\r\n", "é".repeat(1_000));
        let mut content = line.repeat(200).into_bytes();
        content.extend_from_slice(b"last \xff");
        let index = LineIndex::new(&content);
        for offset in (0..210).chain([u64::MAX]) {
            for count_total in [false, true] {
                let request = TextOptions {
                    offset,
                    limit: 2,
                    count_total,
                    ..TextOptions::default()
                };
                let walked = window(&content, request);
                assert_eq!(index.window(&content, request), walked, "{offset}");
            }
        }
    }

    #[test]
    fn marks_binaries_and_bad_requests_are_as_without_it() {
        let utf16 = "\u{feff}a\nb\n".encode_utf16().flat_map(u16::to_le_bytes);
        let utf16: Vec<u8> = utf16.collect();
        let contents = [
            &b""[..],
            b"\xef\xbb\xbf",
            b"\xef\xbb\xbfa\nb",
            b"\0\xff\n\n",
            &utf16,
        ];
        for content in contents {
            let index = LineIndex::new(content);
            for (offset, limit) in [(0, 1), (1, 1), (2, 1), (1, 0)] {
                let request = TextOptions {
                    offset,
                    limit,
                    ..TextOptions::default()
                };
                assert_eq!(index.window(content, request), window(content, request));
            }
        }
    }

    proptest! {
        #[test]
        fn equals_the_window_without_it(
            line in "[a-z\\r]{0,40}",
            lines in 0usize..12_000,
            tail in "[a-z]{0,3}",
            offset in 0u64..12_100,
            count_total: bool,
        ) {
            let content = format!("{}{tail}", format!("{line}\n").repeat(lines));
            let request = TextOptions { offset, limit: 3, count_total, ..TextOptions::default() };
            let index = LineIndex::new(content.as_bytes());
            prop_assert_eq!(index.window(content.as_bytes(), request), window(content.as_bytes(), request));
        }
    }
}
