//! Searching memory and readers, and files that are skipped.

use std::io::{self, Read};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn query(pattern: &str) -> GrepQuery {
    GrepQuery::new(pattern, VPath::root())
}

type Found = Vec<(u64, LineKind, Vec<u8>, u64)>;

fn lines(file: &FileMatches) -> Found {
    let lines = file.lines();
    lines
        .map(|line| (line.number, line.kind, line.bytes.to_vec(), line.cut_bytes))
        .collect()
}

/// Searches in memory and through a reader.
fn both(query: &GrepQuery, content: &[u8]) -> (Result<Found, String>, Result<Found, String>) {
    let (_, grep) = query.compile().unwrap();
    let mut worker = grep.worker();
    let path = VPath::root();
    let found = |searched: Result<FileMatches, SkipReason>| match searched {
        Ok(file) => Ok(lines(&file)),
        Err(passed) => Err(format!("{passed:?}")),
    };
    let memory = worker.search_bytes(&path, &Bytes::copy_from_slice(content));
    let memory = found(memory);
    assert_eq!(found(worker.search_slice(&path, content)), memory);
    let reader = worker.search_reader(&path, content);
    (memory, found(reader))
}

/// Returns the lines on which `pattern` matches, which must agree both ways.
fn matching(pattern: &str, content: &str) -> Vec<u64> {
    let (memory, reader) = both(&query(pattern), content.as_bytes());
    assert_eq!(memory, reader, "{pattern:?} in {content:?}");
    memory.unwrap().iter().map(|line| line.0).collect()
}

#[test]
fn empty_matches_are_on_lines_that_exist() {
    assert_eq!(matching("$", " "), [1]);
    assert_eq!(matching("$", "a\n"), [1]);
    assert_eq!(matching("^", "a\nb"), [1, 2]);
    assert_eq!(matching("^$", "a\n\n"), [2]);
    assert_eq!(matching("^$", "a\r\n\r\nb"), [2]);
    assert_eq!(matching("", "a\n\nb\n"), [1, 2, 3]);
    assert_eq!(matching("", ""), []);
    assert_eq!(matching("x*", "\n"), [1]);
}

/// The bytes of the previous line, valid or not, do not affect a line.
#[test]
fn lines_are_judged_by_themselves() {
    let (memory, reader) = both(&query(r"\B"), b"\xad\x08\x88\x0b\x0c\n\x88\x88");
    assert_eq!(memory, reader);
}

#[test]
fn line_ends_belong_to_no_line() {
    let (memory, reader) = both(&query("a"), b"a\r\nab\r\na\r");
    assert_eq!(memory, reader);
    let text: Vec<_> = memory.unwrap().into_iter().map(|line| line.2).collect();
    assert_eq!(text, [&b"a"[..], b"ab", b"a\r"]);
}

#[test]
fn a_line_is_cut_between_characters() {
    let query = query("é").max_line_bytes(4);
    let (memory, reader) = both(&query, "xééé\n".as_bytes());
    let expected = vec![(1, LineKind::Match, "xé".as_bytes().to_vec(), 4)];
    assert_eq!((memory, reader), (Ok(expected.clone()), Ok(expected)));
    assert_eq!(cut_at(b"\x80\x80\x80\x80\x80", 4), 4);
}

#[test]
fn a_line_too_long_to_search_passes_the_file_over() {
    let long = vec![b'x'; GREP_LINE_BYTES + 1024 * 1024];
    for content in [
        long.clone(),
        [&b"x\n"[..], &long, b"\nx"].concat(),
        [&long[..], b"\n"].concat(),
    ] {
        let (memory, reader) = both(&query("x"), &content);
        assert_eq!(memory, Err("LongLine".to_owned()));
        assert_eq!(reader, Err("LongLine".to_owned()));
    }
    let short_lines = b"0123456789abcde\n".repeat(GREP_LINE_BYTES / 16 + 1);
    let (memory, reader) = both(&query("nothing"), &short_lines);
    assert_eq!((memory, reader), (Ok(vec![]), Ok(vec![])));
    let (memory, reader) = both(&query("x").multi_line(true), &short_lines);
    assert_eq!((memory, reader), (Ok(vec![]), Ok(vec![])));
    let (memory, reader) = both(&query(r"x\s").multi_line(true), &short_lines);
    assert_eq!(memory, Err("LongLine".to_owned()));
    assert_eq!(reader, Err("LongLine".to_owned()));
}

#[test]
fn a_reader_that_fails_is_unreadable() {
    struct Failing(usize);
    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            let length = buffer.len().min(self.0);
            self.0 -= length;
            buffer[..length].fill(b'\n');
            Ok(length)
        }
    }
    let (_, grep) = query("x").compile().unwrap();
    let mut worker = grep.worker();
    let mut skipped = Skipped::default();
    for length in [0, SNIFF_BYTES, 1_000_000] {
        let searched = worker.search_reader(&VPath::root(), Failing(length));
        searched.unwrap_err().count(&mut skipped);
    }
    SkipReason::Binary.count(&mut skipped);
    SkipReason::LongLine.count(&mut skipped);
    assert_eq!(
        (skipped.unreadable, skipped.binary, skipped.long_line),
        (3, 1, 1)
    );
}

