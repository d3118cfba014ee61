//! Tests of the `filesystem` profile through a toolset with mounts: refusals and
//! failures, in that library's words.

use backend_core::VPath;
use console_tools::{FailureClass, Reply};
use permissions::Ruleset;
use serde_json::{Value, json};

use crate::support::approver::{RecordingApprover, snapshot};
use crate::support::mounted::{chat, chat_under, edit, from_to, policy, store};

/// A tool, its arguments, and the expected message.
type Case = (&'static str, Value, String);

/// Calls each tool and checks that nothing changes and that the failure is the expected
/// one. Each call may ask at most `questions` questions.
async fn check(class: FailureClass, cases: Vec<Case>, questions: usize) {
    let backend = store().await;
    let before = snapshot(&backend).await;
    let person = RecordingApprover::new(true);
    let chat = chat(&backend, &person);
    for (tool, arguments, told) in cases {
        let shown: String = arguments.to_string().chars().take(80).collect();
        let what = format!("{tool} {shown}");
        let reply = chat.call(tool, arguments).await;
        assert_eq!(reply.failure, Some(class), "{what}: {}", reply.text);
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
    let secret = "secret/s.md";
    let cases = vec![
        case("read_file", path("secret//s.md"), "secret//s.md"),
        case("read_file", path(" secret\\s.md"), " secret\\s.md"),
        case("write_file", write("/x", ""), "/x"),
        case("edit_file", edit(secret, "s", "t"), secret),
        case("delete_file", path(secret), secret),
        case("move_file", from_to(secret, "user/s.md"), secret),
        case("copy_file", from_to(secret, "user/s.md"), secret),
        case("copy_file", from_to("user/b.md", "/b.md"), "/b.md"),
        case("list_files", path("secret"), "secret"),
    ];
    check(FailureClass::Refused, cases, 0).await;
    // What is no path is outside.
    let no_paths = ["~/s.md", "C:\\x", "/docs/../../etc", "a\0"];
    let no_paths = no_paths.map(|text| case("read_file", path(text), &text.replace('\0', "\\0")));
    check(FailureClass::Fixable, no_paths.into(), 0).await;
}

#[tokio::test]
async fn what_is_too_long_is_told_so() {
    let told = |what: &str, most: &str| format!("' {what}, more than the {most}");
    let name = format!("/user/{}", "n".repeat(256));
    let long_name = told("has 256 bytes", "255 a name can have; shorten it");
    let deep = "/user".to_owned() + &"/d".repeat(255);
    let long = "/user".to_owned() + &format!("/{}", "n".repeat(250)).repeat(17);
    let chat = chat(&store().await, &RecordingApprover::new(true));
    for (tool, arguments, end) in [
        ("read_file", path(&name), &long_name),
        ("write_file", write(&name, ""), &long_name),
        ("edit_file", edit(&name, "a", "b"), &long_name),
        ("delete_file", path(&name), &long_name),
        ("move_file", from_to("/user/b.md", &name), &long_name),
        ("copy_file", from_to(&name, "/user/c.md"), &long_name),
        ("list_files", path(&name), &long_name),
        (
            "read_file",
            path(&deep),
            &told("is 256 levels deep", "255 a path can have; nest less"),
        ),
        (
            "read_file",
            path(&long),
            &told("has 4272 bytes", "4095 a path can have; shorten it"),
        ),
    ] {
        let Reply { text, failure, .. } = chat.call(tool, arguments).await;
        assert_eq!(failure, Some(FailureClass::Fixable), "{tool}: {text}");
        assert!(text.starts_with("Cannot use this path: "), "{tool}: {text}");
        assert!(text.ends_with(end) && text.len() < 400, "{tool}: {text}");
    }
    // A name of the maximum length is merely not found.
    let longest = format!("/user/{}.md", "n".repeat(252));
    let reply = chat.call("read_file", path(&longest)).await;
    assert!(reply.text.starts_with("File not found"), "{}", reply.text);
}

#[tokio::test]
async fn what_is_read_only_is_refused_in_these_words() {
    let case = |tool, arguments, path: &str| {
        let told =
            format!("Cannot write to '{path}': path is read-only.\nWritable paths: /user, /free");
        (tool, arguments, told)
    };
    let spelt = "docs/./a.md";
    let cases = vec![
        case("write_file", write("docs/n.md", ""), "docs/n.md"),
        case("edit_file", edit(spelt, "about", "x"), spelt),
        case("delete_file", path("docs/a.md"), "docs/a.md"),
        case("move_file", from_to("docs/a.md", "user/a.md"), "docs/a.md"),
        case("move_file", from_to("user/b.md", "docs/b.md"), "docs/b.md"),
        case("copy_file", from_to("user/b.md", "docs/b.md"), "docs/b.md"),
    ];
    check(FailureClass::Refused, cases, 0).await;
}

#[tokio::test]
async fn suffixes_and_sizes_are_refused_in_these_words() {
    let suffix = "Cannot access 'docs/a.bin': suffix '.bin' not allowed.\n\
                  Allowed suffixes: .md, .txt";
    let copy = from_to("docs/a.bin", "user/a.bin");
    let cases = [("read_file", path("docs/a.bin")), ("copy_file", copy)];
    let cases = cases.map(|(tool, arguments)| (tool, arguments, suffix.to_owned()));
    check(FailureClass::Refused, cases.into(), 0).await;
    let large = |tool, arguments, path: &str, [size, most]: [&str; 2]| {
        let told = format!(
            "Cannot read '{path}': file too large ({size} bytes).\nMaximum allowed: {most} bytes"
        );
        (tool, arguments, told)
    };
    let (big, new, old) = ("docs/big.md", "user/n.md", "user/b.md");
    let (much, size) = ("x".repeat(300_001), ["2,001", "2,000"]);
    let (one_more, ten_more) = (["300,001", "300,000"], ["300,010", "300,000"]);
    let cases = vec![
        large("read_file", path(big), big, size),
        large("copy_file", from_to(big, "user/big.md"), big, size),
        large("write_file", write(new, &much), new, one_more),
        large("edit_file", edit(old, "one", &much), old, ten_more),
    ];
    check(FailureClass::Fixable, cases, 0).await;
}

#[tokio::test]
async fn what_cannot_be_done_is_told_in_these_words() {
    let case = |tool, arguments, told: &str| (tool, arguments, told.to_owned());
    let missing = "File not found: user/no.md";
    let no_source = "Source file not found: user/no.md";
    let not_found = "Cannot edit 'user/b.md': text not found in file.\nSearched for: 'QQQQ'";
    let twice =
        "Cannot edit 'user/b.md': text found 2 times (must be unique).\nSearched for: 'two'";
    let no_delete = "Cannot delete directory with delete_file: user/sub";
    let (no_move, no_copy) = (
        "Cannot move directory: user/sub",
        "Cannot copy directory: user/sub",
    );
    let there = "Destination already exists: user/sub/c.md";
    let cases = vec![
        case("read_file", path("user/no.md"), missing),
        case("read_file", path("user/sub"), "Not a file: user/sub"),
        case("edit_file", edit("user/no.md", "a", "b"), missing),
        case("edit_file", edit("user/b.md", "QQQQ", "b"), not_found),
        case("edit_file", edit("user/b.md", "two", "b"), twice),
        case("delete_file", path("user/no.md"), missing),
        case("delete_file", path("user/sub"), no_delete),
        case("move_file", from_to("user/no.md", "user/m.md"), no_source),
        case("move_file", from_to("user/sub", "user/m"), no_move),
        case("move_file", from_to("user/b.md", "user/sub/c.md"), there),
        case("copy_file", from_to("user/no.md", "user/m.md"), no_source),
        case("copy_file", from_to("user/sub", "user/m"), no_copy),
    ];
    check(FailureClass::Fixable, cases, 1).await;
}

#[tokio::test]
async fn what_makes_no_sense_is_told_in_these_words() {
    let case = |tool, arguments, told: &str| (tool, arguments, told.to_owned());
    let window =
        |offset: i64, max: i64| json!({"path": "user/b.md", "offset": offset, "max_chars": max});
    let list = |pattern: &str, told: &str| {
        let arguments = json!({"path": "user", "pattern": pattern});
        case("list_files", arguments, &format!("pattern must {told}"))
    };
    let cases = vec![
        case("read_file", window(-1, -5), "offset must be >= 0, got -1"),
        case("read_file", window(0, -5), "max_chars must be >= 0, got -5"),
        list("../x", "not contain '..' path segments"),
        list("/x", "be relative (must not start with '/' or '~')"),
        list("C:x", "not be a Windows drive path"),
        list("\0", "not contain null bytes"),
    ];
    check(FailureClass::Fixable, cases, 0).await;
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
    let protected = "Protect sensitive files";
    for (tool, arguments, why) in [
        ("read_file", path("free/f.md"), protected),
        ("read_file", path("docs/a.md"), "blocked by policy"),
        ("edit_file", edit("free/f.md", "free", "x"), protected),
        ("copy_file", from_to("free/f.md", "user/f.md"), protected),
    ] {
        let reply = chat.call(tool, arguments).await;
        assert_eq!(reply.failure, Some(FailureClass::Refused), "{}", reply.text);
        assert_eq!(reply.text, format!("Blocked {tool}: {why}"));
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
