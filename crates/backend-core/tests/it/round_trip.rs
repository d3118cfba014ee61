//! Serialized values come back unchanged, and malicious input is rejected or harmless.

use std::error::Error as _;
use std::time::{Duration, SystemTime};

use backend_core::ops::{
    ByteRange, Case, Command, CommandStatus, ContentHash, Entry, Event, ExecuteOutcome, FileKind,
    FileMatches, GlobOrder, GlobQuery, GrepQuery, GrepResult, LineKind, Links, Listing, LsOptions,
    Output, ReadOptions, ShellId, ShellInfo, ShellOutput, ShellState, Skipped, Streams,
    TextOptions, WriteMode, WriteOptions,
};
use backend_core::search::{Exclude, ExcludeAction, ExcludeRule};
use backend_core::text::{Candidate, EditError, Similarity, TextWindow, window};
use backend_core::{Edit, Error, ErrorKind, Operation, VPath};
use bytes::Bytes;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

fn bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(value, Vec::new()).unwrap()
}

fn again<T: Serialize + DeserializeOwned>(value: &T) -> T {
    postcard::from_bytes(&bytes(value)).unwrap()
}

fn path() -> impl Strategy<Value = VPath> {
    let name = r"[a-z~é .\\:\n]{1,8}";
    prop::collection::vec(name, 0..5).prop_filter_map("a path", |names| {
        VPath::parse(&format!("/{}", names.join("/"))).ok()
    })
}

