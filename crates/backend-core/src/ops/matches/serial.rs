//! [`FileMatches`] as the text of its lines and their lengths. Both are checked
//! again on arrival: a malicious sender could cause a slice out of bounds.

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use crate::ops::{FileMatches, LineKind};
use crate::path::VPath;

/// The path, the text of all lines, the number, length and kind of each line, and
/// the bytes cut off each cut line.
type Parts<T, L, C> = (VPath, T, Vec<L>, C);
type Line = (u64, u32, LineKind);

impl Serialize for FileMatches {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Vec::with_capacity(self.shown_bytes());
        self.lines()
            .for_each(|line| text.extend_from_slice(line.bytes));
        let line = |line: &super::RawLine| (line.number, line.length, line.kind);
        let lines = self.lines.iter().map(line).collect();
        let parts: Parts<Bytes, Line, _> = (self.path.clone(), text.into(), lines, &self.cuts);
        parts.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FileMatches {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (path, text, lines, cuts) =
            Parts::<Bytes, Line, Vec<(usize, u64)>>::deserialize(deserializer)?;
        let mut file = Self::new(path, text);
        let (mut start, mut above) = (0_usize, 0);
        for (number, length, kind) in lines {
            // Half of the range is far more than any file has, and leaves room to
            // count on from there.
            if number <= above || number > u64::MAX / 2 {
                return Err(D::Error::custom("the lines are not in order"));
            }
            above = number;
            file.push(number, kind, start, length, 0);
            start = start
                .checked_add(length as usize)
                .filter(|end| *end <= file.text.len())
                .ok_or_else(|| D::Error::custom("a line lies outside the text"))?;
        }
        if start != file.text.len() {
            return Err(D::Error::custom("the text continues after its last line"));
        }
        let ordered = cuts.is_sorted_by(|one, two| one.0 < two.0);
        if !ordered
            || cuts
                .last()
                .is_some_and(|(line, _)| *line >= file.lines.len())
        {
            return Err(D::Error::custom("a cut line is missing"));
        }
        file.cuts = cuts;
        Ok(file)
    }
}
