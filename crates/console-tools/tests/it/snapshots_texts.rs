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
    backend
        .write_file("/data.bin", vec![0, 159, 146, 150])
        .await
        .unwrap();
    backend
}

async fn state(options: Value, tool: &'static str) -> Script {
    Script::on(Arc::new(files().await), options).of(tool)
}

#[tokio::test]
async fn ls() {
    let mut script = state(json!({"limits": {"ls_entries": 6}}), "ls").await;
    script.call(json!({})).await;
    script.call(json!({"path": "/src"})).await;
    script.call(json!({"path": "nowhere"})).await;
    script.call(json!({"path": "README.md"})).await;
    script.call(json!({"path": "../.."})).await;
    script.call(json!({"path": "~"})).await;
    script.call(json!({"path": 5})).await;
    script.call(json!({"dir": "src"})).await;
    insta::assert_snapshot!("ls", script.end());
}

#[tokio::test]
async fn read_file() {
    let options = json!({"limits": {"read_lines": 3, "line_bytes": 12}, "image_support": true});
    let mut script = state(options, "read_file").await;
    script.call(json!({"path": "src/main.rs"})).await;
    script
        .call(json!({"path": "src/main.rs", "offset": 3}))
        .await;
    script.call(json!({"path": "README.md", "limit": 1})).await;
    script.call(json!({"path": "empty.txt"})).await;
    script
        .call(json!({"path": "src/main.rs", "offset": 4}))
        .await;
    script.call(json!({"path": "empty.txt", "offset": 1})).await;
    script
        .call(json!({"path": "README.md", "offset": -1}))
        .await;
    script.call(json!({"path": "README.md", "limit": 0})).await;
    script.call(json!({"path": "nowhere.txt"})).await;
    script.call(json!({"path": "src"})).await;
    script.call(json!({"path": "data.bin"})).await;
    script.call(json!({"path": "src/main.rs/x"})).await;
    script.call(json!({"path": "C:\\x"})).await;
    script.call(json!({"path": "a\u{0}b"})).await;
    script.call(json!({})).await;
    script
        .call(json!({"path": "README.md", "max_chars": 5}))
        .await;
    insta::assert_snapshot!("read_file", script.end());
}

#[tokio::test]
async fn read_file_by_hash() {
    let options = json!({"edit_format": "hashline", "limits": {"read_lines": 3}});
    let mut script = state(options, "read_file").await;
    script.call(json!({"path": "src/main.rs"})).await;
    script
        .call(json!({"path": "src/main.rs", "offset": 3}))
        .await;
    script.call(json!({"path": "empty.txt"})).await;
    script
        .call(json!({"path": "src/main.rs", "offset": 9}))
        .await;
    insta::assert_snapshot!("read_file_by_hash", script.end());
}

#[tokio::test]
async fn write_file() {
    let backend = files().await;
    let options = json!({"require_read_before_edit": true});
    let mut script = Script::on(Arc::new(backend.clone()), options).of("write_file");
    script
        .call(json!({"path": "new/file.txt", "content": "1\n2\n"}))
        .await;
    script
        .call(json!({"path": "/new/file.txt", "content": ""}))
        .await;
    script
        .call(json!({"path": "README.md", "content": "x"}))
        .await;
    script.call(json!({"path": "src", "content": "x"})).await;
    script
        .call(json!({"path": "README.md/x", "content": "x"}))
        .await;
    script.call(json!({"path": "", "content": "x"})).await;
    script.call(json!({"path": "../x", "content": "x"})).await;
    script
        .call_other("read_file", json!({"path": "README.md"}))
        .await;
    backend
        .write_file("/README.md", "# Other\n\nSome text.\n")
        .await
        .unwrap();
    script
        .call(json!({"path": "README.md", "content": "x"}))
        .await;
    script.call(json!({"path": "x"})).await;
    script.call(json!({"path": "x", "content": {"a": 1}})).await;
    insta::assert_snapshot!("write_file", script.end());
}

