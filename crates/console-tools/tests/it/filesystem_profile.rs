//! Tests of the `filesystem` profile through a toolset with mounts: every tool works
//! and asks one question in that library's words.

use backend_core::BackendExt as _;
use console_tools::FailureClass;
use permissions::approval::Effect;
use serde_json::{Value, json};

use crate::support::approver::{RecordingApprover, snapshot};
use crate::support::mounted::{chat, edit, from_to, store};

/// Returns a tool, its arguments, the question in its words, and the reply.
fn calls() -> Vec<(&'static str, Value, &'static str, String)> {
    let whole = json!({
        "content": "one two two\n", "truncated": false, "total_chars": 12, "offset": 0,
        "chars_read": 12,
    });
    vec![
        (
            "read_file",
            json!({"path": "user//b.md"}),
            "Read from user//b.md",
            whole.to_string(),
        ),
        (
            "write_file",
            json!({"path": "user/n.md", "content": "né\n"}),
            "Write 3 chars to user/n.md",
            "Written 3 characters to user/n.md".to_owned(),
        ),
        (
            "list_files",
            json!({}),
            "List file paths in / matching **/*",
            json!([
                "/docs/a.bin",
                "/docs/a.md",
                "/docs/big.md",
                "/free/f.md",
                "/user/b.md",
                "/user/crlf.md",
                "/user/empty.md",
                "/user/long.txt",
                "/user/sub/c.md",
            ])
            .to_string(),
        ),
        (
            "list_files",
            json!({"path": "user", "pattern": "*.md"}),
            "List file paths in user matching *.md",
            r#"["/user/b.md","/user/crlf.md","/user/empty.md"]"#.to_owned(),
        ),
        (
            "edit_file",
            edit("user/b.md", "one two", "1 2"),
            "Edit user/b.md: replace 7 chars with 3 chars",
            "Edited user/b.md: replaced 7 chars with 3 chars".to_owned(),
        ),
        (
            "edit_file",
            edit("user/crlf.md", "one\ntwo", "1\n2"),
            "Edit user/crlf.md: replace 7 chars with 3 chars",
            "Edited user/crlf.md: replaced 7 chars with 3 chars".to_owned(),
        ),
        (
            "edit_file",
            edit("user/empty.md", "", "full"),
            "Edit user/empty.md: replace 0 chars with 4 chars",
            "Edited user/empty.md: replaced 0 chars with 4 chars".to_owned(),
        ),
        (
            "delete_file",
            json!({"path": "user/b.md"}),
            "Delete user/b.md",
            "Deleted user/b.md".to_owned(),
        ),
        (
            "move_file",
            from_to("user/b.md", "user/new/m.md"),
            "Move user/b.md to user/new/m.md",
            "Moved user/b.md to user/new/m.md".to_owned(),
        ),
        (
            "copy_file",
            from_to("docs/a.md", "user/a.md"),
            "Copy docs/a.md to user/a.md",
            "Copied docs/a.md to user/a.md".to_owned(),
        ),
        (
            "copy_file",
            from_to("user/b.md", "free/b.md"),
            "Copy user/b.md to free/b.md",
            "Copied user/b.md to free/b.md".to_owned(),
        ),
    ]
}

#[tokio::test]
async fn each_tool_asks_one_question_in_these_words() {
    for (tool, arguments, description, answer) in calls() {
        let what = format!("{tool} {arguments}");
        let backend = store().await;
        let before = snapshot(&backend).await;
        let person = RecordingApprover::new(false);
        let chat = chat(&backend, &person);
        let reply = chat.call(tool, arguments.clone()).await;
        assert_eq!(
            reply.failure,
            Some(FailureClass::Refused),
            "{what}: {}",
            reply.text
        );
        assert_eq!(reply.text, format!("Approval denied for {tool}: not today"));
        let asked = person.taken();
        assert_eq!(asked.len(), 1, "{what}: {asked:?}");
        assert_eq!(asked[0].description, description);
        assert!(snapshot(&backend).await == before, "{what}");

        person.say(true);
        let reply = chat.call(tool, arguments).await;
        assert!(reply.is_success(), "{what}: {}", reply.text);
        assert_eq!(reply.text, answer, "{what}");
        assert_eq!(person.taken().len(), 1, "{what}");
    }
    assert_eq!(chat_definitions().await.len(), 7);
}

