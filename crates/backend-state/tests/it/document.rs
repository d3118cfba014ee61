//! The JSON document: written, read back, and read from other systems.
use std::io::Read;
use std::time::{Duration, SystemTime};

use backend_core::ops::CreateDirOptions;
use backend_core::{Backend as _, BackendExt as _, ErrorKind, VPath};
use backend_state::{Snapshot, StateBackend};
use backend_testkit::block_on;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

fn load(document: &Value) -> Snapshot {
    Snapshot::from_json(document.to_string()).unwrap()
}

fn content(snapshot: &Snapshot, path: &str) -> Bytes {
    snapshot.get(&VPath::parse(path).unwrap()).unwrap()
}

/// Checks that a document is refused with a message that contains `hint`.
fn refused(document: &str, hint: &str) {
    let error = Snapshot::from_json(document).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains(hint), "{error}");
}

#[test]
fn text_is_readable_and_bytes_are_marked() {
    let files = [
        ("/text", &b"a\r\n\"b\"\n"[..]),
        ("/nul", b"a\0b"),
        ("/bytes", b"\xff\xfe"),
        ("/empty", b""),
    ];
    let files = files.map(|(path, content)| (path, Bytes::from_static(content)));
    let snapshot = Snapshot::from_files(files).unwrap();
    let json: Value = serde_json::from_str(&snapshot.to_json().unwrap()).unwrap();
    assert_eq!(
        json,
        json!({
            "format": "agentbox-state",
            "version": 1,
            "files": {
                "/text": { "content": "a\r\n\"b\"\n" },
                "/nul": { "content": "YQBi", "encoding": "base64" },
                "/bytes": { "content": "//4=", "encoding": "base64" },
                "/empty": { "content": "" },
            },
            "directories": [],
        })
    );
    assert_eq!(load(&json), snapshot);
}