#[tokio::test]
async fn edit_file() {
    let backend = files().await;
    let mut script = Script::on(Arc::new(backend.clone()), json!({})).of("edit_file");
    let edit =
        |old: &str, new: &str| json!({"path": "src/lib.rs", "old_string": old, "new_string": new});
    script.call(edit("// TODO: c", "pub mod c;")).await;
    script.call(json!({"path": "src/lib.rs", "old_string": "pub", "new_string": "mod", "replace_all": true, "dry_run": true})).await;
    script
        .call(json!({"path": "src/lib.rs", "edits": [
            {"old_string": "mod a", "new_string": "mod d"},
            {"old_string": "pub ", "new_string": "", "replace_all": true},
        ]}))
        .await;
    script.call(edit("mod  D;", "x")).await;
    script.call(edit("something else entirely", "x")).await;
    script.call(edit("mod", "x")).await;
    script
        .call(json!({"path": "far.txt", "old_string": "same", "new_string": "x"}))
        .await;
    script.call(edit("", "x")).await;
    script.call(edit("mod d", "mod d")).await;
    script
        .call(json!({"path": "src/lib.rs", "edits": [
            {"old_string": "mod d", "new_string": "mod e"},
            {"old_string": "mod d", "new_string": "mod f"},
        ]}))
        .await;
    script
        .call(json!({"path": "src/lib.rs", "edits": []}))
        .await;
    script
        .call(json!({"path": "src/lib.rs", "edits": [{"old_string": "x"}]}))
        .await;
    script.call(json!({"path": "src/lib.rs", "old_string": "x", "edits": [{"old_string": "x", "new_string": "y"}]})).await;
    script
        .call(json!({"path": "src/lib.rs", "old_string": "x"}))
        .await;
    script
        .call(json!({"path": "src/lib.rs", "new_string": "x"}))
        .await;
    script.call(json!({"path": "src/lib.rs"})).await;
    script
        .call(json!({"path": "src/lib.rs", "old_text": "x", "new_text": "y"}))
        .await;
    script
        .call(json!({"path": "nowhere", "old_string": "x", "new_string": "y"}))
        .await;
    script
        .call(json!({"path": "src", "old_string": "x", "new_string": "y"}))
        .await;
    script
        .call(json!({"path": "data.bin", "old_string": "x", "new_string": "y"}))
        .await;
    backend
        .write_file("/src/lib.rs", "mod d;\nmod z;\n")
        .await
        .unwrap();
    script.call(edit("mod d", "mod e")).await;
    insta::assert_snapshot!("edit_file", script.end());
}

#[tokio::test]
async fn edit_file_that_was_not_read() {
    let options = json!({"require_read_before_edit": true});
    let mut script = state(options, "edit_file").await;
    let edit = json!({"path": "README.md", "old_string": "Some", "new_string": "Any"});
    script.call(edit.clone()).await;
    script
        .call_other("read_file", json!({"path": "README.md"}))
        .await;
    script.call(edit).await;
    insta::assert_snapshot!("edit_file_that_was_not_read", script.end());
}

#[tokio::test]
async fn hashline_edit() {
    let backend = files().await;
    let options = json!({"edit_format": "hashline"});
    let mut script = Script::on(Arc::new(backend.clone()), options).of("hashline_edit");
    script
        .call_other("read_file", json!({"path": "src/lib.rs"}))
        .await;
    let edit = |line: i64, hash: &str, new: &str| json!({"path": "src/lib.rs", "start_line": line, "start_hash": hash, "new_content": new});
    let with = |mut edit: Value, field: &str, value: Value| {
        edit[field] = value;
        edit
    };
    script
        .call(with(edit(1, "ce", "pub mod z;"), "dry_run", json!(true)))
        .await;
    script.call(edit(1, "ce", "pub mod z;")).await;
    script
        .call(with(
            edit(0, "", "//! A library.\n\n"),
            "insert_after",
            json!(true),
        ))
        .await;
    script
        .call_other("read_file", json!({"path": "src/lib.rs"}))
        .await;
    script.call(edit(3, "45", "x")).await;
    script.call(edit(99, "45", "x")).await;
    script.call(edit(0, "45", "x")).await;
    script.call(edit(-1, "45", "x")).await;
    script.call(edit(1, "xyz", "x")).await;
    script
        .call(with(edit(1, "45", ""), "insert_after", json!(true)))
        .await;
    script
        .call(with(edit(3, "45", "x"), "end_line", json!(2)))
        .await;
    script
        .call(with(edit(3, "45", "x"), "end_hash", json!("45")))
        .await;
    script
        .call(json!({"path": "src/lib.rs", "edits": [
            {"start_line": 1, "start_hash": "00", "new_content": "x"},
            {"start_line": 77, "start_hash": "00", "new_content": "x"},
        ]}))
        .await;
    script
        .call(json!({"path": "src/lib.rs", "start_line": 1}))
        .await;
    script.call(json!({"path": "src/lib.rs", "start_line": 1, "edits": [{"start_line": 1, "start_hash": "00", "new_content": "x"}]})).await;
    script
        .call(json!({"path": "nowhere", "start_line": 1, "start_hash": "00", "new_content": "x"}))
        .await;
    script
        .call(json!({"path": "data.bin", "start_line": 1, "start_hash": "00", "new_content": "x"}))
        .await;
    script
        .call(json!({"path": "src/lib.rs", "old_string": "x", "new_string": "y"}))
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
    let block: String = (0..20)
        .map(|n| format!("{n}{}\n", "y".repeat(5_000)))
        .collect();
    backend
        .write_file("/blocks", format!("{block}-\n{block}-\n{block}"))
        .await
        .unwrap();
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
        let reply = chat
            .call("hashline_edit", json!({"path": "long", "edits": edits}))
            .await;
        assert!(
            reply
                .text
                .contains("edits[0]: line 1: the hash given is 00"),
            "{}",
            reply.text
        );
        small(&reply.text);
    }
    // Many long lines, all of them stale.
    let lines: String = (0..300)
        .map(|n| format!("{n}{}\n", "y".repeat(10_000)))
        .collect();
    backend.write_file("/many", lines).await.unwrap();
    let edits: Vec<Value> = (1..=300).map(stale).collect();
    let reply = chat
        .call("hashline_edit", json!({"path": "many", "edits": edits}))
        .await;
    assert!(reply.text.len() < 12_000, "{} bytes", reply.text.len());
    small(
        &chat
            .call("read_file", json!({"path": "long", "limit": 1}))
            .await
            .text,
    );
}

