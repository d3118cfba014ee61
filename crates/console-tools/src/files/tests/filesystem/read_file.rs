//! `read_file` and `write_file`: results and texts, pinned.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ReadFileTool, WriteFileTool, call, content, context, files, fixable, ok};
use crate::context::Context;
use crate::options::Options;

fn read(context: &Context, arguments: Value) -> Value {
    let reply = call::<ReadFileTool>(context, arguments);
    assert_eq!(reply.failure, None, "{}", reply.text);
    let data = reply.structured.expect("data");
    assert_eq!(serde_json::from_str::<Value>(&reply.text).unwrap(), data);
    data
}

#[test]
fn the_parameters_and_defaults_are_pinned() {
    let schema = schemars::schema_for!(crate::args::filesystem::ReadFileArgs).to_value();
    assert_eq!(schema["required"], json!(["path"]));
    assert_eq!(schema["properties"]["max_chars"]["default"], json!(20_000));
    assert_eq!(schema["properties"]["offset"]["default"], json!(0));
    let schema = schemars::schema_for!(crate::args::filesystem::ListFilesArgs).to_value();
    assert_eq!(schema.get("required"), None);
    assert_eq!(schema["properties"]["path"]["default"], json!("/"));
    assert_eq!(schema["properties"]["pattern"]["default"], json!("**/*"));
    let schema = schemars::schema_for!(crate::args::filesystem::EditFileArgs).to_value();
    assert_eq!(schema["required"], json!(["path", "old_text", "new_text"]));
    let schema = schemars::schema_for!(crate::args::filesystem::MoveFileArgs).to_value();
    assert_eq!(schema["required"], json!(["source", "destination"]));
}

#[test]
fn a_small_file_is_read_whole() {
    let context = files(&[("/a.txt", "h\u{e9}llo\r\nw\rx\n".as_bytes())]);
    assert_eq!(
        read(&context, json!({"path": "/a.txt"})),
        json!({
            "content": "h\u{e9}llo\nw\nx\n",
            "truncated": false,
            "total_chars": 10,
            "offset": 0,
            "chars_read": 10,
        })
    );
    let empty = files(&[("/e", b"")]);
    assert_eq!(read(&empty, json!({"path": "e"}))["total_chars"], 0);
}

#[test]
fn a_window_is_counted_in_characters() {
    let context = files(&[("/a", "a\u{20ac}\r\n\u{1f600}b".as_bytes())]);
    let window = |offset: i64, max_chars: i64| {
        let data = read(
            &context,
            json!({"path": "/a", "offset": offset, "max_chars": max_chars}),
        );
        assert_eq!(
            (&data["total_chars"], &data["offset"]),
            (&json!(5), &json!(offset))
        );
        (
            data["content"].clone(),
            data["truncated"].clone(),
            data["chars_read"].clone(),
        )
    };
    let found =
        |content: &str, truncated: bool, read: u64| (json!(content), json!(truncated), json!(read));
    assert_eq!(window(1, 2), found("\u{20ac}\n", true, 2));
    assert_eq!(window(3, 2), found("\u{1f600}b", false, 2));
    assert_eq!(window(3, 1), found("\u{1f600}", true, 1));
    assert_eq!(window(0, 0), found("", true, 0));
    assert_eq!(window(5, 9), found("", false, 0));
    assert_eq!(window(i64::MAX, i64::MAX), found("", false, 0));
}

#[test]
fn the_default_is_twenty_thousand_characters() {
    let context = files(&[("/a", "\u{e9}".repeat(20_001).as_bytes())]);
    let data = read(&context, json!({"path": "/a"}));
    assert_eq!(
        (&data["chars_read"], &data["truncated"]),
        (&json!(20_000), &json!(true))
    );
    let rest = read(&context, json!({"path": "/a", "offset": 20_000}));
    assert_eq!(
        (&rest["content"], &rest["truncated"]),
        (&json!("\u{e9}"), &json!(false))
    );
}

#[test]
fn a_file_of_many_pieces_is_read_in_order() {
    // Seven chunks that end at every kind of position: between two characters, within
    // one, and within a line ending.
    let text = "ab\u{20ac}\r\n".repeat(250_001);
    let context = files(&[("/a", text.as_bytes())]);
    let data = read(
        &context,
        json!({"path": "/a", "offset": 999_996, "max_chars": 99}),
    );
    assert_eq!(data["total_chars"], 1_000_004);
    assert_eq!(data["content"], "ab\u{20ac}\n".repeat(2));
    assert_eq!(data["truncated"], false);
}

