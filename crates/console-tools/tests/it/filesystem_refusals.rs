//! Tests of the `filesystem` profile through a toolset with mounts: refusals and
//! failures, in that library's words.

use backend_core::VPath;
use console_tools::FailureClass;
use permissions::Ruleset;
use serde_json::{Value, json};

use crate::support::approver::{RecordingApprover, snapshot};
use crate::support::mounted::{chat, chat_under, edit, from_to, policy, store};

/// A tool, its arguments, and the expected message.
type Case = (&'static str, Value, String);

/// Calls each tool and checks that nothing changes and that the message is the expected
/// one. Each call may ask at most `questions` questions.
async fn check(cases: Vec<Case>, questions: usize) {
    let backend = store().await;
    let before = snapshot(&backend).await;
    let person = RecordingApprover::new(true);
    let chat = chat(&backend, &person);
    for (tool, arguments, told) in cases {
        let shown: String = arguments.to_string().chars().take(80).collect();
        let what = format!("{tool} {shown}");
        let reply = chat.call(tool, arguments).await;
        assert!(!reply.is_success(), "{what}: {}", reply.text);
        assert_eq!(reply.text, told, "{what}");
        assert!(person.taken().len() <= questions, "{what}");
    }
    assert!(snapshot(&backend).await == before);
}

fn path(path: &str) -> Value {
    json!({ "path": path })
}

fn write(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

#[tokio::test]
async fn what_is_outside_is_refused_in_these_words() {
    let case = |tool, arguments, path: &str| {
        let told = format!(
            "Cannot access '{path}': path is outside sandbox.\n\
             Readable paths: /docs, /user, /free"
        );
        (tool, arguments, told)
    };
    let cases = vec![
        case("read_file", path("secret//s.md"), "secret//s.md"),
        case("read_file", path("~/s.md"), "~/s.md"),
        case("write_file", write("/x", ""), "/x"),
        case("edit_file", edit("secret/s.md", "s", "t"), "secret/s.md"),
        case("delete_file", path("secret/s.md"), "secret/s.md"),
        case(
            "move_file",
            from_to("secret/s.md", "user/s.md"),
            "secret/s.md",
        ),
        case("copy_file", from_to("user/b.md", "/b.md"), "/b.md"),
        case("list_files", path("secret"), "secret"),
    ];
    check(cases, 0).await;
}

#[tokio::test]
async fn what_is_read_only_is_refused_in_these_words() {
    let case = |tool, arguments, path: &str| {
        let told =
            format!("Cannot write to '{path}': path is read-only.\nWritable paths: /user, /free");
        (tool, arguments, told)
    };
    let cases = vec![
        case("write_file", write("docs/n.md", ""), "docs/n.md"),
        case(
            "edit_file",
            edit("docs/./a.md", "about", "x"),
            "docs/./a.md",
        ),
        case("delete_file", path("docs/a.md"), "docs/a.md"),
        case("move_file", from_to("docs/a.md", "user/a.md"), "docs/a.md"),
        case("move_file", from_to("user/b.md", "docs/b.md"), "docs/b.md"),
        case("copy_file", from_to("user/b.md", "docs/b.md"), "docs/b.md"),
    ];
    check(cases, 0).await;
}

#[tokio::test]
async fn suffixes_and_sizes_are_refused_in_these_words() {
    let suffix = |tool, arguments| {
        let told = "Cannot access 'docs/a.bin': suffix '.bin' not allowed.\n\
                    Allowed suffixes: .md, .txt";
        (tool, arguments, told.to_owned())
    };
    let large = |tool, arguments, path: &str, size: &str, most: &str| {
        let told = format!(
            "Cannot read '{path}': file too large ({size} bytes).\nMaximum allowed: {most} bytes"
        );
        (tool, arguments, told)
    };
    let (big, much) = ("docs/big.md", "x".repeat(300_001));
    let cases = vec![
        suffix("read_file", path("docs/a.bin")),
        suffix("copy_file", from_to("docs/a.bin", "user/a.bin")),
        large("read_file", path(big), big, "2,001", "2,000"),
        large(
            "copy_file",
            from_to(big, "user/big.md"),
            big,
            "2,001",
            "2,000",
        ),
        large(
            "write_file",
            write("user/n.md", &much),
            "user/n.md",
            "300,001",
            "300,000",
        ),
        large(
            "edit_file",
            edit("user/b.md", "one", &much),
            "user/b.md",
            "300,010",
            "300,000",
        ),
    ];
    check(cases, 0).await;
}

#[tokio::test]
async fn what_cannot_be_done_is_told_in_these_words() {
    let case = |tool, arguments, told: &str| (tool, arguments, told.to_owned());
    let missing = "File not found: user/no.md";
    let no_source = "Source file not found: user/no.md";
    let cases = vec![
        case("read_file", path("user/no.md"), missing),
        case("read_file", path("user/sub"), "Not a file: user/sub"),
        case("edit_file", edit("user/no.md", "a", "b"), missing),
        case(
            "edit_file",
            edit("user/b.md", "QQQQ", "b"),
            "Cannot edit 'user/b.md': text not found in file.\nSearched for: 'QQQQ'",
        ),
        case(
            "edit_file",
            edit("user/b.md", "two", "b"),
            "Cannot edit 'user/b.md': text found 2 times (must be unique).\nSearched for: 'two'",
        ),
        case("delete_file", path("user/no.md"), missing),
        case(
            "delete_file",
            path("user/sub"),
            "Cannot delete directory with delete_file: user/sub",
        ),
        case("move_file", from_to("user/no.md", "user/m.md"), no_source),
        case(
            "move_file",
            from_to("user/sub", "user/m"),
            "Cannot move directory: user/sub",
        ),
        case(
            "move_file",
            from_to("user/b.md", "user/sub/c.md"),
            "Destination already exists: user/sub/c.md",
        ),
        case("copy_file", from_to("user/no.md", "user/m.md"), no_source),
        case(
            "copy_file",
            from_to("user/sub", "user/m"),
            "Cannot copy directory: user/sub",
        ),
    ];
    check(cases, 1).await;
}

#[tokio::test]
async fn what_makes_no_sense_is_told_in_these_words() {
    let case = |tool, arguments, told: &str| (tool, arguments, told.to_owned());
    let window =
        |offset: i64, max: i64| json!({"path": "user/b.md", "offset": offset, "max_chars": max});
    let list = |pattern: &str| json!({"path": "user", "pattern": pattern});
    let cases = vec![
        case("read_file", window(-1, -5), "offset must be >= 0, got -1"),
        case("read_file", window(0, -5), "max_chars must be >= 0, got -5"),
        case(
            "list_files",
            list("../x"),
            "pattern must not contain '..' path segments",
        ),
        case(
            "list_files",
            list("/x"),
            "pattern must be relative (must not start with '/' or '~')",
        ),
        case(
            "list_files",
            list("C:x"),
            "pattern must not be a Windows drive path",
        ),
        case(
            "list_files",
            list("\0"),
            "pattern must not contain null bytes",
        ),
    ];
    check(cases, 0).await;
}

#[tokio::test]
async fn a_rule_blocks_in_these_words() {
    let backend = store().await;
    let rules = json!({"default": "allow", "read": {"default": "allow", "rules": [
        {"pattern": "/free/**", "action": "deny", "description": "Protect sensitive files"},
        {"pattern": "/docs/**", "action": "deny"},
    ]}});
    let rules = Ruleset::from_json(&rules.to_string()).unwrap();
    let policy = policy().ruleset(&rules, &VPath::root()).build();
    let person = RecordingApprover::new(true);
    let chat = chat_under(policy, &backend, Some(&person));
    for (tool, arguments, told) in [
        (
            "read_file",
            json!({"path": "free/f.md"}),
            "Blocked read_file: Protect sensitive files",
        ),
        (
            "read_file",
            json!({"path": "docs/a.md"}),
            "Blocked read_file: blocked by policy",
        ),
        (
            "edit_file",
            edit("free/f.md", "free", "x"),
            "Blocked edit_file: Protect sensitive files",
        ),
        (
            "copy_file",
            from_to("free/f.md", "user/f.md"),
            "Blocked copy_file: Protect sensitive files",
        ),
    ] {
        let reply = chat.call(tool, arguments).await;
        assert_eq!(reply.failure, Some(FailureClass::Refused), "{}", reply.text);
        assert_eq!(reply.text, told);
        assert!(person.taken().is_empty());
    }
}

#[tokio::test]
async fn no_failure_has_a_mark() {
    let backend = store().await;
    let chat = chat_under(policy().build(), &backend, None);
    for (tool, arguments) in [
        ("ls", json!({})),
        ("execute", json!({"command": "true"})),
        ("read_file", json!({"path": 7})),
        ("read_file", json!({})),
        ("read_file", json!([])),
        ("read_file", json!({"path": "user/no.md"})),
        ("write_file", json!({"path": "user/n.md", "content": ""})),
    ] {
        let reply = chat.call(tool, arguments).await;
        assert!(!reply.is_success(), "{tool}: {}", reply.text);
        assert!(!reply.text.starts_with("Error"), "{tool}: {}", reply.text);
    }
}