#[tokio::test]
async fn glob() {
    let mut script = state(json!({"limits": {"glob_files": 3}}), "glob").await;
    script.call(json!({"pattern": "*.rs"})).await;
    script.call(json!({"pattern": "**/*"})).await;
    script
        .call(json!({"pattern": "*.rs", "path": "/src", "hidden": true, "ignored": true}))
        .await;
    script.call(json!({"pattern": ".env"})).await;
    script.call(json!({"pattern": "*.py"})).await;
    script.call(json!({"pattern": "run.log"})).await;
    script.call(json!({"pattern": "["})).await;
    script.call(json!({"pattern": "../*"})).await;
    script.call(json!({"pattern": ""})).await;
    script.call(json!({"pattern": "src/"})).await;
    script.call(json!({"pattern": "{a,b}".repeat(9)})).await;
    script
        .call(json!({"pattern": "*", "path": "nowhere"}))
        .await;
    script.call(json!({"pattern": "*", "path": "../.."})).await;
    script
        .call(json!({"pattern": "*", "order": "oldest"}))
        .await;
    insta::assert_snapshot!("glob", script.end());
}

#[tokio::test]
async fn grep() {
    let mut script = state(
        json!({"limits": {"grep_results": 2, "grep_line_chars": 12}}),
        "grep",
    )
    .await;
    script.call(json!({"pattern": "TODO"})).await;
    script.call(json!({"pattern": "e", "path": "/"})).await;
    script
        .call(json!({"pattern": "mod", "output_mode": "content"}))
        .await;
    script
        .call(json!({"pattern": "println", "output_mode": "content", "context": 1}))
        .await;
    script
        .call(json!({"pattern": "e", "output_mode": "content"}))
        .await;
    script
        .call(json!({"pattern": "mod", "output_mode": "count"}))
        .await;
    script
        .call(json!({"pattern": "{x}", "literal": true, "glob_pattern": "*.rs"}))
        .await;
    script
        .call(json!({"pattern": "a;\\npub", "multi_line": true, "output_mode": "content"}))
        .await;
    script
        .call(json!({"pattern": "title", "case": "insensitive"}))
        .await;
    script.call(json!({"pattern": "KEY"})).await;
    script
        .call(json!({"pattern": "KEY", "ignore_hidden": false}))
        .await;
    script.call(json!({"pattern": "("})).await;
    script.call(json!({"pattern": "(?=x)"})).await;
    script.call(json!({"pattern": "a\\nb"})).await;
    script.call(json!({"pattern": "x{1000}{1000}{1000}"})).await;
    script
        .call(json!({"pattern": "x", "glob_pattern": "["}))
        .await;
    script
        .call(json!({"pattern": "x", "path": "nowhere"}))
        .await;
    script
        .call(json!({"pattern": "x", "output_mode": "lines"}))
        .await;
    script.call(json!({"pattern": "x", "context": 101})).await;
    script.call(json!({"pattern": "x", "max_results": 0})).await;
    script.call(json!({"regex": "x"})).await;
    insta::assert_snapshot!("grep", script.end());
}

#[tokio::test]
async fn delete_file() {
    let mut script = state(json!({}), "delete_file").await;
    script.call(json!({"path": "README.md"})).await;
    script.call(json!({"path": "README.md"})).await;
    script.call(json!({"path": "src"})).await;
    script.call(json!({"path": "src", "recursive": true})).await;
    script.call(json!({"path": "/", "recursive": true})).await;
    script.call(json!({"path": "..", "recursive": true})).await;
    script
        .call(json!({"path": "empty.txt", "recursive": "yes"}))
        .await;
    insta::assert_snapshot!("delete_file", script.end());
}

async fn transferring(tool: &'static str) -> Script {
    let mut script = state(json!({}), tool).await;
    let transfer = |from: &str, to: &str| json!({"source": from, "destination": to});
    script.call(transfer("README.md", "docs/readme.md")).await;
    script.call(transfer("src/lib.rs", "src/main.rs")).await;
    script
        .call(json!({"source": "src/lib.rs", "destination": "src/main.rs", "overwrite": true}))
        .await;
    script.call(transfer("nowhere", "x")).await;
    script.call(transfer("src/main.rs", "docs")).await;
    script.call(transfer("src/main.rs", "empty.txt/x")).await;
    script.call(transfer("src/main.rs", "src/main.rs")).await;
    script.call(transfer("src", "other")).await;
    script.call(transfer("other", "other/inside")).await;
    script.call(transfer("src/main.rs", "../x")).await;
    script.call(json!({"source": "x"})).await;
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
    script
        .call(json!({"source": "src", "destination": "other", "recursive": true}))
        .await;
    insta::assert_snapshot!("copy_file", script.end());
}
