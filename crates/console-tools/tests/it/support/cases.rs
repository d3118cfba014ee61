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

fn case(
    tool: &'static str,
    arguments: Value,
    description: &'static str,
    shown: &'static str,
    after: Vec<(&'static str, Option<&'static str>)>,
) -> Case {
    Case {
        tool,
        arguments,
        description,
        shown,
        after,
    }
}

/// Returns calls that read.
pub(crate) fn looks() -> Vec<Case> {
    let read = |path: &'static str, description| {
        case(
            "read_file",
            json!({ "path": path }),
            description,
            "",
            vec![],
        )
    };
    vec![
        case("ls", json!({"path": "/src"}), "List /src", "", vec![]),
        read("src/a.rs", "Read from /src/a.rs"),
        read("/p.png", "Read from /p.png"),
        read("/d.pdf", "Read from /d.pdf"),
        read("/big.txt", "Read from /big.txt"),
        case(
            "glob",
            json!({"pattern": "*.rs", "path": "/src"}),
            "List file paths in /src matching *.rs",
            "",
            vec![],
        ),
        case(
            "grep",
            json!({"pattern": "two", "output_mode": "content"}),
            "Search . for two",
            "",
            vec![],
        ),
        case(
            "grep",
            json!({"pattern": "line of", "path": "/", "output_mode": "files_with_matches"}),
            "Search / for line of",
            "",
            vec![],
        ),
    ]
}

/// Returns calls that change files.
pub(crate) fn changes() -> Vec<Case> {
    let edits = json!([
        {"old_string": "one", "new_string": "1"},
        {"old_string": "two", "new_string": "2"},
    ]);
    vec![
        case(
            "write_file",
            json!({"path": "/new.txt", "content": "new\n"}),
            "Write 4 chars to /new.txt",
            "+new",
            vec![("/new.txt", Some("new\n"))],
        ),
        case(
            "write_file",
            json!({"path": "/src/b.rs", "content": "2\n"}),
            "Write 2 chars to /src/b.rs",
            "-two\n+2",
            vec![("/src/b.rs", Some("2\n"))],
        ),
        case(
            "edit_file",
            json!({"path": "/src/a.rs", "old_string": "two", "new_string": "2"}),
            "Edit /src/a.rs: replace 3 chars with 1 char",
            " one\n-two\n+2",
            vec![("/src/a.rs", Some("one\n2\n"))],
        ),
        case(
            "edit_file",
            json!({"path": "/src/a.rs", "edits": edits}),
            "Edit /src/a.rs: replace 7 chars with 3 chars",
            "-one\n-two\n+1\n+2",
            vec![("/src/a.rs", Some("1\n2\n"))],
        ),
        case(
            "edit_file",
            json!({"path": "/src/a.rs", "old_string": "two", "new_string": "2", "dry_run": true}),
            "Read from /src/a.rs",
            "",
            vec![],
        ),
        case(
            "delete_file",
            json!({"path": "/src/b.rs"}),
            "Delete /src/b.rs",
            "",
            vec![("/src/b.rs", None)],
        ),
        case(
            "move_file",
            json!({"source": "/src/b.rs", "destination": "/c.rs"}),
            "Move /src/b.rs to /c.rs",
            "",
            vec![("/c.rs", Some("two\n")), ("/src/b.rs", None)],
        ),
        case(
            "copy_file",
            json!({"source": "/src/b.rs", "destination": "/c.rs"}),
            "Copy /src/b.rs to /c.rs",
            "",
            vec![("/c.rs", Some("two\n"))],
        ),
    ]
}

/// Returns calls that edit by line and hash.
pub(crate) fn by_line() -> Vec<Case> {
    let line = |path: &str, number: u64, hash: &str, content: &str, dry_run: bool| {
        json!({
            "path": path, "start_line": number, "start_hash": hash, "new_content": content,
            "dry_run": dry_run,
        })
    };
    vec![
        case(
            "hashline_edit",
            line("/src/a.rs", 2, "b8", "2", false),
            "Edit /src/a.rs: replace 3 chars with 1 char",
            " one\n-two\n+2",
            vec![("/src/a.rs", Some("one\n2\n"))],
        ),
        case(
            "hashline_edit",
            line("/src/a.rs", 2, "b8", "2", true),
            "Read from /src/a.rs",
            "",
            vec![],
        ),
        case(
            "hashline_edit",
            json!({"path": "/empty", "start_line": 0, "start_hash": "", "new_content": "first",
                   "insert_after": true}),
            "Edit /empty: replace 0 chars with 5 chars",
            "+first",
            vec![("/empty", Some("first"))],
        ),
    ]
}
