//! Tests of the window of lines: each rule by example, and all of them against a naive
//! implementation.

mod properties;

use crate::ops::{Links, TextOptions};
use crate::text::{
    Encoding, Line, Progress, SNIFF_BYTES, TextWindow, WindowError, WindowScanner, detect, is_text,
    window,
};

/// The base request of every test: no limit matters unless the test sets it.
const ALL: TextOptions = TextOptions {
    links: Links::Follow,
    offset: 0,
    limit: usize::MAX,
    max_line_bytes: usize::MAX,
    max_bytes: usize::MAX,
    count_total: false,
};

fn texts(window: &TextWindow) -> Vec<&str> {
    window.lines().map(|line| line.text).collect()
}

fn scan(bytes: &[u8], request: TextOptions, sizes: &[usize]) -> Result<TextWindow, WindowError> {
    let mut scanner = WindowScanner::new(request)?;
    let mut rest = bytes;
    let mut sizes = sizes.iter().cycle();
    let mut done = false;
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(usize::MAX).min(rest.len());
        let (chunk, after) = rest.split_at(size);
        let progress = scanner.push(chunk);
        assert!(!done || progress == Progress::Done, "done is final");
        done = progress == Progress::Done;
        rest = after;
    }
    scanner.finish()
}

/// The expected window, computed from the whole file at once.
#[derive(Debug, PartialEq)]
struct Expected {
    lines: Vec<(u64, String, u64)>,
    more: bool,
    total: Option<u64>,
    encoding: Encoding,
}

impl Expected {
    fn of(window: &TextWindow) -> Self {
        assert_eq!(window.text(), texts(window).join("\n"));
        let line = |line: Line<'_>| (line.number, line.text.to_owned(), line.cut_bytes);
        Self {
            lines: window.lines().map(line).collect(),
            more: window.more,
            total: window.total_lines,
            encoding: window.encoding,
        }
    }

    fn naive(bytes: &[u8], request: TextOptions) -> Result<Self, WindowError> {
        if request.limit == 0 {
            return Err(WindowError::ZeroLimit);
        }
        if !is_text(bytes) {
            return Err(WindowError::NotText);
        }
        let encoding = detect(bytes);
        let all = naive_lines(bytes);
        let total = all.len() as u64;
        let offset = request.offset;
        if offset >= total && (offset, total) != (0, 0) {
            return Err(WindowError::PastEnd {
                offset,
                lines: total,
            });
        }
        let mut lines = Vec::new();
        let mut size = 0;
        for (number, line) in (1..).zip(&all).skip(usize::try_from(offset).unwrap()) {
            let width = (0..=line.len().min(request.max_line_bytes))
                .rfind(|&width| line.is_char_boundary(width))
                .unwrap();
            let separator = usize::from(!lines.is_empty());
            let is_over = size + separator + width > request.max_bytes;
            if lines.len() == request.limit || (is_over && !lines.is_empty()) {
                break;
            }
            size += separator + width;
            lines.push((
                number,
                line[..width].to_owned(),
                (line.len() - width) as u64,
            ));
        }
        let more = offset + (lines.len() as u64) < total;
        let total = (!more || request.count_total).then_some(total);
        Ok(Self {
            lines,
            more,
            total,
            encoding,
        })
    }
}

fn naive_lines(bytes: &[u8]) -> Vec<String> {
    let body = &bytes[detect(bytes).mark_len()..];
    let decoded = |encoding: &'static encoding_rs::Encoding| {
        let (text, _) = encoding.decode_without_bom_handling(body);
        text.into_owned().into_bytes()
    };
    let body = match detect(bytes) {
        Encoding::Utf8 | Encoding::Utf8Bom => body.to_vec(),
        Encoding::Utf16Le => decoded(encoding_rs::UTF_16LE),
        Encoding::Utf16Be => decoded(encoding_rs::UTF_16BE),
    };
    let line = |line: &[u8]| {
        let line = match line.strip_suffix(b"\n") {
            Some(ended) => ended.strip_suffix(b"\r").unwrap_or(ended),
            None => line,
        };
        String::from_utf8_lossy(line).into_owned()
    };
    body.split_inclusive(|&byte| byte == b'\n')
        .map(line)
        .collect()
}

#[test]
fn line_ends() {
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        ("\n", &[""]),
        ("\r\n", &[""]),
        ("\r", &["\r"]),
        ("a", &["a"]),
        ("a\n", &["a"]),
        ("a\r\n", &["a"]),
        ("a\r", &["a\r"]),
        ("a\n\n", &["a", ""]),
        ("a\r\r\n", &["a\r"]),
        ("a\rb\nc", &["a\rb", "c"]),
        ("a\n\r", &["a", "\r"]),
        ("\n\r\n\r\r\n", &["", "", "\r"]),
    ];
    for &(text, want) in cases {
        for step in [1, 2, 3, usize::MAX] {
            let window = scan(text.as_bytes(), ALL, &[step]).unwrap();
            assert_eq!(texts(&window), want, "{text:?} in steps of {step}");
            assert_eq!(window.total_lines, Some(want.len() as u64), "{text:?}");
            assert_eq!(window.is_empty(), want.is_empty());
            assert!(!window.more);
        }
    }
}