async fn chat_definitions() -> Vec<String> {
    let chat = chat(&store().await, &RecordingApprover::new(true));
    let definitions = chat.definitions().await.unwrap();
    definitions.iter().map(|tool| tool.name.clone()).collect()
}

#[tokio::test]
async fn what_was_asked_is_what_happens() {
    let backend = store().await;
    let person = RecordingApprover::new(true);
    let chat = chat(&backend, &person);
    chat.call("edit_file", edit("user/crlf.md", "one\ntwo", "1\n2"))
        .await;
    let asked = person.taken();
    assert!(matches!(&asked[0].effect, Effect::Diff { text, .. } if text.contains("+1")));
    let now = backend.read_to_string("/user/crlf.md").await.unwrap();
    assert_eq!(now, "1\r\n2\r\n");
    chat.call("edit_file", edit("user/empty.md", "", "full"))
        .await;
    assert_eq!(
        backend.read_to_string("/user/empty.md").await.unwrap(),
        "full"
    );
    person.taken();
    chat.call(
        "write_file",
        json!({"path": "user/b.md", "content": "new\n"}),
    )
    .await;
    let asked = person.taken();
    assert!(
        asked[0].to_string().contains("-one two two\n+new"),
        "{}",
        asked[0]
    );
    chat.call("move_file", from_to("user/b.md", "user/m.md"))
        .await;
    assert_eq!(backend.read_to_string("/user/m.md").await.unwrap(), "new\n");
    assert!(backend.read_to_string("/user/b.md").await.is_err());
}

#[tokio::test]
async fn what_needs_no_approval_asks_nobody() {
    let backend = store().await;
    let person = RecordingApprover::new(false);
    let chat = chat(&backend, &person);
    for (tool, arguments) in [
        ("read_file", json!({"path": "/free/f.md"})),
        ("list_files", json!({"path": "/free"})),
        ("write_file", json!({"path": "free/n.md", "content": "one"})),
        ("edit_file", edit("free/n.md", "one", "1")),
        ("copy_file", from_to("docs/a.md", "free/a.md")),
        ("move_file", from_to("free/n.md", "free/m.md")),
        ("delete_file", json!({"path": "free/m.md"})),
    ] {
        let reply = chat.call(tool, arguments).await;
        assert!(reply.is_success(), "{tool}: {}", reply.text);
        assert!(person.taken().is_empty(), "{tool}");
    }
    person.say(true);
    for (path, pattern, files) in [
        ("/free", "**/*", "/free/a.md /free/f.md"),
        ("user", "sub/*", "/user/sub/c.md"),
        (
            " / ",
            "[abf]*.md",
            "/docs/a.md /docs/big.md /free/a.md /free/f.md /user/b.md",
        ),
    ] {
        let args = json!({"path": path, "pattern": pattern});
        let files: Vec<_> = files.split(' ').collect();
        let reply = chat.call("list_files", args).await;
        assert_eq!(reply.text, json!(files).to_string(), "{path}");
    }
}

#[tokio::test]
async fn a_window_of_a_file_is_an_object() {
    let backend = store().await;
    let person = RecordingApprover::new(true);
    let chat = chat(&backend, &person);
    let definitions = chat.definitions().await.unwrap();
    let schema = definitions.get("read_file").unwrap().output_schema();
    let mut required: Vec<_> = schema.unwrap()["required"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field.as_str().unwrap().to_owned())
        .collect();
    required.sort_unstable();
    assert_eq!(
        required,
        [
            "chars_read",
            "content",
            "offset",
            "total_chars",
            "truncated"
        ]
    );
    // Longer than one chunk of a read.
    let reply = chat
        .call("read_file", json!({"path": "user/long.txt"}))
        .await;
    let data = reply.structured.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&reply.text).unwrap(), data);
    assert_eq!(data["truncated"], json!(true));
    assert_eq!(
        (&data["total_chars"], &data["chars_read"], &data["offset"]),
        (&json!(280_000), &json!(20_000), &json!(0))
    );
    let args = json!({"path": "user/long.txt", "offset": 279_995, "max_chars": 99});
    let data = chat.call("read_file", args).await.structured.unwrap();
    assert_eq!(
        data,
        json!({
            "content": "56789", "truncated": false, "total_chars": 280_000, "offset": 279_995,
            "chars_read": 5,
        })
    );
    assert_eq!(person.taken().len(), 2, "one for each call");
}
