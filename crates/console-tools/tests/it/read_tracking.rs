//! Tests of read tracking through conversations: foreign changes are not overwritten,
//! and a conversation's own changes never conflict with each other.

use std::sync::Arc;

use backend_core::BackendExt as _;
use backend_state::StateBackend;
use console_tools::{Chat, EditFormat, FailureClass, Options, Profile, Reply, Toolset};
use permissions::{Policy, Preset};
use serde_json::{Value, json};

use crate::support::approver::RecordingApprover;

fn toolset(backend: &StateBackend, options: Options) -> Toolset {
    let builder = Toolset::builder(Arc::new(backend.clone())).options(options);
    builder.policy(Policy::allow_all()).build().unwrap()
}

fn options() -> Options {
    let mut options = Options::default();
    options.include_file_operations = true;
    options
}

async fn store() -> StateBackend {
    let backend = StateBackend::new();
    backend.write_file("/a", "one\ntwo\n").await.unwrap();
    backend
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_string": old, "new_string": new})
}

async fn read(chat: &Chat, path: &str) {
    let reply = chat.call("read_file", json!({ "path": path })).await;
    assert!(reply.is_success(), "{}", reply.text);
}

fn stale(reply: &Reply) {
    assert_eq!(reply.failure, Some(FailureClass::Fixable), "{}", reply.text);
    let text = &reply.text;
    assert!(text.contains("changed since you last read it"), "{text}");
}

#[tokio::test]
async fn every_spelling_is_one_file() {
    let spellings = ["a", "/a", "./a", "b/../a", "//a", "a/"];
    for reading in spellings {
        for editing in spellings {
            let backend = store().await;
            let chat = toolset(&backend, options()).conversation("c");
            read(&chat, reading).await;
            backend.write_file("/a", "one\n2\n").await.unwrap();
            let reply = chat.call("edit_file", edit(editing, "one", "1")).await;
            stale(&reply);
            assert!(reply.text.contains("-two\n+2"), "{}", reply.text);
            assert_eq!(backend.read_to_string("/a").await.unwrap(), "one\n2\n");
        }
    }
}

#[tokio::test]
async fn each_conversation_has_read_for_itself() {
    let backend = store().await;
    let mut wanted = options();
    wanted.require_read_before_edit = true;
    let toolset = toolset(&backend, wanted);
    let (one, two) = (toolset.conversation("same"), toolset.conversation("same"));
    read(&one, "a").await;
    let reply = two.call("edit_file", edit("a", "one", "1")).await;
    assert!(
        reply.text.contains("has not been read yet"),
        "{}",
        reply.text
    );
    // A write of one conversation is a foreign change for the other.
    read(&two, "a").await;
    let reply = one.clone().call("edit_file", edit("a", "one", "1")).await;
    assert!(reply.is_success(), "{}", reply.text);
    stale(&two.call("edit_file", edit("a", "two", "2")).await);
    let write = json!({"path": "a", "content": "x"});
    stale(&two.call("write_file", write.clone()).await);
    read(&two, "a").await;
    assert!(two.call("write_file", write).await.is_success());
    stale(&one.call("edit_file", edit("a", "x", "y")).await);
}

#[tokio::test]
async fn what_is_moved_copied_or_deleted_is_known_accordingly() {
    let backend = store().await;
    let mut wanted = options();
    wanted.require_read_before_edit = true;
    let chat = toolset(&backend, wanted).conversation("c");
    read(&chat, "a").await;
    let to = |to: &str| json!({"source": "a", "destination": to});
    assert!(chat.call("copy_file", to("copied")).await.is_success());
    assert!(chat.call("move_file", to("moved")).await.is_success());
    // The entry of a read file moves along. A copy counts as unread.
    let reply = chat.call("edit_file", edit("copied", "one", "1")).await;
    assert!(
        reply.text.contains("has not been read yet"),
        "{}",
        reply.text
    );
    let reply = chat.call("edit_file", edit("moved", "one", "1")).await;
    assert!(reply.is_success(), "{}", reply.text);
    backend.write_file("/moved", "other\n").await.unwrap();
    stale(&chat.call("edit_file", edit("moved", "other", "1")).await);
    // Deleted and recreated by another process: never read.
    assert!(
        chat.call("delete_file", json!({"path": "moved"}))
            .await
            .is_success()
    );
    backend.write_file("/moved", "anew\n").await.unwrap();
    let reply = chat.call("edit_file", edit("moved", "anew", "1")).await;
    assert!(
        reply.text.contains("has not been read yet"),
        "{}",
        reply.text
    );
}