#[test]
fn an_empty_file_has_an_empty_window() {
    for bytes in [&b""[..], b"\xEF\xBB\xBF", b"\xFF\xFE", b"\xFE\xFF"] {
        let empty = window(bytes, ALL).unwrap();
        assert!(empty.is_empty());
        assert_eq!((empty.line_count(), empty.text()), (0, ""));
        assert_eq!((empty.first_line(), empty.next_offset()), (1, None));
        assert_eq!(empty.total_lines, Some(0));
        let (offset, lines) = (1, 0);
        let past = Err(WindowError::PastEnd { offset, lines });
        assert_eq!(window(bytes, ALL.offset(1)), past);
    }
}

#[test]
fn an_offset_past_the_end_names_the_length() {
    for (text, offset, lines) in [
        ("a", 1, 1),
        ("a\n", 1, 1),
        ("a\nb", 2, 2),
        ("a\nb\nc", 9, 3),
    ] {
        for count_total in [false, true] {
            let request = ALL.offset(offset).count_total(count_total);
            let past = WindowError::PastEnd { offset, lines };
            let whole = window(text.as_bytes(), request);
            assert_eq!(whole, Err(past.clone()), "{text:?}");
            assert_eq!(scan(text.as_bytes(), request, &[1]), Err(past), "{text:?}");
        }
    }
    let far = ALL.offset(u64::MAX);
    assert!(window(b"a\n", far).is_err());
}

#[test]
fn errors_say_what_to_do() {
    let past = |offset, lines| WindowError::PastEnd { offset, lines }.to_string();
    let empty = "offset 1 is past the end: the file is empty; use offset 0";
    assert_eq!(past(1, 0), empty);
    assert_eq!(
        past(3, 1),
        "offset 3 is past the end: the file has 1 line; use offset 0"
    );
    let long = "offset 9 is past the end: the file has 3 lines; use an offset below 3";
    assert_eq!(past(9, 3), long);
    let zero = WindowScanner::new(TextOptions { limit: 0, ..ALL }).unwrap_err();
    assert_eq!(zero.to_string(), "the limit is 0 lines; ask for at least 1");
    let binary = window(b"\0\xFF", ALL).unwrap_err();
    assert_eq!(
        binary.to_string(),
        "the file is not text; read its bytes instead"
    );
}

#[test]
fn a_page_knows_where_the_next_begins() {
    let request = ALL.offset(1).limit(2);
    let page = window(b"a\nb\nc\nd\n", request).unwrap();
    assert_eq!(page.text(), "b\nc");
    assert_eq!((page.first_line(), page.line_count()), (2, 2));
    assert_eq!(
        (page.more, page.next_offset(), page.total_lines),
        (true, Some(3), None)
    );
    let counted = window(b"a\nb\nc\nd\n", request.count_total(true)).unwrap();
    assert_eq!(
        (counted.next_offset(), counted.total_lines),
        (Some(3), Some(4))
    );
    assert_ne!(page, counted);
    // A window that ends with the file is the last one, with or without a final line end.
    for bytes in [&b"a\nb\nc"[..], b"a\nb\nc\n"] {
        let last = window(bytes, request).unwrap();
        assert_eq!((last.next_offset(), last.total_lines), (None, Some(3)));
    }
}

#[test]
fn lines_come_from_either_end() {
    let request = ALL.max_line_bytes(2).offset(1);
    let window = window(b"skipped\nabc\nab\n\nabcd", request).unwrap();
    let lines = window.lines();
    assert_eq!(lines.len(), 4);
    let shown: Vec<String> = lines.clone().map(|line| line.to_string()).collect();
    assert_eq!(
        shown,
        ["ab [... 1 more bytes]", "ab", "", "ab [... 2 more bytes]"]
    );
    let numbers: Vec<u64> = lines.rev().map(|line| line.number).collect();
    assert_eq!(numbers, [5, 4, 3, 2]);
    assert_eq!(window.text(), "ab\nab\n\nab");
}

#[test]
fn wide_lines_are_cut_between_characters() {
    // (line, width, text kept, bytes cut)
    let cases: &[(&[u8], usize, &str, u64)] = &[
        (b"abc", 3, "abc", 0),
        (b"abc\r", 3, "abc", 0),
        (b"abcd", 3, "abc", 1),
        (b"abc", 0, "", 3),
        ("aé".as_bytes(), 2, "a", 2),
        ("aéb".as_bytes(), 2, "a", 3),
        ("a😀b".as_bytes(), 5, "a😀", 1),
        (b"ab\xFF", 4, "ab", 3),
        (b"\xFF\xFF", 3, "\u{FFFD}", 3),
    ];
    for &(line, width, kept, cut) in cases {
        let file = [line, b"\nnext"].concat();
        for step in [1, 2, usize::MAX] {
            let request = ALL.max_line_bytes(width).limit(1);
            let window = scan(&file, request, &[step]).unwrap();
            let first = window.lines().next().unwrap();
            assert_eq!(
                (first.text, first.cut_bytes),
                (kept, cut),
                "{line:?} to {width}"
            );
        }
    }
}