#[test]
fn times_and_empty_directories_come_back() {
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
    let backend = StateBackend::builder().clock(move || time).build();
    block_on(async {
        backend.write_file("a/file", "x").await.unwrap();
        let empty = backend.path("b/empty").unwrap();
        let options = CreateDirOptions::default();
        backend.create_dir(&empty, options).await.unwrap();
    });
    let before = backend.snapshot();
    let json = before.to_json().unwrap();
    assert!(json.contains("2023-11-14T22:13:20.123456789Z"), "{json}");
    assert!(json.contains(r#""directories":["/b/empty"]"#), "{json}");
    let after = Snapshot::from_json(&json).unwrap();
    assert_eq!(after, before);
    assert_eq!(after.iter().next().unwrap().modified, Some(time));
}

#[test]
fn a_time_that_no_document_can_say_is_an_error() {
    let far = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 45);
    let backend = StateBackend::builder().clock(move || far).build();
    block_on(backend.write_file("file", "x")).unwrap();
    let error = backend.snapshot().to_json().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
}

#[test]
fn loads_lists_of_lines_under_files() {
    let snapshot = load(&json!({
        "files": {
            "/a.txt": {
                "content": ["one", "two", ""],
                "created_at": "2025-01-02T03:04:05.678901+00:00",
                "modified_at": "2025-01-02T03:04:05.678901+00:00",
            },
            "/b.bin": { "content": ["/wA="], "encoding": "base64", "created_at": "2025-01-02T03:04:05+00:00", "modified_at": "2025-01-02T03:04:05+00:00" },
            "/empty": { "content": [""] },
            "/nothing": { "content": [] },
        },
        "directories": ["/kept", "/"],
    }));
    assert_eq!(content(&snapshot, "/a.txt"), "one\ntwo\n");
    assert_eq!(content(&snapshot, "/b.bin"), &b"\xff\0"[..]);
    assert_eq!(content(&snapshot, "/empty"), "");
    assert_eq!(content(&snapshot, "/nothing"), "");
    let seconds = Duration::new(1_735_787_045, 678_901_000);
    let first = snapshot.iter().next().unwrap();
    assert_eq!(first.created, Some(SystemTime::UNIX_EPOCH + seconds));
    let backend = StateBackend::builder().snapshot(snapshot).build();
    assert_eq!(block_on(backend.list_dir("kept")).unwrap().total, 0);
}

#[test]
fn loads_a_bare_map_of_files() {
    let snapshot = load(&json!({ "/a": { "content": ["x"] }, "/b/c": { "content": "y" } }));
    assert_eq!(snapshot.len(), 2);
    assert_eq!(content(&snapshot, "/b/c"), "y");
}

#[test]
fn loads_bytes_hidden_in_lone_surrogates() {
    let document = r#"{"/f": {"content": ["caf\udce9", "\udc80\udcff ok \ud83e\udd80"]}}"#;
    let snapshot = Snapshot::from_json(document).unwrap();
    let expected = b"caf\xe9\n\x80\xff ok \xf0\x9f\xa6\x80";
    assert_eq!(content(&snapshot, "/f"), &expected[..]);
    let document = r#"{"/f": {"content": "caf\udce9"}}"#;
    let snapshot = Snapshot::from_json(document).unwrap();
    assert_eq!(content(&snapshot, "/f"), &b"caf\xe9"[..]);
}

#[test]
fn loads_from_any_serde_format() {
    let value = json!({ "/a": { "content": "x" }, "/b": { "content": ["y", "z"] } });
    let snapshot: Snapshot = serde_json::from_value(value).unwrap();
    assert_eq!(content(&snapshot, "/b"), "y\nz");
}

#[test]
fn refuses_what_it_cannot_load_whole() {
    refused("", "EOF");
    refused("[]", "a document of files");
    refused("{\"files\": 7}", "a map of files");
    refused(r#"{"format": "other"}"#, "agentbox-state");
    refused(r#"{"version": 2, "files": {}}"#, "version is 2");
    refused(r#"{"version": -1}"#, "-1");
    refused(r#"{"unknown": 1}"#, "unknown");
    refused(r#"{"files": {"/a": {"content": 7}}}"#, "string or a list");
    refused(r#"{"files": {"/a": {}}}"#, "content");
    refused(r#"{"/a": {"content": "x", "mode": 7}}"#, "mode");
    refused(r#"{"/a": {"content": "x", "encoding": "rot13"}}"#, "rot13");
    refused(
        r#"{"/a": {"content": "?", "encoding": "base64"}}"#,
        "base64",
    );
    refused(
        r#"{"/a": {"content": "YQ==\nYQ==", "encoding": "base64"}}"#,
        "base64",
    );
    refused(r#"{"/a": {"content": "x", "modified_at": "soon"}}"#, "soon");
    refused(r#"{"/a": {"content": "x", "created_at": "soon"}}"#, "soon");
    refused(r#"{"/a": {"content": "\ud800x"}}"#, "a lone surrogate");
    refused(r#"{"/a": {"content": "\udc00x"}}"#, "a lone surrogate");
}

#[test]
fn refuses_paths_that_cannot_be() {
    refused(r#"{"files": {"/../x": {"content": ""}}}"#, "above the root");
    refused(r#"{"files": {"~/x": {"content": ""}}}"#, "not expanded");
    refused(r#"{"files": {"/": {"content": ""}}}"#, "directory");
    refused(
        r#"{"/c": {"content": ""}, "/c/x": {"content": ""}}"#,
        "not a directory",
    );
    refused(
        r#"{"/c/x": {"content": ""}, "/c": {"content": ""}}"#,
        "directory",
    );
    refused(
        r#"{"/c": {"content": ""}, "//c": {"content": ""}}"#,
        "twice",
    );
    refused(
        r#"{"files": {"/c": {"content": ""}}, "directories": ["/c"]}"#,
        "as a file and as a directory",
    );
    refused(
        r#"{"files": {"/c": {"content": ""}}, "directories": ["/c/d"]}"#,
        "not a directory",
    );
    refused(r#"{"directories": ["/a\u0000"]}"#, "NUL");
}

#[test]
fn snapshots_compare_by_what_they_hold() {
    let one = Snapshot::from_files([("/a", "x"), ("/b", "y")]).unwrap();
    let two = Snapshot::from_files([("/b", "y"), ("/a", "x")]).unwrap();
    assert_eq!(one, two);
    assert_eq!(one, one.clone());
    assert_ne!(
        one,
        Snapshot::from_files([("/a", "x"), ("/b", "z")]).unwrap()
    );
    assert_ne!(one, Snapshot::default());
    assert!(Snapshot::default().is_empty() && !one.is_empty());
    assert_eq!(one.iter().count(), 2);
    assert_eq!(one.get(&VPath::root()), None);
}

#[test]
fn files_that_stand_in_each_others_way_are_refused() {
    let kind = |files: &[(&'static str, &'static str)]| {
        let error = Snapshot::from_files(files.iter().copied()).unwrap_err();
        error.kind()
    };
    assert_eq!(kind(&[("/a", ""), ("/a/b", "")]), ErrorKind::NotADirectory);
    assert_eq!(kind(&[("/a/b", ""), ("/a", "")]), ErrorKind::IsADirectory);
    assert_eq!(kind(&[("/a", ""), ("a", "")]), ErrorKind::AlreadyExists);
    assert_eq!(kind(&[("a\0", "")]), ErrorKind::InvalidPath);
}

proptest! {
    #[test]
    fn any_store_comes_back_byte_by_byte(
        files in prop::collection::btree_map("[a-c]{1,3}", prop::collection::vec(any::<u8>(), 0..40), 0..10)
    ) {
        let files: Vec<_> = files.into_iter().map(|(name, content)| (format!("/d/{name}"), content)).collect();
        let snapshot = Snapshot::from_files(files.clone()).unwrap();
        let again = Snapshot::from_json(snapshot.to_json().unwrap()).unwrap();
        prop_assert_eq!(&again, &snapshot);
        for (path, bytes) in files {
            prop_assert_eq!(content(&again, &path), bytes);
        }
    }

    /// Broken into lines as in MIME and PEM, and as a list of lines.
    #[test]
    fn base64_loads_in_any_number_of_lines(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        width in 1_usize..80,
        line_end in prop::sample::select(vec!["\n", "\r\n", " ", "\t", "\n\n  "]),
        last in any::<bool>(),
    ) {
        let whole = STANDARD.encode(&bytes);
        let lines: Vec<_> = whole
            .as_bytes()
            .chunks(width)
            .map(|line| str::from_utf8(line).unwrap())
            .collect();
        let mut text = lines.join(line_end);
        if last {
            text.push_str(line_end);
        }
        for stored in [json!(text), json!(lines)] {
            let snapshot = load(&json!({"/a": {"content": stored, "encoding": "base64"}}));
            prop_assert_eq!(content(&snapshot, "/a"), bytes.clone());
        }
    }

    #[test]
    fn any_text_is_a_document_or_a_typed_error(text in any::<String>()) {
        if let Err(error) = Snapshot::from_json(&text) {
            prop_assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
    }
}

/// The limits hold while loading, and anything beyond them is not even read.
#[test]
fn what_is_loaded_keeps_the_limits() {
    let small = || StateBackend::builder().max_file_bytes(1_000);
    let refused = |document: &mut dyn Read, about: &str| {
        let error = small().max_total_bytes(100_000).load(document).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.message().contains(about), "{error}");
    };
    let one = |size: usize| format!(r#"{{"/a": {{"content": "{}"}}}}"#, "x".repeat(size));
    let store = small().load(one(1_000).as_bytes()).unwrap().build();
    assert_eq!(store.snapshot().len(), 1);
    refused(&mut one(1_001).as_bytes(), "file \"/a\"");
    let encoded = "eHh4".repeat(400);
    let binary = format!(r#"{{"/a": {{"content": "{encoded}", "encoding": "base64"}}}}"#);
    refused(&mut binary.as_bytes(), "1000 bytes");
    let many: Vec<_> = (0..200).map(|number| format!("/{number}")).collect();
    let files: Vec<_> = many
        .iter()
        .map(|path| (path.clone(), "x".repeat(900)))
        .collect();
    let json = Snapshot::from_files(files).unwrap().to_json().unwrap();
    refused(&mut json.as_bytes(), "100000 bytes");
    let json = format!(r#"{{"directories": {}}}"#, serde_json::json!(many));
    small().load(json.as_bytes()).unwrap();
    let many: Vec<_> = (0..2_000).map(|number| format!("/{number}")).collect();
    let json = format!(r#"{{"directories": {}}}"#, serde_json::json!(many));
    refused(&mut json.as_bytes(), "100000 bytes");
    for start in [
        r#"{"/a": {"content": ""#,
        r#"{"/"#,
        r#"{"format": ""#,
        r#"{"/a": {"content": "\\\""#,
    ] {
        let endless = std::io::repeat(b'x');
        refused(
            &mut start.as_bytes().chain(endless),
            "a file in it exceeds the file size limit",
        );
    }
    let lines = Lines(Box::new(r#"{"/a": {"content": ["x""#.bytes()));
    refused(&mut { lines }, "a file in it exceeds the file size limit");
    refused(&mut &b"{} more"[..], "trailing");
}

/// An endless document of lines.
struct Lines(Box<dyn Iterator<Item = u8>>);

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut count = 0;
        for (place, byte) in buffer.iter_mut().zip(&mut self.0) {
            *place = byte;
            count += 1;
        }
        if count == 0 {
            self.0 = Box::new(br#","more""#.iter().copied());
            return self.read(buffer);
        }
        Ok(count)
    }
}

/// Changes to a fork are not visible in the original store.
#[tokio::test]
async fn a_fork_goes_its_own_way() {
    let store = StateBackend::builder().max_file_bytes(5).build();
    store.write_file("/a", "one").await.unwrap();
    let fork = store.fork();
    fork.write_file("/a", "two").await.unwrap();
    assert_eq!(store.read_to_string("/a").await.unwrap(), "one");
    assert_eq!(fork.read_to_string("/a").await.unwrap(), "two");
    assert!(fork.write_file("/b", "longer").await.is_err());
}
