//! Published vulnerabilities through model input: patterns, names, nesting,
//! line ends. See `attack_regressions.rs` for those about confinement.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::time::Duration;

use backend_core::ops::{ContentHash, ReadOptions, TextOptions, WriteMode, WriteOptions};
use backend_core::{Backend as _, BackendExt as _, ErrorKind};
use backend_local::LocalBackend;
use backend_testkit::fails;

use crate::support::place::Place;

/// Only a hang takes this long.
const SOON: Duration = Duration::from_secs(180);

/// pydantic-ai-backend: every `\r` was deleted on write, and an edit changed
/// line ends and encodings that it was not asked about.
#[tokio::test(flavor = "multi_thread")]
async fn carriage_returns_and_encodings_are_kept() {
    let place = Place::new();
    let backend = place.builder().open().unwrap();
    let mixed = "a\r\nb\nc\rd\r\r\ne";
    backend.write_file("mixed", mixed).await.unwrap();
    assert_eq!(
        fs::read(place.root.join("mixed")).unwrap(),
        mixed.as_bytes()
    );
    backend.replace_text("mixed", "c", "C").await.unwrap();
    let edited = fs::read(place.root.join("mixed")).unwrap();
    assert_eq!(edited, mixed.replace('c', "C").as_bytes());
    let latin = b"caf\xe9 old\r\n";
    fs::write(place.root.join("latin"), latin).unwrap();
    let edit = backend.replace_text("latin", "old", "new").await;
    fails(ErrorKind::NotText, edit);
    assert_eq!(fs::read(place.root.join("latin")).unwrap(), latin);
}

/// A pattern never finished (ReDoS), or used all memory.
#[tokio::test(flavor = "multi_thread")]
async fn patterns_end_soon() {
    let place = Place::new();
    place.write("file", &format!("{}!\n", "a".repeat(1_000_000)));
    let backend = place.builder().open().unwrap();
    let expensive = "(a+)+$ (a|aa)+$ (a|a?)+$ (.*)*x (a*)*b ^(([a-z])+.)+[A-Z]([a-z])+$ \
        (?s)(.*a){20}b";
    for pattern in expensive.split(' ') {
        let found = tokio::time::timeout(SOON, backend.search_text(pattern)).await;
        let found = found.unwrap_or_else(|_| panic!("{pattern} takes for ever"));
        assert!(found.is_ok(), "{pattern}: {found:?}");
    }
    for pattern in [
        "a{1000}{1000}{1000}",
        "(?:a{1000}){1000}",
        &"(".repeat(10_000),
    ] {
        let found = tokio::time::timeout(SOON, backend.search_text(pattern)).await;
        let kind = found
            .unwrap_or_else(|_| panic!("takes for ever"))
            .unwrap_err()
            .kind();
        assert_eq!(kind, ErrorKind::InvalidInput);
    }
    let expensive = "*a*a*a*a*a*a*a*a*a*a*b {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} \
        **/**/**/**/**/x";
    for pattern in expensive.split(' ') {
        let found = tokio::time::timeout(SOON, backend.find_files(pattern)).await;
        found
            .unwrap_or_else(|_| panic!("{pattern} takes for ever"))
            .unwrap();
    }
}

/// `:`, line ends and leading dashes in names broke the parsing of a search's
/// output, and with it what was read or deleted next.
#[tokio::test(flavor = "multi_thread")]
async fn names_survive_the_round_trip() {
    let place = Place::new();
    let names = [
        "a:1:b",
        "new\nline",
        "-rf",
        "--pre=sh",
        "tab\there",
        "\u{1b}[31mred",
        "quote'\"`",
        "$(id)",
        "*",
        "[x]",
        "back\\slash",
        " leading",
        "trailing ",
        "\r",
        "%2e%2e",
        "..hidden",
        "...",
        "\u{202e}txt",
        "é",
        "e\u{301}",
        "x\u{7f}",
    ];
    for (kind, backend) in place.backends() {
        for name in names {
            backend
                .write_file(&format!("d/{name}"), "needle\n")
                .await
                .unwrap();
        }
        let listing = backend.list_dir("d").await.unwrap();
        assert_eq!(listing.total, names.len(), "{kind}");
        let query = backend_core::ops::GlobQuery::new("*", backend.path("d").unwrap()).hidden(true);
        let found = backend.glob(query).await.unwrap();
        let query = backend_core::ops::GrepQuery::new("needle", backend.path("d").unwrap());
        let hits = backend.grep(query.hidden(true)).await.unwrap();
        let listed = listing.entries.iter().map(|entry| &entry.path);
        let globbed = found.files.iter().map(|entry| &entry.path);
        let grepped = hits.files.iter().map(|file| &file.path);
        for paths in [
            listed.collect::<Vec<_>>(),
            globbed.collect(),
            grepped.collect(),
        ] {
            assert_eq!(paths.len(), names.len(), "{kind}: {paths:?}");
            for path in paths {
                assert!(
                    names.contains(&path.file_name().unwrap()),
                    "{kind}: {path:?}"
                );
                let read = backend.read(path, ReadOptions::default()).await.unwrap();
                assert_eq!(&read.data[..], b"needle\n");
            }
        }
        for (number, name) in names.iter().enumerate() {
            let (from, to) = (format!("d/{name}"), format!("moved/{number}"));
            backend.move_to(&from, &to).await.unwrap();
        }
        assert!(backend.list_dir("d").await.unwrap().entries.is_empty());
        backend.delete_tree("moved").await.unwrap();
    }
}

