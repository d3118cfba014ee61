//! Words that nobody can guess: what ends an answer must not be in it.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// The byte that begins whatever is not payload. Any would do; this one is rare,
/// so that looking for it is quick.
pub(crate) const MARK: u8 = 0x1e;

/// A new word of 32 hexadecimal digits, out of the operating system's chance.
pub(crate) fn secret() -> String {
    let half = |text: &[u8]| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write(text);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(b"one"), half(b"two"))
}

/// What a [`Scanner`] found in a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// How many of the bytes at hand come before it.
    pub(crate) payload: usize,
    /// How many bytes it takes.
    pub(crate) length: usize,
    /// The words after the secret.
    pub(crate) words: String,
}

/// Looks for what is said between the bytes of a stream: the mark, a secret, a
/// space, some words and a line end.
#[derive(Debug)]
pub(crate) struct Scanner {
    prefix: Vec<u8>,
}

/// Longest that is said at once. More is no answer of ours.
const WORDS_BYTES: usize = 200;

impl Scanner {
    pub(crate) fn new(secret: &str) -> Self {
        let mut prefix = vec![MARK];
        prefix.extend_from_slice(secret.as_bytes());
        prefix.push(b' ');
        Self { prefix }
    }

    /// The first thing said in `bytes`, of which those before `from` are known to
    /// hold none; or how many bytes are payload for sure.
    pub(crate) fn find(&self, bytes: &[u8], from: usize) -> Result<Said, usize> {
        let mut at = from;
        while let Some(rest) = bytes.get(at..)
            && let Some(found) = rest.iter().position(|byte| *byte == MARK)
        {
            at += found;
            let rest = bytes.get(at..).unwrap_or_default();
            let common = rest.len().min(self.prefix.len());
            if rest.get(..common) != self.prefix.get(..common) {
                at += 1;
                continue;
            }
            let words = rest.get(self.prefix.len()..).unwrap_or_default();
            let end = words
                .iter()
                .take(WORDS_BYTES)
                .position(|byte| *byte == b'\n');
            match end {
                Some(end) => {
                    let words = words.get(..end).unwrap_or_default();
                    return Ok(Said {
                        payload: at,
                        length: self.prefix.len() + end + 1,
                        words: String::from_utf8_lossy(words).into_owned(),
                    });
                }
                None if words.len() >= WORDS_BYTES => at += 1,
                // The rest is still to come.
                None => return Err(at),
            }
        }
        Err(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn secrets_differ() {
        let (one, two) = (secret(), secret());
        assert_ne!(one, two);
        assert_eq!(one.len(), 32);
        assert_ne!(one[..16], one[16..]);
    }

    #[test]
    fn what_is_said_is_found_wherever_it_is_cut() {
        let scanner = Scanner::new("abc");
        let bytes = b"pay\x1eload\x1eab\x1eabc end exit 3 0\nrest";
        for cut in 0..=bytes.len() {
            match scanner.find(&bytes[..cut], 0) {
                Ok(said) => {
                    assert!(cut >= bytes.len() - 4);
                    assert_eq!((said.payload, said.words.as_str()), (11, "end exit 3 0"));
                    assert_eq!(&bytes[said.payload + said.length..], b"rest");
                }
                Err(payload) => assert!(payload <= cut.min(11) && cut < bytes.len() - 4),
            }
        }
    }

    #[test]
    fn what_never_ends_is_payload() {
        let scanner = Scanner::new("abc");
        let endless = [b"\x1eabc ".as_slice(), &[b'x'; 1000]].concat();
        assert_eq!(scanner.find(&endless, 0), Err(endless.len()));
    }

    proptest! {
        #[test]
        fn pieces_add_up(payload in prop::collection::vec(prop::sample::select(b"\x1eabc x\n".to_vec()), 0..60), cut in 0usize..80) {
            let scanner = Scanner::new("abcabcab");
            let mut all = payload.clone();
            all.extend_from_slice(b"\x1eabcabcab ok\n");
            let cut = cut.min(all.len());
            let from = match scanner.find(&all[..cut], 0) {
                Ok(said) => said.payload,
                Err(sure) => sure,
            };
            let said = scanner.find(&all, from).unwrap();
            prop_assert_eq!(said.payload, payload.len());
        }
    }
}
