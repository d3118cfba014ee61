//! Pins the replies of each file tool: the text of successes and of every failure that
//! a model can cause.
//!
//! Also checks the structured data against the tool's own schema. A missing or
//! differing snapshot fails. `INSTA_UPDATE=always` writes it.

use std::sync::Arc;

use backend_core::BackendExt as _;
use backend_state::StateBackend;
use serde_json::{Value, json};

use crate::support::script::Script;

const CODE: &str = "fn main() {\n    let x = 1;\n    println!(\"{x}\");\n}\n";

async fn files() -> StateBackend {
    let backend = StateBackend::new();
    for (path, content) in [
        ("/src/main.rs", CODE),
        ("/src/lib.rs", "pub mod a;\npub mod b;\n// TODO: c\n"),
        ("/README.md", "# Title\n\nSome text.\n"),
        ("/empty.txt", ""),
        ("/.env", "KEY=1\n"),
        ("/.gitignore", "*.log\n"),
        ("/run.log", "TODO: ignored\n"),
        ("/far.txt", "same\n1\n2\n3\n4\n5\n6\n7\n8\nsame\n9\n"),
    ] {
        backend.write_file(path, content).await.unwrap();
    }
    let data = vec![0, 159, 146, 150];
    backend.write_file("/data.bin", data).await.unwrap();
    backend
}

async fn state(options: Value, tool: &'static str) -> Script {
    Script::on(Arc::new(files().await), options).of(tool)
}

/// Makes the calls one after the other, and pins what they say.
async fn pin(
    snapshot: &'static str,
    tool: &'static str,
    options: Value,
    calls: impl IntoIterator<Item = Value>,
) {
    let mut script = state(options, tool).await;
    script.calls(calls).await;
    insta::assert_snapshot!(snapshot, script.end());
}

#[tokio::test]
async fn ls() {
    let options = json!({"limits": {"ls_entries": 6}});
    let calls = [
        json!({}),
        json!({"path": "/src"}),
        json!({"path": "nowhere"}),
        json!({"path": "README.md"}),
        json!({"path": "../.."}),
        json!({"path": "~"}),
        json!({"path": 5}),
        json!({"dir": "src"}),
    ];
    pin("ls", "ls", options, calls).await;
}

#[tokio::test]
async fn read_file() {
    let options = json!({"limits": {"read_lines": 3, "line_bytes": 12}, "image_support": true});
    let calls = [
        json!({"path": "src/main.rs"}),
        json!({"path": "src/main.rs", "offset": 3}),
        json!({"path": "README.md", "limit": 1}),
        json!({"path": "empty.txt"}),
        json!({"path": "src/main.rs", "offset": 4}),
        json!({"path": "empty.txt", "offset": 1}),
        json!({"path": "README.md", "offset": -1}),
        json!({"path": "README.md", "limit": 0}),
        json!({"path": "nowhere.txt"}),
        json!({"path": "src"}),
        json!({"path": "data.bin"}),
        json!({"path": "src/main.rs/x"}),
        json!({"path": "C:\\x"}),
        json!({"path": "a\u{0}b"}),
        json!({}),
        json!({"path": "README.md", "max_chars": 5}),
    ];
    pin("read_file", "read_file", options, calls).await;
}

#[tokio::test]
async fn read_file_by_hash() {
    let options = json!({"edit_format": "hashline", "limits": {"read_lines": 3}});
    let calls = [
        json!({"path": "src/main.rs"}),
        json!({"path": "src/main.rs", "offset": 3}),
        json!({"path": "empty.txt"}),
        json!({"path": "src/main.rs", "offset": 9}),
    ];
    pin("read_file_by_hash", "read_file", options, calls).await;
}