#[test]
fn the_collector_stops_at_the_maximum_of_bytes() {
    let query = query("a").max_bytes(5).context(0, 1);
    let (_, grep) = query.compile().unwrap();
    let mut worker = grep.worker();
    let mut collector = GrepCollector::new(&query);
    let content = Bytes::from_static(b"aa\nb\naaa\n");
    assert!(collector.add(worker.search_bytes(&VPath::root(), &content)));
    assert!(collector.add(worker.search_bytes(&VPath::root(), &content)));
    let result = collector.finish(Skipped::default());
    assert_eq!((result.matches, result.truncated), (1, true));
    assert_eq!(result.files[0].lines().len(), 2);
}

/// An endless reader of lines, of which only a few are wanted.
#[test]
fn a_file_is_searched_no_further_than_its_lines_fit() {
    struct Endless;

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(b'\n');
            Ok(buffer.len())
        }
    }

    let endless = || {
        io::Cursor::new("abc\n")
            .chain(io::repeat(b'x').take(3))
            .chain(Endless)
    };
    for query in [
        query("abc|xxx|^$"),
        query("abc").context(0, 9),
        query("b").multi_line(true),
    ] {
        let (_, grep) = query
            .clone()
            .max_bytes(5)
            .max_line_bytes(2)
            .compile()
            .unwrap();
        let mut worker = grep.worker();
        let content = Bytes::from("abc\n".repeat(10));
        let found = worker.search_bytes(&VPath::root(), &content).unwrap();
        assert_eq!(found.lines().len(), 3);
        let found = worker.search_slice(&VPath::root(), &content).unwrap();
        assert_eq!(found.shown_bytes(), 6);
        if query.multi_line {
            continue;
        }
        let (_, grep) = query.max_bytes(4).max_matches(50).compile().unwrap();
        let found = grep
            .worker()
            .search_reader(&VPath::root(), endless())
            .unwrap();
        assert!(found.lines().len() <= 60);
    }
}

#[test]
fn a_file_of_which_nothing_is_kept_is_left_out() {
    let query = query("a").max_matches(1);
    let (_, grep) = query.compile().unwrap();
    let mut worker = grep.worker();
    let mut collector = GrepCollector::new(&query);
    let content = Bytes::from_static(b"a\n");
    assert!(!collector.add(worker.search_bytes(&VPath::root(), &content)));
    assert!(collector.add(worker.search_bytes(&VPath::root(), &content)));
    let result = collector.finish(Skipped::default());
    assert_eq!((result.files.len(), result.truncated), (1, true));
}

#[test]
fn matches_can_be_made_of_lines() {
    let path = VPath::parse("/a").unwrap();
    let rows = [
        (3, LineKind::Context, "before"),
        (4, LineKind::Match, "found"),
    ];
    let file = FileMatches::from_lines(path.clone(), rows);
    assert_eq!(
        (&file.path, file.matches, file.is_empty()),
        (&path, 1, false)
    );
    let text: Vec<_> = file.lines().map(|line| line.text().into_owned()).collect();
    assert_eq!(text, ["before", "found"]);
}

#[test]
fn bad_patterns_say_what_to_do() {
    let error = |query: GrepQuery| Grep::new(&query).unwrap_err();
    assert!(matches!(
        error(query(&"x".repeat(PATTERN_BYTES + 1))),
        GrepPatternError::TooLong(_)
    ));
    assert!(matches!(error(query("a\\nb")), GrepPatternError::LineEnd));
    assert!(matches!(error(query("a(")), GrepPatternError::Syntax(_)));
    assert!(matches!(
        error(query(r"\p{nonsense}")),
        GrepPatternError::Syntax(_)
    ));
    for pattern in [r"\Aa", r"a\z", r"(?-m)^a", r"b|(a\z)"] {
        let anchored = error(query(pattern));
        assert!(
            matches!(anchored, GrepPatternError::FileAnchor),
            "{anchored}"
        );
        assert!(Grep::new(&query(pattern).multi_line(true)).is_ok());
    }
    let complex = error(query("(a{1000}){1000}"));
    assert!(
        matches!(complex, GrepPatternError::TooComplex(_)),
        "{complex}"
    );
    assert!(Grep::new(&query("a(").literal(true)).is_ok());
    assert!(Grep::new(&query("(?x) a # comment")).is_ok());
}

proptest! {
    #[test]
    fn memory_and_readers_agree(
        pattern in r"[ab.$^|*?+()\[\]wbs\\-]{0,6}",
        content in prop::collection::vec(prop::sample::select(&b"ab \r\n\n\xc3\xa9\xff"[..]), 0..30),
        multi_line: bool,
        context in 0usize..3,
        literal: bool,
    ) {
        let query = query(&pattern).multi_line(multi_line).context(context, context).literal(literal);
        if query.compile().is_ok() {
            let (memory, reader) = both(&query, &content);
            prop_assert_eq!(memory, reader);
        }
    }

    #[test]
    fn any_string_is_a_pattern_or_a_typed_error(pattern in any::<String>()) {
        if let Err(error) = Grep::new(&query(&pattern)) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