#[test]
fn a_reply_stays_within_its_budget_and_goes_on_from_there() {
    let text = "\u{1}\"\n\u{20ac}ab".repeat(2_000);
    let mut context = files(&[("/a", text.as_bytes())]);
    let mut options = Options::default();
    options.limits.reply_bytes = 5_000;
    context.options = Arc::new(options);
    let (mut whole, mut calls) = (String::new(), 0);
    for _ in 0..20 {
        let offset = whole.chars().count();
        let reply = call::<ReadFileTool>(&context, json!({"path": "/a", "offset": offset}));
        assert!(reply.text.len() <= 5_000, "{} bytes", reply.text.len());
        let data = reply.structured.unwrap();
        whole.push_str(data["content"].as_str().unwrap());
        calls += 1;
        if data["truncated"] == false {
            break;
        }
    }
    assert_eq!((whole == text, calls), (true, 7));
}

#[test]
fn what_cannot_be_read_is_said() {
    let context = files(&[("/d/a", b"x"), ("/bin", b"\x80abc")]);
    let told = |arguments| fixable::<ReadFileTool>(&context, arguments);
    assert_eq!(told(json!({"path": "d/x"})), "File not found: d/x");
    assert_eq!(told(json!({"path": "/d/a/b"})), "File not found: /d/a/b");
    assert_eq!(told(json!({"path": "/d"})), "Not a file: /d");
    assert_eq!(
        told(json!({"path": "/bin"})),
        "Cannot read '/bin': file appears to be binary or not UTF-8 encoded.\n\
         This tool only reads text files. For binary files, pass them as attachments."
    );
    assert_eq!(
        told(json!({"path": "/d/a", "offset": -1, "max_chars": -2})),
        "offset must be >= 0, got -1"
    );
    assert_eq!(
        told(json!({"path": "/d/a", "max_chars": -2})),
        "max_chars must be >= 0, got -2"
    );
}

#[test]
fn a_path_without_mounts_starts_at_the_working_directory() {
    let context = files(&[("/d/a", b"x")]);
    for path in ["d/a", "/d/a", " /d/a ", "\\d\\a", "./d/../d/a", "//d//a/"] {
        assert_eq!(
            read(&context, json!({ "path": path }))["content"],
            "x",
            "{path}"
        );
    }
    for path in ["~/a", "~", "~user/a", " ~a", "C:/a", "a:b", "../a", "a\0b"] {
        let told = fixable::<ReadFileTool>(&context, json!({ "path": path }));
        let shown = path.replace('\0', "\\0");
        assert_eq!(
            told,
            format!("Cannot access '{shown}': path is outside sandbox.\nReadable paths: /")
        );
    }
}

#[test]
fn a_hostile_path_is_not_repeated_without_end() {
    let context = files(&[]);
    let long = "a/".repeat(5_000_000);
    assert!(fixable::<ReadFileTool>(&context, json!({ "path": long })).len() < 10_000);
    let told = fixable::<ReadFileTool>(&context, json!({"path": "/x\n\u{1b}[2J"}));
    assert_eq!(told, "File not found: /x\\n\\u{1b}[2J");
}

#[test]
fn a_file_that_is_a_pipe_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(directory.path().join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let local = backend_local::LocalBackend::builder(directory.path())
        .open()
        .unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    let context = context(local);
    assert_eq!(
        fixable::<ReadFileTool>(&context, json!({"path": "/pipe"})),
        "Not a file: /pipe"
    );
}

#[test]
fn writing_counts_characters_and_keeps_bytes() {
    let context = files(&[("/d/a", b"old")]);
    let text = "\u{20ac}\r\n\u{1f600}";
    assert_eq!(
        ok::<WriteFileTool>(&context, json!({"path": "n/e/w.txt", "content": text})),
        "Written 4 characters to n/e/w.txt"
    );
    assert_eq!(content(&context, "/n/e/w.txt"), text);
    assert_eq!(
        ok::<WriteFileTool>(&context, json!({"path": "/d/a", "content": ""})),
        "Written 0 characters to /d/a"
    );
    assert_eq!(content(&context, "/d/a"), "");
}

#[test]
fn what_cannot_be_written_is_said_without_the_host() {
    let context = files(&[("/d/a", b"x")]);
    let told =
        |path: &str| fixable::<WriteFileTool>(&context, json!({"path": path, "content": "y"}));
    assert_eq!(told("/d"), "Not a file: /d");
    assert!(told("/d/a/b").starts_with("Cannot write to '/d/a/b': "));
    assert_eq!(content(&context, "/d/a"), "x");
}