#[tokio::test]
async fn write_file() {
    let backend = files().await;
    let options = json!({"require_read_before_edit": true});
    let mut script = Script::on(Arc::new(backend.clone()), options).of("write_file");
    script
        .calls([
            json!({"path": "new/file.txt", "content": "1\n2\n"}),
            json!({"path": "/new/file.txt", "content": ""}),
            json!({"path": "README.md", "content": "x"}),
            json!({"path": "src", "content": "x"}),
            json!({"path": "README.md/x", "content": "x"}),
            json!({"path": "", "content": "x"}),
            json!({"path": "../x", "content": "x"}),
        ])
        .await;
    let read = json!({"path": "README.md"});
    script.call_other("read_file", read).await;
    let other = "# Other\n\nSome text.\n";
    backend.write_file("/README.md", other).await.unwrap();
    script
        .calls([
            json!({"path": "README.md", "content": "x"}),
            json!({"path": "x"}),
            json!({"path": "x", "content": {"a": 1}}),
        ])
        .await;
    insta::assert_snapshot!("write_file", script.end());
}

#[tokio::test]
async fn edit_file() {
    let backend = files().await;
    let mut script = Script::on(Arc::new(backend.clone()), json!({})).of("edit_file");
    let edit =
        |old: &str, new: &str| json!({"path": "src/lib.rs", "old_string": old, "new_string": new});
    script
        .calls([
            edit("// TODO: c", "pub mod c;"),
            json!({"path": "src/lib.rs", "old_string": "pub", "new_string": "mod", "replace_all": true, "dry_run": true}),
            json!({"path": "src/lib.rs", "edits": [
                {"old_string": "mod a", "new_string": "mod d"},
                {"old_string": "pub ", "new_string": "", "replace_all": true},
            ]}),
            edit("mod  D;", "x"),
            edit("something else entirely", "x"),
            edit("mod", "x"),
            json!({"path": "far.txt", "old_string": "same", "new_string": "x"}),
            edit("", "x"),
            edit("mod d", "mod d"),
            json!({"path": "src/lib.rs", "edits": [
                {"old_string": "mod d", "new_string": "mod e"},
                {"old_string": "mod d", "new_string": "mod f"},
            ]}),
            json!({"path": "src/lib.rs", "edits": []}),
            json!({"path": "src/lib.rs", "edits": [{"old_string": "x"}]}),
            json!({"path": "src/lib.rs", "old_string": "x", "edits": [{"old_string": "x", "new_string": "y"}]}),
            json!({"path": "src/lib.rs", "old_string": "x"}),
            json!({"path": "src/lib.rs", "new_string": "x"}),
            json!({"path": "src/lib.rs"}),
            json!({"path": "src/lib.rs", "old_text": "x", "new_text": "y"}),
            json!({"path": "nowhere", "old_string": "x", "new_string": "y"}),
            json!({"path": "src", "old_string": "x", "new_string": "y"}),
            json!({"path": "data.bin", "old_string": "x", "new_string": "y"}),
        ])
        .await;
    let other = "mod d;\nmod z;\n";
    backend.write_file("/src/lib.rs", other).await.unwrap();
    script.call(edit("mod d", "mod e")).await;
    insta::assert_snapshot!("edit_file", script.end());
}

#[tokio::test]
async fn edit_file_that_was_not_read() {
    let options = json!({"require_read_before_edit": true});
    let mut script = state(options, "edit_file").await;
    let edit = json!({"path": "README.md", "old_string": "Some", "new_string": "Any"});
    script.call(edit.clone()).await;
    let read = json!({"path": "README.md"});
    script.call_other("read_file", read).await;
    script.call(edit).await;
    insta::assert_snapshot!("edit_file_that_was_not_read", script.end());
}