#[tokio::test]
async fn a_part_that_was_read_stands_for_the_file() {
    let backend = store().await;
    let chat = toolset(&backend, options()).conversation("c");
    let part = json!({"path": "a", "limit": 1});
    assert!(chat.call("read_file", part).await.is_success());
    let reply = chat.call("edit_file", edit("a", "two", "2")).await;
    assert!(reply.is_success(), "{}", reply.text);
    // A change outside of the shown lines counts as well.
    let part = json!({"path": "a", "limit": 1});
    assert!(chat.call("read_file", part).await.is_success());
    backend.write_file("/a", "one\nthree\n").await.unwrap();
    stale(&chat.call("edit_file", edit("a", "one", "1")).await);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_that_changes_a_file_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let local = backend_local::LocalBackend::builder(directory.path()).enable_execute(true);
    let toolset = Toolset::builder(Arc::new(local.open().unwrap()));
    let toolset = toolset.policy(Policy::allow_all()).build().unwrap();
    let chat = toolset.conversation("c");
    let write = json!({"path": "a", "content": "one\ntwo\n"});
    assert!(chat.call("write_file", write).await.is_success());
    let sed = json!({"command": "sed -i s/two/2/ a"});
    assert!(chat.call("execute", sed).await.is_success());
    let reply = chat.call("edit_file", edit("a", "one", "1")).await;
    stale(&reply);
    assert!(reply.text.contains("-two\n+2"), "{}", reply.text);
    read(&chat, "a").await;
    let reply = chat.call("edit_file", edit("a", "one", "1")).await;
    assert!(reply.is_success(), "{}", reply.text);
}

/// Concurrent edits, each approved by the user.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn edits_at_once_are_asked_about_one_after_the_other_and_none_is_lost() {
    const EDITS: usize = 12;
    for profile in [Profile::Coding, Profile::Filesystem] {
        let backend = StateBackend::new();
        let text: String = (0..EDITS).map(|n| format!("<{n}>\n")).collect();
        backend.write_file("/a", text).await.unwrap();
        let mut wanted = options();
        wanted.profile = profile;
        let person = RecordingApprover::new(true);
        let toolset = Toolset::builder(Arc::new(backend.clone()))
            .options(wanted)
            .ruleset(Preset::Strict.ruleset())
            .approver(person.clone());
        let chat = toolset.build().unwrap().conversation("c");
        let calls = (0..EDITS).map(|n| {
            let chat = chat.clone();
            tokio::spawn(async move {
                let (old, new) = (format!("<{n}>"), format!("[{n}]"));
                let path = ["a", "/a", "./a"][n % 3];
                let arguments = match profile {
                    Profile::Filesystem => json!({"path": path, "old_text": old, "new_text": new}),
                    _ => edit(path, &old, &new),
                };
                chat.call("edit_file", arguments).await
            })
        });
        for call in calls.collect::<Vec<_>>() {
            let reply = call.await.unwrap();
            assert!(reply.is_success(), "{profile:?}: {}", reply.text);
        }
        let want: String = (0..EDITS).map(|n| format!("[{n}]\n")).collect();
        assert_eq!(backend.read_to_string("/a").await.unwrap(), want);
        assert_eq!(person.taken().len(), EDITS);
    }
}

#[tokio::test]
async fn lines_are_edited_by_what_was_read() {
    let backend = store().await;
    let mut wanted = options();
    wanted.edit_format = EditFormat::Hashline;
    let chat = toolset(&backend, wanted).conversation("c");
    read(&chat, "a").await;
    backend.write_file("/a", "one\ntwo\nthree\n").await.unwrap();
    // The line is unchanged, but the file is not.
    let line = json!({"path": "a", "start_line": 2, "start_hash": "b8", "new_content": "2"});
    stale(&chat.call("hashline_edit", line.clone()).await);
    read(&chat, "a").await;
    assert!(chat.call("hashline_edit", line).await.is_success());
}