/// Directories nested deeper than any path exhausted the stack or the
/// descriptors of the program that walked them.
#[tokio::test(flavor = "multi_thread")]
async fn trees_deeper_than_any_path_end_soon() {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    let place = Place::new();
    place.write("file", "needle");
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = open(&place.root, flags, Mode::empty()).unwrap();
    for _ in 0..3_000 {
        mkdirat(&at, "deep", Mode::from_raw_mode(0o755)).unwrap();
        at = openat(&at, "deep", flags, Mode::empty()).unwrap();
    }
    drop(at);
    for (kind, backend) in place.backends() {
        let search = async {
            let found = backend.search_text("needle").await.unwrap();
            (
                found.matches,
                backend.find_files("**").await.unwrap().files.len(),
            )
        };
        let found = tokio::time::timeout(SOON, search).await;
        assert_eq!(
            found.unwrap_or_else(|_| panic!("{kind}: a search hangs")),
            (1, 1)
        );
        let copied = tokio::time::timeout(SOON, backend.copy_to("deep", "copy")).await;
        assert!(copied.unwrap().is_err(), "{kind}");
    }
    let backend = place.builder().open().unwrap();
    let deleted = tokio::time::timeout(SOON, backend.delete_tree("deep")).await;
    deleted
        .unwrap_or_else(|_| panic!("deleting hangs"))
        .unwrap();
    assert!(!place.root.join("deep").exists());
}

/// The parts of a virtual path are only ever used as names.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_in_a_path_is_decoded_or_expanded() {
    let place = Place::new();
    let backend: LocalBackend = place.builder().open().unwrap();
    let spellings = "%2e%2e/outside/secret ..\\outside\\secret $HOME file:///etc/passwd ..%00/x";
    for path in spellings.split(' ') {
        let read = backend.read_bytes(path).await;
        assert_eq!(read.unwrap_err().kind(), ErrorKind::NotFound, "{path}");
    }
    for path in [
        "../outside/secret",
        "/../outside/secret",
        "a/../../outside/secret",
        "~/x",
        "x\0",
    ] {
        let read = backend.read_bytes(path).await;
        assert_eq!(read.unwrap_err().kind(), ErrorKind::InvalidPath, "{path:?}");
    }
}

/// A sparse file of a terabyte kept a reader busy forever, and its copy took up
/// a terabyte.
#[tokio::test(flavor = "multi_thread")]
async fn holes_cost_nothing() {
    let place = Place::new();
    let head = "line\n".repeat(20_000);
    let sparse = |name: &str, size: u64| {
        place.write(name, &head);
        let file = File::options().write(true).open(place.root.join(name));
        let file = file.unwrap();
        file.write_all_at(b"middle", size / 2).unwrap();
        file.write_all_at(b"\nlast\n", size - 6).unwrap();
        file.set_len(size + size / 2).unwrap();
    };
    sparse("huge", 1 << 40);
    sparse("large", 1 << 30);
    let backend = place.builder().open().unwrap();
    let path = backend.path("huge").unwrap();
    let soon = async |offset| {
        let options = TextOptions::default().offset(offset).count_total(true);
        let read = tokio::time::timeout(SOON, backend.read_text(&path, options)).await;
        read.unwrap_or_else(|_| panic!("reading holes takes for ever"))
    };
    let window = soon(19_999).await.unwrap();
    let lines: Vec<_> = window.lines().map(|line| line.cut_bytes).collect();
    let middle = (1 << 40) - 6 - head.len() as u64 - 2_000;
    let end = (1 << 39) - 2_000;
    assert_eq!(lines, [0, middle, 0, end], "each hole is one line");
    assert_eq!(window.total_lines, Some(20_003));
    let found = tokio::time::timeout(SOON, backend.search_text("last")).await;
    found.expect("searching holes takes for ever").unwrap();
    let read = backend.read(&path, ReadOptions::default()).await;
    fails(ErrorKind::TooLarge, read);
    let mode = WriteMode::IfUnchanged(ContentHash::of(b""));
    let options = WriteOptions::default().mode(mode);
    let written = tokio::time::timeout(SOON, backend.write(&path, "x".into(), options)).await;
    let written = written.expect("comparing holes takes for ever");
    fails(ErrorKind::TooLarge, written);

    backend.copy_to("large", "copy").await.unwrap();
    let (from, to) = (place.root.join("large"), place.root.join("copy"));
    let copied = to.metadata().unwrap();
    assert_eq!(copied.len(), from.metadata().unwrap().len());
    let taken = copied.blocks() * 512;
    assert!(taken < 16 << 20, "the copy takes {taken} bytes");
    let (from, to) = (File::open(from).unwrap(), File::open(to).unwrap());
    for offset in [0, 1 << 29, (1 << 30) - 6, (3 << 29) - 100_000] {
        let content = |file: &File| {
            let mut content = vec![1; 100_000];
            file.read_exact_at(&mut content, offset).unwrap();
            content
        };
        assert_eq!(content(&from), content(&to), "at {offset}");
    }
}