#[tokio::test]
async fn hashline_edit() {
    let backend = files().await;
    let options = json!({"edit_format": "hashline"});
    let mut script = Script::on(Arc::new(backend.clone()), options).of("hashline_edit");
    let read = json!({"path": "src/lib.rs"});
    script.call_other("read_file", read).await;
    let edit = |line: i64, hash: &str, new: &str| json!({"path": "src/lib.rs", "start_line": line, "start_hash": hash, "new_content": new});
    let with = |mut edit: Value, field: &str, value: Value| {
        edit[field] = value;
        edit
    };
    script
        .calls([
            with(edit(1, "ce", "pub mod z;"), "dry_run", json!(true)),
            edit(1, "ce", "pub mod z;"),
            with(
                edit(0, "", "//! A library.\n\n"),
                "insert_after",
                json!(true),
            ),
        ])
        .await;
    let read = json!({"path": "src/lib.rs"});
    script.call_other("read_file", read).await;
    script
        .calls([
            edit(3, "45", "x"),
            edit(99, "45", "x"),
            edit(0, "45", "x"),
            edit(-1, "45", "x"),
            edit(1, "xyz", "x"),
            with(edit(1, "45", ""), "insert_after", json!(true)),
            with(edit(3, "45", "x"), "end_line", json!(2)),
            with(edit(3, "45", "x"), "end_hash", json!("45")),
            json!({"path": "src/lib.rs", "edits": [
                {"start_line": 1, "start_hash": "00", "new_content": "x"},
                {"start_line": 77, "start_hash": "00", "new_content": "x"},
            ]}),
            json!({"path": "src/lib.rs", "start_line": 1}),
            json!({"path": "src/lib.rs", "start_line": 1, "edits": [{"start_line": 1, "start_hash": "00", "new_content": "x"}]}),
            json!({"path": "nowhere", "start_line": 1, "start_hash": "00", "new_content": "x"}),
            json!({"path": "data.bin", "start_line": 1, "start_hash": "00", "new_content": "x"}),
            json!({"path": "src/lib.rs", "old_string": "x", "new_string": "y"}),
        ])
        .await;
    backend.write_file("/src/lib.rs", "mod d;\n").await.unwrap();
    script.call(edit(1, "45", "x")).await;
    insta::assert_snapshot!("hashline_edit", script.end());
}

/// Lines of a megabyte: whatever fails, the reply has a few kilobytes.
#[tokio::test]
async fn long_lines() {
    let line = |letter: &str| letter.repeat(1 << 20);
    let text = |middle: &str| format!("{}\n{}\n{}\n", line("a"), middle, line("c"));
    let small = |text: &str| assert!(text.len() < 6_000, "{} bytes", text.len());
    let backend = StateBackend::new();
    backend.write_file("/long", text(&line("b"))).await.unwrap();

    let chat = Script::on(Arc::new(backend.clone()), json!({})).chat;
    let edit = |old: String| json!({"path": "long", "old_string": old, "new_string": "x"});
    for old in [
        format!("{} ", line("B")),
        line("z"),
        "b".to_owned(),
        format!("{}\n ", line("b")),
    ] {
        let reply = chat.call("edit_file", edit(old)).await;
        assert!(reply.text.contains("old_string"), "{}", reply.text);
        small(&reply.text);
    }
    // Many nearly matching lines, at several positions.
    let lines = |count: usize, width: usize| -> String {
        let line = |n| format!("{n}{}\n", "y".repeat(width));
        (0..count).map(line).collect()
    };
    let block = lines(20, 5_000);
    let blocks = format!("{block}-\n{block}-\n{block}");
    backend.write_file("/blocks", blocks).await.unwrap();
    for old in [block.replace('y', "Y"), block] {
        let mut args = edit(old);
        args["path"] = json!("blocks");
        let reply = chat.call("edit_file", args).await;
        assert!(!reply.is_success(), "{}", reply.text);
        small(&reply.text);
    }
    let read = json!({"path": "long"});
    assert!(chat.call("read_file", read.clone()).await.is_success());
    let mut dry = edit(line("b"));
    dry["dry_run"] = json!(true);
    small(&chat.call("edit_file", dry).await.text);
    backend.write_file("/long", text("B")).await.unwrap();
    let reply = chat.call("edit_file", edit("B".into())).await;
    assert!(reply.text.contains("What changed"), "{}", reply.text);
    small(&reply.text);

    let options = json!({"edit_format": "hashline"});
    let chat = Script::on(Arc::new(backend.clone()), options).chat;
    let stale = |line: usize| json!({"start_line": line, "start_hash": "00", "new_content": "x"});
    for count in [1, 2, 100] {
        let edits: Vec<Value> = (1..=count).map(stale).collect();
        let args = json!({"path": "long", "edits": edits});
        let text = chat.call("hashline_edit", args).await.text;
        let told = "edits[0]: line 1: the hash given is 00";
        assert!(text.contains(told), "{text}");
        small(&text);
    }
    // Many long lines, all of them stale.
    let many = lines(300, 10_000);
    backend.write_file("/many", many).await.unwrap();
    let edits: Vec<Value> = (1..=300).map(stale).collect();
    let args = json!({"path": "many", "edits": edits});
    let reply = chat.call("hashline_edit", args).await;
    assert!(reply.text.len() < 12_000, "{} bytes", reply.text.len());
    let args = json!({"path": "long", "limit": 1});
    small(&chat.call("read_file", args).await.text);
}

