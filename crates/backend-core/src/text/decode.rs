//! Detects the encoding of a file from its first bytes.
//!
//! This module owns the byte-order marks, the two notions of "binary" and the two streaming
//! decoders. Invariants: at most the first [`SNIFF_BYTES`] bytes decide, so a caller that has
//! that many gets the same answer as for the whole file. The output of a decoder does not depend
//! on how its input was split into pieces.

use std::fmt;

use encoding_rs::{CoderResult, Decoder, UTF_16BE, UTF_16LE};

pub use crate::limits::SNIFF_BYTES;

/// Bytes of UTF-8 that the UTF-16 decoder emits at a time.
const DECODE_BUFFER: usize = 16 * 1024;

/// The replacement for bytes that are not a character.
const REPLACEMENT: &str = "\u{FFFD}";

/// The character encoding of a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Encoding {
    /// UTF-8 without a byte-order mark; also used for every file without a mark.
    Utf8,
    /// UTF-8 after the mark `EF BB BF`.
    Utf8Bom,
    /// UTF-16, low byte first, after the mark `FF FE`.
    Utf16Le,
    /// UTF-16, high byte first, after the mark `FE FF`.
    Utf16Be,
}

impl Encoding {
    /// Returns the length of the byte-order mark at the start of the file.
    pub const fn mark_len(self) -> usize {
        match self {
            Self::Utf8 => 0,
            Self::Utf8Bom => 3,
            Self::Utf16Le | Self::Utf16Be => 2,
        }
    }

    /// Whether this is one of the two UTF-16 encodings.
    pub const fn is_utf16(self) -> bool {
        matches!(self, Self::Utf16Le | Self::Utf16Be)
    }
}

/// Detects the encoding from the byte-order mark at the start of `prefix`.
///
/// `prefix` may be the whole file or any part of it from its first byte. An incomplete mark does
/// not count as a mark.
///
/// ```
/// use backend_core::text::{Encoding, detect};
///
/// assert_eq!(detect(b"\xEF\xBB\xBFhello"), Encoding::Utf8Bom);
/// assert_eq!(detect(b"\xFF\xFEh\0"), Encoding::Utf16Le);
/// assert_eq!(detect(b"hello"), Encoding::Utf8);
/// ```
pub fn detect(prefix: &[u8]) -> Encoding {
    match prefix {
        [0xEF, 0xBB, 0xBF, ..] => Encoding::Utf8Bom,
        [0xFF, 0xFE, ..] => Encoding::Utf16Le,
        [0xFE, 0xFF, ..] => Encoding::Utf16Be,
        _ => Encoding::Utf8,
    }
}

/// Whether a content search should skip the file that starts with `prefix`.
///
/// `true` if the first [`SNIFF_BYTES`] bytes hold a NUL without a UTF-16 mark to explain it. This
/// is stricter than [`is_text`], because a search meets many files that were not requested by name.
///
/// ```
/// use backend_core::text::is_binary_for_search;
///
/// assert!(is_binary_for_search(b"\x7FELF\0\0"));
/// assert!(!is_binary_for_search(b"\xFF\xFEh\0i\0"));
/// ```
pub fn is_binary_for_search(prefix: &[u8]) -> bool {
    !detect(prefix).is_utf16() && memchr::memchr(0, sample(prefix)).is_some()
}

/// Whether the file that starts with `prefix` can be shown as text.
///
/// `false` if the first [`SNIFF_BYTES`] bytes hold a NUL, carry no UTF-16 mark and are not valid
/// UTF-8. Either flaw alone is accepted: a log with a stray NUL and a file in Latin-1 are still
/// worth reading. A character cut in two by the end of a full sample does not count as invalid.
///
/// ```
/// use backend_core::text::is_text;
///
/// assert!(is_text(b"caf\xE9"));
/// assert!(is_text(b"a\0b"));
/// assert!(!is_text(b"\x89PNG\0"));
/// ```
pub fn is_text(prefix: &[u8]) -> bool {
    if !is_binary_for_search(prefix) {
        return true;
    }
    let sample = sample(prefix);
    match std::str::from_utf8(sample) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && sample.len() == SNIFF_BYTES,
    }
}

/// Returns the part of `prefix` that decides.
fn sample(prefix: &[u8]) -> &[u8] {
    prefix.get(..SNIFF_BYTES).unwrap_or(prefix)
}

/// Decodes UTF-16 that arrives in pieces of any size into pieces of UTF-8.
pub(super) struct Utf16Stream {
    decoder: Decoder,
    buffer: Box<[u8]>,
}

impl fmt::Debug for Utf16Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoding = self.decoder.encoding().name();
        f.debug_struct("Utf16Stream")
            .field("encoding", &encoding)
            .finish_non_exhaustive()
    }
}

impl Utf16Stream {
    /// Creates a decoder for the bytes after the mark of `encoding`; `None` for the UTF-8
    /// encodings.
    pub(super) fn new(encoding: Encoding) -> Option<Self> {
        let from = match encoding {
            Encoding::Utf8 | Encoding::Utf8Bom => return None,
            Encoding::Utf16Le => UTF_16LE,
            Encoding::Utf16Be => UTF_16BE,
        };
        Some(Self {
            decoder: from.new_decoder_without_bom_handling(),
            buffer: vec![0; DECODE_BUFFER].into_boxed_slice(),
        })
    }