fn time() -> impl Strategy<Value = Option<SystemTime>> {
    prop::option::of((any::<bool>(), 0..1_u64 << 40, 0..1_000_000_000_u32)).prop_map(|time| {
        time.map(|(after, seconds, nanos)| {
            if after {
                SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos)
            } else {
                SystemTime::UNIX_EPOCH - Duration::new(seconds, nanos)
            }
        })
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    let kind = prop::sample::select(vec![
        FileKind::File,
        FileKind::Directory,
        FileKind::Link,
        FileKind::Other,
    ]);
    let numbers = any::<(Option<u64>, Option<u32>, bool)>();
    (path(), kind, time(), numbers).prop_map(|(path, kind, time, (size, mode, link))| {
        let mut entry = Entry::of_kind(path, kind).with_modified(time);
        entry.size = size;
        entry.with_mode(mode).with_link(link)
    })
}

fn skipped() -> impl Strategy<Value = Skipped> {
    any::<[u64; 7]>().prop_map(
        |[
            hidden,
            ignored,
            generated,
            binary,
            unreadable,
            long_line,
            not_utf8,
        ]| {
            let mut skipped = Skipped::default();
            (skipped.hidden, skipped.ignored, skipped.binary) = (hidden, ignored, binary);
            (skipped.unreadable, skipped.long_line) = (unreadable, long_line);
            (skipped.generated, skipped.not_utf8) = (generated, not_utf8);
            skipped
        },
    )
}

fn exclude() -> impl Strategy<Value = Exclude> {
    let action = prop::sample::select(vec![ExcludeAction::Hide, ExcludeAction::Keep]);
    let rule =
        (r"/?[a-z*?]{1,6}", action).prop_map(|(text, action)| ExcludeRule::new(text, action));
    let layers = prop::collection::vec(prop::collection::vec(rule, 0..4), 0..3);
    layers.prop_filter_map("globs", |layers| Exclude::from_layers(layers).ok())
}

fn links() -> impl Strategy<Value = Links> {
    prop::sample::select(vec![Links::Follow, Links::Refuse])
}

fn status() -> impl Strategy<Value = CommandStatus> {
    prop_oneof![
        any::<i32>().prop_map(CommandStatus::Exited),
        any::<i32>().prop_map(CommandStatus::Signalled),
        Just(CommandStatus::TimedOut),
        Just(CommandStatus::OutputLimited),
    ]
}

fn data() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn outcome() -> impl Strategy<Value = ExecuteOutcome> {
    let output = (data(), data(), any::<u64>()).prop_map(|(head, tail, dropped)| {
        let mut output = Output::whole(head);
        (output.tail, output.dropped) = (tail, dropped);
        output
    });
    let output = output.boxed();
    let numbers = (any::<u32>(), any::<Duration>());
    (status(), output.clone(), output, numbers).prop_map(|(status, out, err, (left, time))| {
        let mut outcome = ExecuteOutcome::new(status);
        (outcome.stdout, outcome.stderr) = (out, err);
        (outcome.leftovers, outcome.duration) = (left, time);
        outcome
    })
}

fn matches() -> impl Strategy<Value = FileMatches> {
    let kind = prop::sample::select(vec![LineKind::Match, LineKind::Context]);
    let lines = prop::collection::vec((1..1000_u64, kind, data()), 0..20);
    (path(), lines).prop_map(|(path, lines)| {
        let mut at = 0;
        let lines = lines.into_iter().map(|(step, kind, text)| {
            at += step;
            (at, kind, text)
        });
        FileMatches::from_lines(path, lines.collect::<Vec<_>>())
    })
}

fn text() -> impl Strategy<Value = TextWindow> {
    let content = r"([a-zé]{0,12}(\n|\r\n)?){0,12}";
    let request = (0..3_u64, 1..8_usize, 1..9_usize, 1..60_usize, any::<bool>());
    (content, request).prop_filter_map("a window", |(content, request)| {
        let (offset, limit, max_line_bytes, max_bytes, count_total) = request;
        let request = TextOptions::default()
            .offset(offset)
            .limit(limit)
            .max_line_bytes(max_line_bytes)
            .max_bytes(max_bytes)
            .count_total(count_total);
        window(content.as_bytes(), request).ok()
    })
}

proptest! {
    #[test]
    fn places_and_what_stands_there(
        path in path(),
        entries in prop::collection::vec(entry(), 0..8),
        skipped in skipped(),
        total in any::<usize>(),
    ) {
        prop_assert_eq!(&again(&path), &path);
        let mut listing = Listing::default();
        (listing.entries, listing.skipped, listing.total) = (entries, skipped, total);
        prop_assert_eq!(&again(&listing), &listing);
    }

    #[test]
    fn searches(
        path in path(),
        exclude in exclude(),
        links in links(),
        pattern in ".{0,12}",
        numbers in any::<[usize; 5]>(),
        flags in any::<[bool; 5]>(),
    ) {
        prop_assert_eq!(&again(&exclude), &exclude);
        let ls = LsOptions::default().links(links).limit(numbers[0]).exclude(exclude.clone());
        prop_assert_eq!(format!("{:?}", again(&ls)), format!("{ls:?}"));
        let glob = GlobQuery::new(pattern.clone(), path.clone()).order(GlobOrder::NewestFirst);
        let glob = glob.limit(numbers[0]).hidden(flags[0]).ignored(flags[1]).links(links);
        let glob = glob.generated(flags[4]).exclude(exclude.clone());
        prop_assert_eq!(format!("{:?}", again(&glob)), format!("{glob:?}"));
        let grep = GrepQuery::new(pattern.clone(), path).case(Case::Insensitive).files(pattern);
        let grep = grep.literal(flags[0]).multi_line(flags[1]).context(numbers[0], numbers[1]);
        let grep = grep.max_matches(numbers[2]).max_bytes(numbers[3]).max_line_bytes(numbers[4]);
        let grep = grep.generated(!flags[4]);
        let grep = grep.hidden(flags[2]).ignored(flags[3]).links(links).exclude(exclude);
        prop_assert_eq!(format!("{:?}", again(&grep)), format!("{grep:?}"));
    }

    #[test]
    fn what_grep_finds(files in prop::collection::vec(matches(), 0..4), skipped in skipped()) {
        let mut result = GrepResult::default();
        result.matches = files.iter().map(|file| file.matches).sum();
        (result.files, result.skipped, result.truncated) = (files, skipped, true);
        let again = again(&result);
        prop_assert_eq!(&again, &result);
        for (one, two) in again.files.iter().zip(&result.files) {
            prop_assert_eq!(one.matches, two.matches);
            prop_assert_eq!(one.shown_bytes(), two.shown_bytes());
        }
    }

    #[test]
    fn text_windows(window in text()) {
        let again = again(&window);
        prop_assert_eq!(&again, &window);
        prop_assert!(again.lines().eq(window.lines()));
    }

    #[test]
    fn options(
        links in links(),
        range in any::<(u64, Option<u64>)>(),
        numbers in any::<[usize; 4]>(),
        hash in any::<[u8; 32]>(),
    ) {
        let mut wanted = ByteRange::default();
        (wanted.start, wanted.end) = range;
        let read = ReadOptions::default().links(links).range(wanted).max_bytes(range.0);
        prop_assert_eq!(again(&read), read);
        let text = TextOptions::default().links(links).offset(range.0).limit(numbers[0]);
        let text = text.max_line_bytes(numbers[1]).max_bytes(numbers[2]).count_total(true);
        prop_assert_eq!(again(&text), text);
        let mode = WriteMode::IfUnchanged(ContentHash::from_bytes(hash));
        let write = WriteOptions::default().links(links).mode(mode).durable(true);
        prop_assert_eq!(again(&write), write);
        let edit = Edit::new(format!("{hash:?}"), "\0\n");
        prop_assert_eq!(&again(&edit), &edit);
    }

    #[test]
    fn commands(
        line in ".{0,20}",
        directory in prop::option::of(path()),
        environment in prop::collection::vec((".{0,5}", ".{0,5}"), 0..4),
        timeout in any::<Option<Duration>>(),
        numbers in any::<(usize, u64, bool)>(),
    ) {
        let mut command = Command::new(line).timeout(timeout).streams(Streams::Merged);
        (command.directory, command.environment) = (directory, environment);
        let (output, hard, keep) = numbers;
        let command = command.output_bytes(output).hard_output_bytes(hard).keep_leftovers(keep);
        prop_assert_eq!(&again(&command), &command);
    }

    #[test]
    fn outcomes(outcome in outcome(), data in data(), pid in any::<Option<u32>>(), dropped in any::<u64>()) {
        prop_assert_eq!(&again(&outcome), &outcome);
        let mut output = ShellOutput::new(ShellState::Ended(outcome.status));
        (output.stdout, output.stderr, output.dropped) = (data.clone(), data.clone(), dropped);
        prop_assert_eq!(&again(&output), &output);
        let mut info = ShellInfo::new(ShellId::new("bg_1"), "line", pid);
        info.state = output.state;
        prop_assert_eq!(&again(&info), &info);
        for event in [Event::Stdout(data.clone()), Event::Stderr(data), Event::Ended(outcome)] {
            prop_assert_eq!(&again(&event), &event);
        }
    }

    #[test]
    fn errors(message in r"[a-zé '\n\t]{0,40}", place in path(), source in r"[a-z]{0,10}") {
        let io = std::io::Error::other(source.clone());
        let below = Error::new(ErrorKind::Auth, source.clone()).with_source(io);
        let error = Error::new(ErrorKind::TooLarge, message.clone()).with_source(below);
        let error = error.at(Operation::Glob, &place).on("left behind");
        let again = again(&error);
        prop_assert_eq!(again.kind(), error.kind());
        prop_assert_eq!(again.operation(), error.operation());
        prop_assert_eq!(again.path(), error.path());
        prop_assert_eq!(again.message(), &message);
        prop_assert_eq!(again.backend(), None);
        let texts = again.source().map(|below| (below.to_string(), below.source().unwrap().to_string()));
        prop_assert_eq!(texts, Some((source.clone(), source)));
    }

    /// Bytes modified in transit are rejected, or decode to something that can be
    /// used without harm.
    #[test]
    fn changed_bytes_are_harmless(
        matches in matches(),
        text in text(),
        entry in entry(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let change = |value: Vec<u8>| {
            let mut value = value;
            for (at, byte) in &changes {
                let at = at.index(value.len());
                value[at] = *byte;
            }
            value
        };
        look(&change(bytes(&matches)));
        look(&change(bytes(&text)));
        look(&change(bytes(&entry)));
    }

    #[test]
    fn any_bytes_are_harmless(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        look(&bytes);
    }
}

/// Decodes the bytes as every type and accesses all parts of the result.
fn look(bytes: &[u8]) {
    if let Ok(file) = postcard::from_bytes::<FileMatches>(bytes) {
        assert_eq!(
            file.lines().map(|line| line.bytes.len()).sum::<usize>(),
            file.shown_bytes()
        );
        let _ = format!("{file:?}");
    }
    if let Ok(window) = postcard::from_bytes::<TextWindow>(bytes) {
        let lines: Vec<_> = window.lines().map(|line| line.to_string()).collect();
        assert_eq!(lines.len(), window.line_count());
        assert!(
            window
                .next_offset()
                .is_none_or(|next| next >= window.first_line() - 1)
        );
    }
    if let Ok(entry) = postcard::from_bytes::<Entry>(bytes) {
        let _ = format!("{entry:?}");
        assert!(entry.path.as_str().starts_with('/'));
    }
    if let Ok(error) = postcard::from_bytes::<Error>(bytes) {
        let _ = error.chain().to_string();
    }
}

#[test]
fn forged_matches_are_refused() {
    // The text, each line's number and end, and the cuts.
    let is_refused = |text: &'static str, lines: &[(u64, u32)], cuts: &[(usize, u64)]| {
        let lines: Vec<_> = lines
            .iter()
            .map(|(n, end)| (n, end, LineKind::Match))
            .collect();
        let forged = bytes(&(VPath::root(), Bytes::from(text), lines, cuts));
        postcard::from_bytes::<FileMatches>(&forged).is_err()
    };
    assert!(!is_refused("abc", &[(1, 1), (2, 2)], &[(1, 5)]));
    for (why, text, lines, cuts) in [
        ("past the end", "abc", &[(1, 4)][..], &[][..]),
        ("far past the end", "abc", &[(1, 1), (2, u32::MAX)], &[]),
        ("text without a line", "abc", &[(1, 2)], &[]),
        ("back", "ab", &[(2, 1), (1, 1)], &[]),
        ("twice", "ab", &[(1, 1), (1, 1)], &[]),
        ("line 0", "a", &[(0, 1)], &[]),
        ("the last number", "a", &[(u64::MAX, 1)], &[]),
        ("a cut of no line", "a", &[(1, 1)], &[(1, 1)]),
        ("two cuts of a line", "a", &[(1, 1)], &[(0, 1), (0, 1)]),
    ] {
        assert!(is_refused(text, lines, cuts), "{why}");
    }
}

#[test]
fn forged_windows_are_refused() {
    let is_refused = |text: &str, lines: usize, cuts: &[(usize, u64)], offset: u64, total| {
        let forged = bytes(&(text, lines, cuts, offset, false, total, 0_u8));
        postcard::from_bytes::<TextWindow>(&forged).is_err()
    };
    assert!(!is_refused("a\nb", 2, &[(1, 3)], 7, Some(9_u64)));
    assert!(!is_refused("", 0, &[], 0, Some(0)));
    assert!(!is_refused("", 1, &[], 0, Some(1)));
    for (why, text, lines, cuts, offset, total) in [
        ("more lines than there are", "a\nb", 3, &[][..], 0, None),
        ("fewer lines than there are", "a\nb", 1, &[], 0, None),
        ("text without a line", "a", 0, &[], 0, None),
        ("a cut of no line", "a", 1, &[(1, 1)], 0, None),
        ("cuts out of order", "a\nb", 2, &[(1, 1), (0, 1)], 0, None),
        ("a number too large", "a", 1, &[], u64::MAX, None),
        ("a number too large", "a", 1, &[], u64::MAX - 1, None),
        ("fewer lines than are shown", "a", 1, &[], 5, Some(5)),
    ] {
        assert!(is_refused(text, lines, cuts, offset, total), "{why}");
    }
}

#[test]
fn forged_paths_times_and_rules_are_refused() {
    for forged in ["", "a", "~/a", "/../a", "/a\0b", "/.agentbox-tmp-1"] {
        assert!(
            postcard::from_bytes::<VPath>(&bytes(&forged)).is_err(),
            "{forged:?}"
        );
    }
    let folded: VPath = postcard::from_bytes(&bytes(&"/a/./b//../c")).unwrap();
    assert_eq!(folded.as_str(), "/a/c");
    let entry = |time: Option<(i64, u32)>| {
        let forged = (VPath::root(), 0_u8, false, None::<u64>, time, None::<u32>);
        postcard::from_bytes::<Entry>(&bytes(&forged))
    };
    assert!(entry(Some((-1, 999_999_999))).is_ok());
    assert!(
        entry(Some((0, 1_000_000_000))).is_err(),
        "a second of nanoseconds"
    );
    assert!(entry(Some((i64::MAX, 999_999_999))).is_ok());
    let rule = vec![vec![("[", 0_u8)]];
    assert!(postcard::from_bytes::<Exclude>(&bytes(&rule)).is_err());
}

/// A message from outside is cut, and control characters in it are replaced.
#[test]
fn foreign_errors_are_cut_and_cleaned() {
    let text = format!("\x1b[2J\u{9b}{}", "é".repeat(10_000));
    let sources = vec![text.clone(); 100];
    let near = Candidate {
        line: 1,
        text: text.clone(),
        why: Similarity::Close,
    };
    let edit = |edit: EditError| {
        let parts = (0_u8, None::<u8>, None::<VPath>, &text, Some(edit), &sources);
        postcard::from_bytes::<Error>(&bytes(&parts)).unwrap()
    };
    let error = edit(EditError::NoMatch {
        index: 0,
        of: 1,
        candidates: vec![near; 100],
    });
    let Some(EditError::NoMatch { candidates, .. }) = error.edit_error() else {
        panic!("{error:?}");
    };
    assert_eq!(candidates.len(), 3);
    assert!(candidates[0].text.starts_with("\u{fffd}[2J\u{fffd}é"));
    assert!(candidates[0].text.len() < 220);
    let many = edit(EditError::MultipleMatches {
        index: 0,
        of: 1,
        count: 1_000,
        lines: vec![1; 1_000],
    });
    assert!(matches!(
        many.edit_error(),
        Some(EditError::MultipleMatches { lines, .. }) if lines.len() == 5
    ));
    assert!(error.message().starts_with("\u{fffd}[2J\u{fffd}é"));
    assert!(error.message().len() < 9_000);
    assert!(error.chain().to_string().len() < 50_000);
    let long = Error::internal("x".repeat(100_000)).with_source("y".repeat(100_000));
    assert!(bytes(&long).len() < 20_000);
}
