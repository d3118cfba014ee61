//! [`TextWindow`] as its text, from which its lines are found again on arrival: a
//! malicious sender could otherwise cause a slice out of bounds.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use crate::text::decode::Encoding;
use crate::text::window::{Cut, TextWindow};

/// Text, number of lines, cut lines, offset, whether more follow, total number of
/// lines, encoding.
type Parts<T> = (
    T,
    usize,
    Vec<(usize, u64)>,
    u64,
    bool,
    Option<u64>,
    Encoding,
);

impl Serialize for TextWindow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cuts = self.cuts.iter().map(|cut| (cut.line, cut.bytes)).collect();
        let parts: Parts<&str> = (
            &self.text,
            self.ends.len(),
            cuts,
            self.offset,
            self.more,
            self.total_lines,
            self.encoding,
        );
        parts.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TextWindow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (text, lines, cuts, offset, more, total, encoding) =
            Parts::<String>::deserialize(deserializer)?;
        let mut ends: Vec<_> = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
        // No lines and one empty line have the same text.
        if lines > 0 || !text.is_empty() {
            ends.push(text.len());
        }
        if ends.len() != lines {
            return Err(D::Error::custom(
                "the number of lines does not match the text",
            ));
        }
        let ordered = cuts.is_sorted_by(|one, two| one.0 < two.0);
        if !ordered || cuts.last().is_some_and(|(line, _)| *line >= lines) {
            return Err(D::Error::custom("a cut line is missing"));
        }
        // Half of the range is far more than any file has, and leaves room to count on from there.
        let end = offset.checked_add(lines as u64);
        let end = end.filter(|end| *end <= u64::MAX / 2);
        if end.is_none_or(|end| total.is_some_and(|total| total < end)) {
            return Err(D::Error::custom("invalid line numbers"));
        }
        let cut = |(line, bytes)| Cut { line, bytes };
        Ok(Self {
            text,
            ends,
            cuts: cuts.into_iter().map(cut).collect(),
            offset,
            more,
            total_lines: total,
            encoding,
        })
    }
}
