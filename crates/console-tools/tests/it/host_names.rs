//! Tests of paths as commands print them, on a backend that shows a host directory as
//! `/`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use backend_local::LocalBackend;
use console_tools::{Chat, Toolset};
use permissions::{Action, Op, Preset, Ruleset};
use serde_json::json;

fn chat(directory: &Path, ruleset: Ruleset) -> Chat {
    let backend = LocalBackend::builder(directory).enable_execute(true);
    let tools = Toolset::builder(Arc::new(backend.open().unwrap())).ruleset(ruleset);
    tools.build().unwrap().conversation("test")
}

#[tokio::test]
async fn what_pwd_prints_is_understood() {
    let directory = tempfile::tempdir().unwrap();
    let chat = chat(directory.path(), Preset::Permissive.ruleset());
    let reply = chat.call("execute", json!({"command": "pwd"})).await;
    let host = reply.text.trim().to_owned();
    assert!(host.starts_with('/') && host != "/", "{host}");
    let file = format!("{host}/a.txt");
    let reply = chat
        .call("write_file", json!({"path": file, "content": "one\n"}))
        .await;
    // The reply teaches the model the path of the backend.
    assert_eq!(reply.text, "Wrote 1 line to /a.txt");
    assert_eq!(fs::read(directory.path().join("a.txt")).unwrap(), b"one\n");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let reply = chat.call("read_file", json!({"path": file})).await;
    assert!(reply.text.contains("one"), "{}", reply.text);
    for (tool, arguments) in [
        ("ls", json!({"path": host})),
        ("glob", json!({"path": host, "pattern": "*.txt"})),
        ("grep", json!({"path": host, "pattern": "one"})),
    ] {
        let reply = chat.call(tool, arguments).await;
        assert!(reply.text.contains("a.txt"), "{tool}: {}", reply.text);
    }
    let above = format!("{host}/../a.txt");
    let reply = chat.call("read_file", json!({"path": above})).await;
    assert!(!reply.is_success(), "{}", reply.text);
}

#[tokio::test]
async fn rules_hold_for_both_names() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("vault")).unwrap();
    fs::write(directory.path().join("vault/key"), "secret").unwrap();
    let ruleset = Ruleset::builder()
        .default_action(Action::Allow)
        .rule(Op::Read, "/vault/**", Action::Deny, "")
        .build()
        .unwrap();
    let chat = chat(directory.path(), ruleset);
    let host = directory.path().canonicalize().unwrap();
    for path in [
        "/vault/key".to_owned(),
        format!("{}/vault/key", host.display()),
    ] {
        let reply = chat.call("read_file", json!({"path": path})).await;
        assert!(
            !reply.is_success() && !reply.text.contains("secret"),
            "{path}"
        );
        assert!(reply.text.contains("Permission denied"), "{}", reply.text);
    }
}

#[tokio::test]
async fn a_name_that_the_directory_has_itself_is_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let host = directory.path().canonicalize().unwrap();
    let inside = host.join(host.strip_prefix("/").unwrap());
    fs::create_dir_all(&inside).unwrap();
    fs::write(inside.join("a.txt"), "inside").unwrap();
    fs::write(host.join("a.txt"), "outside").unwrap();
    let chat = chat(directory.path(), Preset::Permissive.ruleset());
    let path = format!("{}/a.txt", host.display());
    let reply = chat.call("read_file", json!({"path": path})).await;
    assert!(reply.text.contains("inside"), "{}", reply.text);
}
