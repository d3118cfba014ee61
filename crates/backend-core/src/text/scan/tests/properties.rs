//! The window of any file, against a naive implementation.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A piece of content that may need care, as UTF-8 or as raw bytes.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        b"\n",
        b"\r",
        b"\r\n",
        b"a",
        b"bc",
        b"\xC3\xA9",
        b"\xE2\x82\xAC",
        b"\xF0\x9F\x98\x80",
        b"\xFF",
        b"\xE2\x82",
        b"\xF0\x9F",
        b"\xED\xA0\x80",
        b"\0",
        b"\xEF\xBB\xBF",
    ];
    prop_oneof![
        4 => proptest::sample::select(known).prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 1..3),
    ]
}

/// A file of pieces with one of the marks or none; after a UTF-16 mark most pieces are UTF-16.
fn file() -> impl Strategy<Value = Vec<u8>> {
    (mark(), vec(piece(), 0..24)).prop_map(|(mark, pieces)| {
        let pieces = pieces.iter().flat_map(|piece| spelled(mark, piece));
        mark.iter().copied().chain(pieces).collect()
    })
}

/// The same after [`PADDING`] lines, so that chunks are lines before the scanner joins them.
fn padded_file() -> impl Strategy<Value = Vec<u8>> {
    (mark(), vec(piece(), 0..24)).prop_map(|(mark, pieces)| {
        let padding = spelled(mark, "p\n".repeat(PADDING).as_bytes());
        let pieces = pieces.iter().flat_map(|piece| spelled(mark, piece));
        mark.iter().copied().chain(padding).chain(pieces).collect()
    })
}

/// Number of lines that fill the sample.
const PADDING: usize = SNIFF_BYTES / 2;

fn mark() -> impl Strategy<Value = &'static [u8]> {
    let marks: [&[u8]; 5] = [b"", b"", b"\xEF\xBB\xBF", b"\xFF\xFE", b"\xFE\xFF"];
    proptest::sample::select(marks.to_vec())
}

/// Encodes `piece` in the encoding of `mark` if it is text; otherwise leaves it as it is.
fn spelled(mark: &[u8], piece: &[u8]) -> Vec<u8> {
    match (std::str::from_utf8(piece), mark) {
        (Ok(text), b"\xFF\xFE") => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        (Ok(text), b"\xFE\xFF") => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        _ => piece.to_vec(),
    }
}

fn request() -> impl Strategy<Value = TextOptions> {
    let limit = prop_oneof![0_usize..6, Just(usize::MAX)];
    let width = prop_oneof![0_usize..9, Just(usize::MAX)];
    let size = prop_oneof![0_usize..30, Just(usize::MAX)];
    (0_u64..8, limit, width, size, any::<bool>()).prop_map(
        |(offset, limit, max_line_bytes, max_bytes, count_total)| {
            ALL.offset(offset)
                .limit(limit)
                .max_line_bytes(max_line_bytes)
                .max_bytes(max_bytes)
                .count_total(count_total)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_window_is_what_a_naive_reading_gives(
        file in file(),
        request in request(),
        sizes in vec(1_usize..9, 1..4),
    ) {
        let want = Expected::naive(&file, request);
        let whole = window(&file, request);
        prop_assert_eq!(whole.as_ref().map(Expected::of).map_err(Clone::clone), want);
        prop_assert_eq!(scan(&file, request, &sizes), whole);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn zeros_that_are_only_counted_are_zeros(
        before in padded_file(),
        count in 0_usize..5_000,
        after in file(),
        wanted in request(),
    ) {
        let offset = wanted.offset + PADDING as u64 - 3;
        let request = TextOptions { offset, ..wanted };
        let whole = [&before[..], &vec![0; count], &after].concat();
        let counted = WindowScanner::new(request).and_then(|mut scanner| {
            scanner.push(&before);
            scanner.push_zeros(count as u64);
            scanner.push(&after);
            scanner.finish()
        });
        prop_assert_eq!(counted, window(&whole, request));
    }

    #[test]
    fn a_window_does_not_depend_on_the_chunks(
        file in padded_file(),
        wanted in request(),
        sizes in vec(1_usize..9, 1..4),
    ) {
        let offset = wanted.offset + PADDING as u64 - 3;
        let request = TextOptions { offset, ..wanted };
        let want = Expected::naive(&file, request);
        let chunked = scan(&file, request, &sizes);
        prop_assert_eq!(chunked.as_ref().map(Expected::of).map_err(Clone::clone), want);
        prop_assert_eq!(window(&file, request), chunked);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn long_files_are_read_like_short_ones(
        unit in file(),
        times in 1_usize..20_000,
        wanted in request(),
        offset in 0_u64..60_000,
        sizes in vec(1_usize..70_000, 1..4),
    ) {
        let file = unit.repeat(times);
        let request = TextOptions { offset, ..wanted };
        let want = Expected::naive(&file, request);
        let whole = window(&file, request);
        prop_assert_eq!(whole.as_ref().map(Expected::of).map_err(Clone::clone), want);
        prop_assert_eq!(scan(&file, request, &sizes), whole);
    }

    #[test]
    fn pages_one_after_the_other_are_the_file(file in file(), limit in 1_usize..5) {
        let Ok(whole) = window(&file, ALL) else { return Ok(()) };
        let mut pages = Vec::new();
        let mut next = Some(0);
        while let Some(offset) = next {
            let page = window(&file, TextOptions { offset, limit, ..ALL }).unwrap();
            pages.extend(texts(&page).into_iter().map(str::to_owned));
            next = page.next_offset();
        }
        prop_assert_eq!(pages, texts(&whole));
    }
}