    /// Decodes `bytes` and passes each piece to `sink`, which returns `true` if it wants more.
    ///
    /// Unpaired surrogates become U+FFFD, and so does an odd byte at the end (`last`).
    pub(super) fn decode(
        &mut self,
        mut bytes: &[u8],
        last: bool,
        mut sink: impl FnMut(&[u8]) -> bool,
    ) {
        loop {
            let (result, read, written, _) =
                self.decoder.decode_to_utf8(bytes, &mut self.buffer, last);
            let wants_more = sink(self.buffer.get(..written).unwrap_or_default());
            bytes = bytes.get(read..).unwrap_or_default();
            if !wants_more || result == CoderResult::InputEmpty {
                return;
            }
        }
    }
}

/// Decodes bytes that arrive in pieces of any size, with U+FFFD where they are not UTF-8.
///
/// The pieces up to [`LossyStream::finish`] together give what [`String::from_utf8_lossy`] would
/// give for all bytes at once.
#[derive(Debug, Default)]
pub(super) struct LossyStream {
    /// The start of a character whose other bytes have not arrived; at most three bytes.
    held: Vec<u8>,
}

impl LossyStream {
    /// Emits the text of `bytes`, except for an incomplete character at the end.
    pub(super) fn push(&mut self, bytes: &[u8], mut emit: impl FnMut(&str)) {
        let bytes = self.complete(bytes, &mut emit);
        // Validating in one go is many times faster than going from error to error.
        if let Ok(text) = std::str::from_utf8(bytes) {
            return emit(text);
        }
        let mut left = bytes.len();
        for chunk in bytes.utf8_chunks() {
            let flaw = chunk.invalid();
            left -= chunk.valid().len() + flaw.len();
            emit(chunk.valid());
            if left == 0 && is_incomplete(flaw) {
                self.held.extend_from_slice(flaw);
            } else if !flaw.is_empty() {
                emit(REPLACEMENT);
            }
        }
    }

    /// Ends the input: an incomplete character stays incomplete.
    pub(super) fn finish(&mut self, mut emit: impl FnMut(&str)) {
        if !self.held.is_empty() {
            self.held.clear();
            emit(REPLACEMENT);
        }
    }

    /// Completes the held character with the first of `bytes`. Returns the bytes it did not take.
    fn complete<'b>(&mut self, mut bytes: &'b [u8], emit: &mut impl FnMut(&str)) -> &'b [u8] {
        while !self.held.is_empty()
            && let Some((&byte, rest)) = bytes.split_first()
        {
            self.held.push(byte);
            match std::str::from_utf8(&self.held) {
                Ok(character) => emit(character),
                Err(flaw) if flaw.error_len().is_none() => {
                    bytes = rest;
                    continue;
                }
                Err(_) => {
                    // The byte does not continue the held character and may start a new one.
                    self.held.clear();
                    emit(REPLACEMENT);
                    return bytes;
                }
            }
            self.held.clear();
            bytes = rest;
        }
        bytes
    }
}

