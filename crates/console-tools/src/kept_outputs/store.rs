//! [`OutputStore`]: the kept outputs by their paths.

use std::collections::BTreeMap;
use std::sync::Mutex;

use backend_core::ops::Entry;
use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Result, VPath};
use bytes::Bytes;

use crate::options::Limits;

/// The directory of kept outputs.
pub const OUTPUTS: &str = "/.agentbox/outputs";

const SUFFIX: &str = ".txt";

#[derive(Debug, Default)]
pub(crate) struct OutputStore(Mutex<StoreState>);

#[derive(Debug, Default)]
struct StoreState {
    /// The number of the last output.
    last: u64,
    /// Outputs by number, oldest first.
    outputs: BTreeMap<u64, Bytes>,
    bytes: usize,
}

impl OutputStore {
    /// Keeps an output and returns its path. The oldest outputs are dropped to make
    /// room. Returns `None` if the output alone exceeds the limit.
    pub(crate) fn keep(&self, text: String, limits: &Limits) -> Option<VPath> {
        if text.len() > limits.spill_total_bytes {
            return None;
        }
        let mut kept = lock(&self.0);
        let number = kept.last + 1;
        let path = output_path(number)?;
        kept.last = number;
        kept.bytes += text.len();
        kept.outputs.insert(number, text.into());
        while kept.bytes > limits.spill_total_bytes {
            let Some((_, oldest)) = kept.outputs.pop_first() else {
                break;
            };
            kept.bytes -= oldest.len();
        }
        Some(path)
    }

    pub(crate) fn clear(&self) {
        let mut kept = lock(&self.0);
        kept.outputs.clear();
        kept.bytes = 0;
    }

    /// Lists the kept outputs, oldest first.
    pub(super) fn list(&self) -> Vec<Entry> {
        let kept = lock(&self.0);
        let file = |(number, text): (&u64, &Bytes)| {
            Some(Entry::file(output_path(*number)?, text.len() as u64))
        };
        kept.outputs.iter().filter_map(file).collect()
    }

    /// Returns the output at a path, or `None` for the directory itself.
    pub(super) fn find(&self, path: &VPath) -> Result<Option<Bytes>> {
        let name = match path_in_outputs(path) {
            Some("") => return Ok(None),
            Some(name) => name,
            None => return Err(Error::not_found()),
        };
        let (name, beneath) = name.split_once('/').unwrap_or((name, ""));
        let number = name.strip_suffix(SUFFIX).and_then(|digits| {
            let number: u64 = digits.parse().ok()?;
            // Only the canonical spelling is accepted.
            (number.to_string() == digits).then_some(number)
        });
        let number = number.ok_or_else(Error::not_found)?;
        let kept = lock(&self.0);
        match kept.outputs.get(&number) {
            Some(_) if !beneath.is_empty() => Err(Error::not_a_directory()),
            Some(text) => Ok(Some(text.clone())),
            None if (1..=kept.last).contains(&number) => Err(Error::new(
                ErrorKind::NotFound,
                "this output was dropped to make room for newer ones; run the command again",
            )),
            None => Err(Error::not_found()),
        }
    }
}

fn output_path(number: u64) -> Option<VPath> {
    VPath::parse(&format!("{OUTPUTS}/{number}{SUFFIX}")).ok()
}

/// Returns `true` for a path in the directory of kept outputs.
pub(crate) fn is_kept(path: &VPath) -> bool {
    path_in_outputs(path).is_some()
}

/// Returns the part of a path beneath the directory, which is `""` for itself.
pub(super) fn path_in_outputs(path: &VPath) -> Option<&str> {
    match path.as_str().strip_prefix(OUTPUTS)? {
        "" => Some(""),
        beneath => beneath.strip_prefix('/'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(total: usize) -> Limits {
        Limits {
            spill_total_bytes: total,
            ..Limits::default()
        }
    }

    fn found(outputs: &OutputStore, name: &str) -> std::result::Result<String, Error> {
        let path = VPath::parse(OUTPUTS).unwrap().join(name).unwrap();
        match outputs.find(&path)? {
            None => Ok("directory".into()),
            Some(text) => Ok(String::from_utf8(text.into()).unwrap()),
        }
    }

    #[test]
    fn the_oldest_make_room_and_are_missed_by_name() {
        let outputs = OutputStore::default();
        for text in ["first", "second", "third"] {
            outputs.keep(text.into(), &limits(11)).unwrap();
        }
        assert_eq!(found(&outputs, "2.txt").unwrap(), "second");
        assert_eq!(found(&outputs, "3.txt").unwrap(), "third");
        let dropped = found(&outputs, "1.txt").unwrap_err();
        assert!(dropped.is_not_found());
        assert!(dropped.message().contains("dropped"), "{dropped}");
        assert_eq!(outputs.list().len(), 2);
        assert_eq!(lock(&outputs.0).bytes, 11);
        // An output that never fits evicts no other.
        assert_eq!(outputs.keep("x".repeat(12), &limits(11)), None);
        assert_eq!(outputs.list().len(), 2);
    }

    #[test]
    fn only_names_that_were_given_are_found() {
        let outputs = OutputStore::default();
        outputs.keep("text".into(), &limits(100)).unwrap();
        assert_eq!(found(&outputs, "").unwrap(), "directory");
        let names = "0.txt 2.txt 01.txt +1.txt 1 1.txt.txt x 9999999999999999999999.txt";
        for name in names.split(' ') {
            let missing = found(&outputs, name).unwrap_err();
            assert!(missing.is_not_found(), "{name}");
            assert!(!missing.message().contains("dropped"), "{name}");
        }
        let beneath = found(&outputs, "1.txt/x").unwrap_err();
        assert_eq!(beneath.kind(), ErrorKind::NotADirectory);
    }

    #[test]
    fn a_name_that_only_begins_alike_is_elsewhere() {
        let inside = |path| path_in_outputs(&VPath::parse(path).unwrap()).map(str::to_owned);
        assert_eq!(inside("/.agentbox/outputs"), Some(String::new()));
        assert_eq!(inside("/.agentbox/outputs/a/b"), Some("a/b".into()));
        for path in "/.agentbox/outputs2 /.agentbox / /x/.agentbox/outputs".split(' ') {
            assert_eq!(inside(path), None, "{path}");
        }
    }
}