#[tokio::test]
async fn glob() {
    let options = json!({"limits": {"glob_files": 3}});
    let calls = [
        json!({"pattern": "*.rs"}),
        json!({"pattern": "**/*"}),
        json!({"pattern": "*.rs", "path": "/src", "hidden": true, "ignored": true}),
        json!({"pattern": ".env"}),
        json!({"pattern": "*.py"}),
        json!({"pattern": "run.log"}),
        json!({"pattern": "["}),
        json!({"pattern": "../*"}),
        json!({"pattern": ""}),
        json!({"pattern": "src/"}),
        json!({"pattern": "{a,b}".repeat(9)}),
        json!({"pattern": "*", "path": "nowhere"}),
        json!({"pattern": "*", "path": "../.."}),
        json!({"pattern": "*", "order": "oldest"}),
    ];
    pin("glob", "glob", options, calls).await;
}

#[tokio::test]
async fn grep() {
    let options = json!({"limits": {"grep_results": 2, "grep_line_chars": 12}});
    let calls = [
        json!({"pattern": "TODO"}),
        json!({"pattern": "e", "path": "/"}),
        json!({"pattern": "mod", "output_mode": "content"}),
        json!({"pattern": "println", "output_mode": "content", "context": 1}),
        json!({"pattern": "e", "output_mode": "content"}),
        json!({"pattern": "mod", "output_mode": "count"}),
        json!({"pattern": "{x}", "literal": true, "glob_pattern": "*.rs"}),
        json!({"pattern": "a;\\npub", "multi_line": true, "output_mode": "content"}),
        json!({"pattern": "title", "case": "insensitive"}),
        json!({"pattern": "KEY"}),
        json!({"pattern": "KEY", "ignore_hidden": false}),
        json!({"pattern": "("}),
        json!({"pattern": "(?=x)"}),
        json!({"pattern": "a\\nb"}),
        json!({"pattern": "x{1000}{1000}{1000}"}),
        json!({"pattern": "x", "glob_pattern": "["}),
        json!({"pattern": "x", "path": "nowhere"}),
        json!({"pattern": "x", "output_mode": "lines"}),
        json!({"pattern": "x", "context": 101}),
        json!({"pattern": "x", "max_results": 0}),
        json!({"regex": "x"}),
    ];
    pin("grep", "grep", options, calls).await;
}

#[tokio::test]
async fn delete_file() {
    let calls = [
        json!({"path": "README.md"}),
        json!({"path": "README.md"}),
        json!({"path": "src"}),
        json!({"path": "src", "recursive": true}),
        json!({"path": "/", "recursive": true}),
        json!({"path": "..", "recursive": true}),
        json!({"path": "empty.txt", "recursive": "yes"}),
    ];
    pin("delete_file", "delete_file", json!({}), calls).await;
}

async fn transferring(tool: &'static str) -> Script {
    let mut script = state(json!({}), tool).await;
    let transfer = |from: &str, to: &str| json!({"source": from, "destination": to});
    script
        .calls([
            transfer("README.md", "docs/readme.md"),
            transfer("src/lib.rs", "src/main.rs"),
            json!({"source": "src/lib.rs", "destination": "src/main.rs", "overwrite": true}),
            transfer("nowhere", "x"),
            transfer("src/main.rs", "docs"),
            transfer("src/main.rs", "empty.txt/x"),
            transfer("src/main.rs", "src/main.rs"),
            transfer("src", "other"),
            transfer("other", "other/inside"),
            transfer("src/main.rs", "../x"),
            json!({"source": "x"}),
        ])
        .await;
    script
}

#[tokio::test]
async fn move_file() {
    let script = transferring("move_file").await;
    insta::assert_snapshot!("move_file", script.end());
}

#[tokio::test]
async fn copy_file() {
    let mut script = transferring("copy_file").await;
    let tree = json!({"source": "src", "destination": "other", "recursive": true});
    script.call(tree).await;
    insta::assert_snapshot!("copy_file", script.end());
}