/// Whether `bytes` could become one character if more followed.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|flaw| flaw.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_decides_the_encoding() {
        let cases: &[(&[u8], Encoding)] = &[
            (b"", Encoding::Utf8),
            (b"a", Encoding::Utf8),
            (b"\xEF", Encoding::Utf8),
            (b"\xEF\xBB", Encoding::Utf8),
            (b"\xEF\xBB\xBF", Encoding::Utf8Bom),
            (b"\xEF\xBB\xBFa", Encoding::Utf8Bom),
            (b"\xFF", Encoding::Utf8),
            (b"\xFF\xFE", Encoding::Utf16Le),
            (b"\xFF\xFEa\0", Encoding::Utf16Le),
            (b"\xFE", Encoding::Utf8),
            (b"\xFE\xFF", Encoding::Utf16Be),
            (b"\xFE\xFF\0a", Encoding::Utf16Be),
            (b"a\xFF\xFE", Encoding::Utf8),
        ];
        for &(prefix, want) in cases {
            assert_eq!(detect(prefix), want, "{prefix:?}");
            assert_eq!(want.is_utf16(), want.mark_len() == 2, "{want:?}");
        }
        assert_eq!(Encoding::Utf8.mark_len(), 0);
        assert_eq!(Encoding::Utf8Bom.mark_len(), 3);
    }

    #[test]
    fn text_and_binary_by_content() {
        // (prefix, is_binary_for_search, is_text)
        let cases: &[(&[u8], bool, bool)] = &[
            (b"", false, true),
            (b"plain", false, true),
            (b"latin \xE9", false, true),
            (b"nul \0 in valid utf-8", true, true),
            (b"nul \0 and \xE9 both", true, false),
            (b"nul \0 and cut \xE2\x82", true, false),
            (b"\xEF\xBB\xBFnul \0", true, true),
            (b"\xFF\xFEa\0\xFF\xFF", false, true),
            (b"\xFE\xFF\0a", false, true),
        ];
        for &(prefix, binary, text) in cases {
            assert_eq!(is_binary_for_search(prefix), binary, "{prefix:?}");
            assert_eq!(is_text(prefix), text, "{prefix:?}");
        }
    }

    #[test]
    fn only_the_sample_decides() {
        let mut bytes = vec![b'a'; SNIFF_BYTES];
        bytes.push(0);
        assert!(!is_binary_for_search(&bytes));
        if let Some(last) = bytes.get_mut(SNIFF_BYTES - 1) {
            *last = 0;
        }
        assert!(is_binary_for_search(&bytes));
        assert!(is_text(&bytes));
        bytes.push(0xFF);
        assert!(is_text(&bytes));
    }

    #[test]
    fn a_character_cut_by_a_full_sample_is_forgiven() {
        let mut bytes = vec![0; SNIFF_BYTES - 2];
        bytes.extend_from_slice("€".as_bytes());
        assert!(is_text(&bytes));
        assert!(is_text(&bytes[..SNIFF_BYTES]));
        assert!(!is_text(&bytes[..SNIFF_BYTES - 1]));
        // A byte that cannot start a character is not an incomplete one.
        bytes[SNIFF_BYTES - 1] = 0xFF;
        assert!(!is_text(&bytes));
    }

    fn decode_in(encoding: Encoding, bytes: &[u8], step: usize) -> Option<String> {
        let mut stream = Utf16Stream::new(encoding)?;
        let mut out = Vec::new();
        let mut sink = |piece: &[u8]| {
            out.extend_from_slice(piece);
            true
        };
        for chunk in bytes.chunks(step) {
            stream.decode(chunk, false, &mut sink);
        }
        stream.decode(&[], true, &mut sink);
        String::from_utf8(out).ok()
    }

    #[test]
    fn utf16_decodes_alike_in_any_chunking() {
        let text = "a\r\n€😀".repeat(9000);
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for step in [1, 3, 7, 4096, usize::MAX] {
            assert_eq!(
                decode_in(Encoding::Utf16Le, &little, step).as_ref(),
                Some(&text)
            );
            assert_eq!(
                decode_in(Encoding::Utf16Be, &big, step).as_ref(),
                Some(&text)
            );
        }
        assert_eq!(
            decode_in(Encoding::Utf16Le, b"a\0b", 2).as_deref(),
            Some("a\u{FFFD}")
        );
        assert_eq!(
            decode_in(Encoding::Utf16Be, b"\xD8\0\0a", 1).as_deref(),
            Some("\u{FFFD}a")
        );
        assert_eq!(decode_in(Encoding::Utf8, b"a", 1), None);
        assert_eq!(decode_in(Encoding::Utf8Bom, b"a", 1), None);
    }

    fn lossy_in(bytes: &[u8], step: usize) -> String {
        let mut stream = LossyStream::default();
        let mut out = String::new();
        for chunk in bytes.chunks(step) {
            stream.push(chunk, |text| out.push_str(text));
        }
        stream.finish(|text| out.push_str(text));
        out
    }

    #[test]
    fn lossy_text_equals_that_of_the_standard_library() {
        let cases: &[&[u8]] = &[
            b"",
            b"plain",
            "a€😀b".as_bytes(),
            b"\xE2\x82",
            b"\xE2\x82A",
            b"\xE2\x82\xE2\x82\xAC",
            b"\xF0\x80\x80\x80",
            b"\xF0\x9F\x98",
            b"\xED\xA0\x80",
            b"\xFF\xC3\xA9\xFF\xC3",
            b"\x80\xBF\xC0\xC1\xF5",
        ];
        for &bytes in cases {
            for step in 1..=5 {
                assert_eq!(
                    lossy_in(bytes, step),
                    String::from_utf8_lossy(bytes),
                    "{bytes:?}"
                );
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn lossy_text_is_the_same_in_any_chunking(
            bytes in proptest::collection::vec(byte(), 0..40),
            step in 1_usize..7,
        ) {
            proptest::prop_assert_eq!(lossy_in(&bytes, step), String::from_utf8_lossy(&bytes));
        }
    }

    /// Any byte, but mostly those that begin, continue or break a character.
    fn byte() -> impl proptest::strategy::Strategy<Value = u8> {
        use proptest::prelude::*;
        prop_oneof![
            proptest::sample::select(b"a\x80\x9F\xA0\xBF\xC3\xE0\xE2\xED\xF0\xF4\xFF".to_vec()),
            any::<u8>(),
        ]
    }

    #[test]
    fn utf16_stops_when_the_sink_has_enough() {
        let bytes = vec![b'a'; 64 * 1024];
        let mut stream = Utf16Stream::new(Encoding::Utf16Le).unwrap();
        let mut pieces = 0;
        stream.decode(&bytes, false, |_| {
            pieces += 1;
            false
        });
        assert_eq!(pieces, 1);
        assert_eq!(
            format!("{stream:?}"),
            "Utf16Stream { encoding: \"UTF-16LE\", .. }"
        );
    }
}