#[test]
fn the_window_ends_before_the_line_that_is_too_much() {
    // (file, bytes allowed, lines kept, whether more follow)
    let cases: &[(&str, usize, &[&str], bool)] = &[
        ("aa\nbb\ncc", 8, &["aa", "bb", "cc"], false),
        ("aa\nbb\ncc", 7, &["aa", "bb"], true),
        ("aa\nbb\ncc", 5, &["aa", "bb"], true),
        ("aa\nbb\ncc", 4, &["aa"], true),
        ("aa\nbb\ncc", 0, &["aa"], true),
        ("aa\n", 0, &["aa"], false),
        ("aa\n\n\n", 2, &["aa"], true),
        ("aa\n\n\n", 3, &["aa", ""], true),
        ("aa\n\n\n", 4, &["aa", "", ""], false),
        ("aa\nb\r", 4, &["aa"], true),
        ("aa\nb\r\n", 4, &["aa", "b"], false),
        ("aa\nb\r", 5, &["aa", "b\r"], false),
    ];
    for &(text, max_bytes, want, more) in cases {
        for (step, count_total) in [(1, false), (1, true), (100, false), (100, true)] {
            let request = ALL.max_bytes(max_bytes).count_total(count_total);
            let window = scan(text.as_bytes(), request, &[step]).unwrap();
            assert_eq!(texts(&window), want, "{text:?} in {max_bytes}");
            assert_eq!(window.more, more, "{text:?} in {max_bytes}");
            let all = text.lines().count() as u64;
            assert_eq!(window.total_lines, (!more || count_total).then_some(all));
        }
    }
}

#[test]
fn marks_are_stripped_and_utf16_is_decoded() {
    let text = "zwölf\r\n\u{FEFF}😀\n";
    let want = ["zwölf", "\u{FEFF}😀"];
    let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (mark, text, encoding) in [
        (&b""[..], text.as_bytes(), Encoding::Utf8),
        (b"\xEF\xBB\xBF", text.as_bytes(), Encoding::Utf8Bom),
        (b"\xFF\xFE", &le, Encoding::Utf16Le),
        (b"\xFE\xFF", &be, Encoding::Utf16Be),
    ] {
        let bytes = [mark, text].concat();
        for step in [1, 2, 3, 5, usize::MAX] {
            let window = scan(&bytes, ALL, &[step]).unwrap();
            assert_eq!(texts(&window), want, "{encoding:?} in steps of {step}");
            assert_eq!(window.encoding, encoding);
        }
    }
    // Only the first mark counts; a second one is content.
    let twice = window(b"\xEF\xBB\xBF\xEF\xBB\xBFa", ALL).unwrap();
    assert_eq!(twice.text(), "\u{FEFF}a");
    // Half a unit at the end is shown, and is a line.
    let half = window(b"\xFF\xFEa\0\n\0b", TextOptions { limit: 1, ..ALL }).unwrap();
    assert_eq!((half.text(), half.next_offset()), ("a", Some(1)));
}

#[test]
fn a_scanner_stops_as_soon_as_it_can() {
    let file = "0123456\n".repeat(SNIFF_BYTES);
    let request = ALL.offset(10).limit(5);
    for step in [1, 100, SNIFF_BYTES, SNIFF_BYTES + 1] {
        let mut scanner = WindowScanner::new(request).unwrap();
        let mut pushed = 0;
        for chunk in file.as_bytes().chunks(step) {
            pushed += chunk.len();
            if scanner.push(chunk) == Progress::Done {
                break;
            }
        }
        assert_eq!(
            pushed,
            SNIFF_BYTES.next_multiple_of(step),
            "in steps of {step}"
        );
        assert_eq!(scanner.push(b"\0\xFF\n\n"), Progress::Done);
        assert_eq!(scanner.finish().unwrap().next_offset(), Some(15));
    }
}

#[test]
fn the_first_bytes_decide_before_anything_is_answered() {
    let mut file = b"a\n".repeat(SNIFF_BYTES);
    file[SNIFF_BYTES - 2] = 0;
    file[SNIFF_BYTES - 1] = 0xFF;
    let request = TextOptions { limit: 1, ..ALL };
    for step in [1, 1000, SNIFF_BYTES, file.len()] {
        let mut scanner = WindowScanner::new(request).unwrap();
        let done = file
            .chunks(step)
            .position(|chunk| scanner.push(chunk) == Progress::Done);
        assert_eq!(done, Some((SNIFF_BYTES - 1) / step), "in steps of {step}");
        assert_eq!(scanner.push(b"x"), Progress::Done);
        assert_eq!(scanner.finish(), Err(WindowError::NotText));
    }
    // The same bytes after the sample are only shown.
    file.rotate_right(2);
    assert!(window(&file, request).is_ok());
}

#[test]
fn debug_output_names_the_decoder() {
    let mut scanner = WindowScanner::new(TextOptions::default()).unwrap();
    scanner.push(&b"\xFF\xFE".repeat(SNIFF_BYTES));
    assert!(format!("{scanner:?}").contains("UTF-16LE"));
}
