//! Parses the output of the machine's `stat`, which is not trusted.

use std::time::{Duration, SystemTime};

use backend_core::ops::{Entry, FileKind};
use backend_core::{Result, VPath};

use crate::failure::broken;

/// The description of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) kind: FileKind,
    pub(crate) size: u64,
    pub(crate) modified: Option<SystemTime>,
    pub(crate) mode: u32,
    /// The name, relative to the listed directory.
    pub(crate) name: &'a [u8],
}

impl Record<'_> {
    /// Converts it to an entry at `path`.
    pub(crate) fn entry(&self, path: VPath) -> Entry {
        let entry = match self.kind {
            FileKind::File => Entry::file(path, self.size).with_modified(self.modified),
            FileKind::Link => Entry::of_kind(path, FileKind::Link).with_link(true),
            kind => Entry::of_kind(path, kind),
        };
        entry.with_mode(Some(self.mode))
    }
}

/// Parses the records in an answer, one after the other: `//`, the mode in
/// hexadecimal digits, the size, the seconds, the time in full, the name and a
/// line end. No name has two slashes in a row.
///
/// # Errors
///
/// `Unavailable` if a record is malformed. With `cut`, the last one is left
/// out.
pub(crate) fn records(answer: &[u8], cut: bool) -> Result<Vec<Record<'_>>> {
    let mut all = Vec::new();
    let mut rest = match answer {
        [] => return Ok(all),
        [b'/', b'/', rest @ ..] => rest,
        [b'/'] if cut => return Ok(all),
        _ => return Err(broken("invalid file records")),
    };
    loop {
        let end = rest.windows(2).position(|pair| pair == b"//");
        let (one, others) = match end {
            Some(end) => rest.split_at_checked(end).unwrap_or((rest, &[])),
            None => (rest, &[][..]),
        };
        let is_last = end.is_none();
        match record(one) {
            // A name may continue after a line end.
            _ if is_last && cut => {}
            Some(record) => all.push(record),
            None => return Err(broken("invalid file records")),
        }
        match others.get(2..) {
            Some(others) if !is_last => rest = others,
            _ => return Ok(all),
        }
    }
}

fn record(text: &[u8]) -> Option<Record<'_>> {
    let text = text.strip_suffix(b"\n")?;
    let mut words = text.splitn(6, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let mode = u32::from_str_radix(word()?, 16).ok()?;
    let size = word()?.parse().ok()?;
    let seconds: i64 = word()?.parse().ok()?;
    let _date = word()?;
    let time = word()?;
    let rest = words.next()?;
    // Some tools print the time zone, some do not.
    let name = match rest {
        [b'.', b'/', name @ ..] => name,
        rest => {
            let zone = rest.iter().position(|byte| *byte == b' ')?;
            rest.get(zone + 1..)?.strip_prefix(b"./")?
        }
    };
    Some(Record {
        kind: match mode & 0xf000 {
            0x8000 => FileKind::File,
            0x4000 => FileKind::Directory,
            0xa000 => FileKind::Link,
            _ => FileKind::Other,
        },
        size,
        modified: moment(seconds, time),
        mode: mode & 0o7777,
        name,
    })
}

/// Returns the time at this number of seconds since 1970, with the fraction of
/// `time`.
fn moment(seconds: i64, time: &str) -> Option<SystemTime> {
    let nanos = match time.split_once('.') {
        Some((_, digits)) if digits.len() == 9 => digits.parse().ok()?,
        _ => 0,
    };
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let whole = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    whole?.checked_add(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ANSWER: &[u8] = b"//81a4 5 1577934245 2020-01-02 03:04:05.123456789 +0000 ./a\nb \xff\n\
        //41ed 4096 -5 1969-12-31 23:59:55.500000000 ./d/e f\n";

    #[test]
    fn files_are_described() {
        let all = records(ANSWER, false).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(
            (all[0].kind, all[0].size, all[0].mode),
            (FileKind::File, 5, 0o644)
        );
        assert_eq!(all[0].name, b"a\nb \xff");
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_577_934_245, 123_456_789);
        assert_eq!(all[0].modified, Some(time));
        assert_eq!(
            (all[1].kind, all[1].name),
            (FileKind::Directory, &b"d/e f"[..])
        );
        let time = SystemTime::UNIX_EPOCH - Duration::from_millis(4_500);
        assert_eq!(all[1].modified, Some(time));
        assert!(records(b"", false).unwrap().is_empty());
    }

    #[test]
    fn half_a_record_is_none() {
        let cut = &ANSWER[..ANSWER.len() - 3];
        assert_eq!(records(cut, true).unwrap().len(), 1);
        assert!(records(cut, false).is_err());
        assert!(records(b"rubbish", true).is_err());
        assert!(records(b"//81a4 5 x\n//81a4", true).is_err());
    }

    proptest! {
        #[test]
        fn rubbish_is_refused_and_harms_nobody(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..100) {
            let _ = records(&bytes, true);
            let mut answer = ANSWER.to_vec();
            let at = at.min(answer.len());
            answer.splice(at..at, bytes);
            let _ = records(&answer, false);
        }
    }
}
