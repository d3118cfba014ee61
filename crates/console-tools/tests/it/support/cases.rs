//! Calls of every file tool, with the question about each and its changes.

use backend_core::BackendExt as _;
use backend_state::StateBackend;
use serde_json::{Value, json};

const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0,
    1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89,
];

/// Creates files of every relevant kind.
pub(crate) async fn store() -> StateBackend {
    let backend = StateBackend::new();
    for (path, content) in [
        ("/src/a.rs", &b"one\ntwo\n"[..]),
        ("/src/b.rs", b"two\n"),
        ("/empty", b""),
        ("/p.png", PNG),
        ("/d.pdf", b"%PDF-1.7\n\xff\xfe\n"),
        ("/big.txt", &b"a line of a large file\n".repeat(250_000)),
        ("/many.txt", &b"two\n".repeat(100)),
    ] {
        backend.write_file(path, content).await.unwrap();
    }
    backend
}

/// A call that always needs approval.
pub(crate) struct Case {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    /// The question in one line.
    pub(crate) description: &'static str,
    /// The details that the question shows.
    pub(crate) shown: &'static str,
    /// The changed files with their new content, or `None` if deleted.
    pub(crate) after: Vec<(&'static str, Option<&'static str>)>,
}

/// Writes cases: the tool, its arguments, the question in one line, and where there are any
/// the details that it shows and the changed files.
macro_rules! cases {
    ($($tool:ident $arguments:tt => $question:literal
        $(, $shown:literal $(, $path:literal: $after:expr)+)?;)+) => {
        vec![$(Case {
            tool: stringify!($tool),
            arguments: json!($arguments),
            description: $question,
            shown: concat!($($shown)?),
            after: vec![$($(($path, $after)),+)?],
        }),+]
    };
}

/// Returns calls that read.
pub(crate) fn looks() -> Vec<Case> {
    cases! {
        ls {"path": "/src"} => "List /src";
        read_file {"path": "src/a.rs"} => "Read from /src/a.rs";
        read_file {"path": "/p.png"} => "Read from /p.png";
        read_file {"path": "/d.pdf"} => "Read from /d.pdf";
        read_file {"path": "/big.txt"} => "Read from /big.txt";
        glob {"pattern": "*.rs", "path": "/src"} => "List file paths in /src matching *.rs";
        grep {"pattern": "two", "output_mode": "content"} => "Search . for two";
        grep {"pattern": "line of", "path": "/", "output_mode": "files_with_matches"} =>
            "Search / for line of";
    }
}

/// Returns calls that change files.
pub(crate) fn changes() -> Vec<Case> {
    let edits = json!([
        {"old_string": "one", "new_string": "1"},
        {"old_string": "two", "new_string": "2"},
    ]);
    cases! {
        write_file {"path": "/new.txt", "content": "new\n"} =>
            "Write 4 chars to /new.txt", "+new", "/new.txt": Some("new\n");
        write_file {"path": "/src/b.rs", "content": "2\n"} =>
            "Write 2 chars to /src/b.rs", "-two\n+2", "/src/b.rs": Some("2\n");
        edit_file {"path": "/src/a.rs", "old_string": "two", "new_string": "2"} =>
            "Edit /src/a.rs: replace 3 chars with 1 char", " one\n-two\n+2",
            "/src/a.rs": Some("one\n2\n");
        edit_file {"path": "/src/a.rs", "edits": edits} =>
            "Edit /src/a.rs: replace 7 chars with 3 chars", "-one\n-two\n+1\n+2",
            "/src/a.rs": Some("1\n2\n");
        edit_file {"path": "/src/a.rs", "old_string": "two", "new_string": "2", "dry_run": true} =>
            "Read from /src/a.rs";
        delete_file {"path": "/src/b.rs"} => "Delete /src/b.rs", "", "/src/b.rs": None;
        move_file {"source": "/src/b.rs", "destination": "/c.rs"} =>
            "Move /src/b.rs to /c.rs", "", "/c.rs": Some("two\n"), "/src/b.rs": None;
        copy_file {"source": "/src/b.rs", "destination": "/c.rs"} =>
            "Copy /src/b.rs to /c.rs", "", "/c.rs": Some("two\n");
    }
}

/// Returns calls that edit by line and hash.
pub(crate) fn by_line() -> Vec<Case> {
    cases! {
        hashline_edit {"path": "/src/a.rs", "start_line": 2, "start_hash": "b8",
                       "new_content": "2", "dry_run": false} =>
            "Edit /src/a.rs: replace 3 chars with 1 char", " one\n-two\n+2",
            "/src/a.rs": Some("one\n2\n");
        hashline_edit {"path": "/src/a.rs", "start_line": 2, "start_hash": "b8",
                       "new_content": "2", "dry_run": true} => "Read from /src/a.rs";
        hashline_edit {"path": "/empty", "start_line": 0, "start_hash": "",
                       "new_content": "first", "insert_after": true} =>
            "Edit /empty: replace 0 chars with 5 chars", "+first", "/empty": Some("first");
    }
}
