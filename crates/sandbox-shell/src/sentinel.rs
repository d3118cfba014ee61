//! Unguessable words that mark the end of an answer, which must not contain
//! them.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// The byte that begins everything that is not payload. Any byte would do. This
/// one is rare, so that searching for it is quick.
pub(crate) const MARK: u8 = 0x1e;

/// Returns a new word of 32 hexadecimal digits, from the operating system's
/// randomness.
pub(crate) fn random_word() -> String {
    let half = |text: &[u8]| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write(text);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(b"one"), half(b"two"))
}

/// A status line that a [`Scanner`] found in a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StatusLine {
    /// The number of bytes before it.
    pub(crate) payload: usize,
    /// Its length in bytes.
    pub(crate) length: usize,
    /// The words after the secret.
    pub(crate) words: String,
}

/// Finds status lines between the bytes of a stream: the mark, a secret, a
/// space, some words and a line end.
#[derive(Debug)]
pub(crate) struct Scanner {
    prefix: Vec<u8>,
}

/// The maximum length of the words. A longer line is not one of ours.
const WORDS_BYTES: usize = 200;

impl Scanner {
    pub(crate) fn new(secret: &str) -> Self {
        let mut prefix = vec![MARK];
        prefix.extend_from_slice(secret.as_bytes());
        prefix.push(b' ');
        Self { prefix }
    }

    /// Finds the first status line in `bytes`. The bytes before `from` are
    /// known to contain none. If there is none, returns the number of bytes
    /// that are certainly payload.
    pub(crate) fn find(&self, bytes: &[u8], from: usize) -> Result<StatusLine, usize> {
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
                    return Ok(StatusLine {
                        payload: at,
                        length: self.prefix.len() + end + 1,
                        words: String::from_utf8_lossy(words).into_owned(),
                    });
                }
                None if words.len() >= WORDS_BYTES => at += 1,
                // The rest has not arrived yet.
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
        let (one, two) = (random_word(), random_word());
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
