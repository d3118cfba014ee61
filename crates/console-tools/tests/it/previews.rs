//! Tests that a preview matches the call.

use std::sync::Arc;

use backend_core::BackendExt as _;
use backend_state::StateBackend;
use console_tools::{
    CallPreview, Chat, EditFormat, FailureClass, Options, Toolset, ToolsetBuilder,
};
use permissions::approval::{
    Answer, ApprovalService, ApproveAll, Deferred, Grants, Interactive, Strict,
};
use permissions::audit::AuditLog;
use permissions::tool::{Tool, ToolSetting, ToolSettings};
use permissions::{Action, Preset, Question, Remember};
use serde_json::{Value, json};

use crate::support::approver;
use crate::support::approver::{RecordingApprover, Swap, snapshot};
use crate::support::cases;
use crate::support::cases::{by_line, changes, looks, store};
use crate::support::mounted;
use crate::support::mounted::{edit, from_to};

/// A tool and its arguments.
type Call = (&'static str, Value);

/// Returns everything that a question says.
fn told(questions: &[Question]) -> Vec<(String, Value, String)> {
    let told = questions.iter().map(|question| {
        let fingerprint = question.fingerprint().to_string();
        (question.to_string(), question.args.clone(), fingerprint)
    });
    told.collect()
}

/// Previews a call twice, makes it, and compares them. Returns the outcome in one word.
async fn agree(
    what: &str,
    chat: &Chat,
    person: &RecordingApprover,
    (tool, arguments): Call,
) -> &'static str {
    let what = format!("{what}: {tool} {arguments:.200}");
    let first = chat.preview(tool, arguments.clone()).await;
    let preview = chat.preview(tool, arguments.clone()).await;
    assert_eq!(format!("{first:?}"), format!("{preview:?}"), "{what}");
    assert!(person.taken().is_empty(), "{what}: somebody was asked");
    let reply = chat.call(tool, arguments).await;
    let asked = person.taken();
    assert_eq!(told(preview.questions()), told(&asked), "{what}");
    assert!(asked.len() <= 1, "{what}: one call is one question");
    match preview {
        CallPreview::Allowed => {
            assert_ne!(
                reply.failure,
                Some(FailureClass::Refused),
                "{what}: {reply:?}"
            );
            "allowed"
        }
        CallPreview::Asks(_) => {
            assert!(!asked.is_empty(), "{what}");
            assert_ne!(
                reply.failure,
                Some(FailureClass::Refused),
                "{what}: {reply:?}"
            );
            "asks"
        }
        CallPreview::Denied(told) => {
            assert_eq!(reply.failure, Some(FailureClass::Refused), "{what}");
            assert_eq!(told, reply, "{what}");
            "denied"
        }
        CallPreview::Fails(told) => {
            assert_eq!(told, reply, "{what}");
            assert!(!reply.is_success(), "{what}");
            "fails"
        }
        other => panic!("{what}: {other:?}"),
    }
}

/// Returns calls that are refused or fail, always or under some of the policies.
fn wrong() -> Vec<Call> {
    Vec::from(calls! {
        read_file {"path": "/nowhere"};
        read_file {"path": "/.env"};
        read_file {"path": "/src"};
        read_file {"path": "/src/a.rs", "offset": 9};
        read_file {"path": 7};
        reed_file {"path": "/src/a.rs"};
        ls {"path": "/nowhere"};
        glob {"pattern": "*", "path": "/nowhere"};
        glob {"pattern": "["};
        grep {"pattern": "("};
        grep {"pattern": "two", "path": "/.env"};
        write_file {"path": "/.env", "content": "x"};
        write_file {"path": "/src", "content": "x"};
        write_file {"path": "/src/a.rs/b", "content": "x"};
        edit_file {"path": "/src/a.rs", "old_string": "twoo", "new_string": "2"};
        edit_file {"path": "/nowhere", "old_string": "two", "new_string": "2"};
        edit_file {"path": "/.env", "old_string": "a", "new_string": "b"};
        delete_file {"path": "/nowhere"};
        delete_file {"path": "/src"};
        delete_file {"path": "/src", "recursive": true};
        delete_file {"path": "/"};
        move_file {"source": "/src/a.rs", "destination": "/src/b.rs"};
        move_file {"source": "/nowhere", "destination": "/c"};
        move_file {"source": "/.env", "destination": "/c"};
        copy_file {"source": "/src/a.rs", "destination": "/.env"};
        copy_file {"source": "/src", "destination": "/c"};
        execute {"command": "ls"};
    })
}

type Law = (&'static str, fn(ToolsetBuilder) -> ToolsetBuilder);

fn all_ask() -> ToolSettings {
    let ask = ToolSetting::action(Action::Ask);
    let all = Tool::ALL.iter();
    all.fold(ToolSettings::default(), |all, tool| all.with(*tool, ask))
}

const LAWS: &[Law] = &[
    ("default", |builder| {
        builder.ruleset(Preset::Default.ruleset())
    }),
    ("permissive", |builder| {
        builder.ruleset(Preset::Permissive.ruleset())
    }),
    ("readonly", |builder| {
        builder.ruleset(Preset::Readonly.ruleset())
    }),
    ("strict", |builder| {
        builder.ruleset(Preset::Strict.ruleset())
    }),
    ("settings", |builder| builder.tool_settings(all_ask())),
    ("options", |builder| builder),
];

fn options(edit_format: EditFormat) -> Options {
    let mut options = Options::default();
    options.edit_format = edit_format;
    options.include_file_operations = true;
    options.image_support = true;
    options.document_support = true;
    options.require_write_approval = true;
    options
}

async fn with_secret() -> StateBackend {
    let backend = store().await;
    backend.write_file("/.env", "a=two\n").await.unwrap();
    backend
}

#[tokio::test]
async fn for_every_tool_under_every_law() {
    let case = |case: cases::Case| (case.tool, case.arguments);
    let mut calls: Vec<(EditFormat, Call)> = Vec::new();
    for call in looks()
        .into_iter()
        .chain(changes())
        .map(case)
        .chain(wrong())
    {
        calls.push((EditFormat::StrReplace, call));
    }
    calls.extend(
        by_line()
            .into_iter()
            .map(|line| (EditFormat::Hashline, case(line))),
    );
    let (mut tools, mut outcomes) = (Vec::new(), Vec::new());
    for (law, apply) in LAWS {
        for (format, call) in &calls {
            let backend = with_secret().await;
            let before = snapshot(&backend).await;
            let (person, log) = (RecordingApprover::new(true), AuditLog::new(10));
            let builder = Toolset::builder(Arc::new(backend.clone()))
                .options(options(*format))
                .audit(log.audit())
                .approver(person.clone());
            let chat = apply(builder).build().unwrap().conversation("c");
            chat.preview(call.0, call.1.clone()).await;
            assert!(snapshot(&backend).await == before, "{law} {call:?}");
            assert!(log.records().is_empty(), "{law} {call:?}");
            outcomes.push((*law, agree(law, &chat, &person, call.clone()).await));
            tools.push(call.0);
        }
    }
    // The table is useful only if it covers every outcome.
    for law in ["default", "strict", "settings", "options"] {
        assert!(outcomes.contains(&(law, "asks")), "{law}");
    }
    for outcome in ["allowed", "denied", "fails"] {
        assert!(outcomes.contains(&("default", outcome)), "{outcome}");
    }
    let options = options(EditFormat::StrReplace);
    let toolset = Toolset::builder(Arc::new(StateBackend::new())).options(options);
    for tool in toolset.build().unwrap().definitions().iter() {
        assert!(tools.contains(&&*tool.name), "{} is not tried", tool.name);
    }
}

/// The library that this profile replaces offered `needs_approval`.
#[tokio::test]
async fn for_the_profile_with_mounts() {
    let path = |path: &str| json!({ "path": path });
    let write = |path: &str| json!({"path": path, "content": "new\n"});
    for (tool, arguments, description) in [
        ("read_file", path("docs/a.md"), None),
        ("read_file", path("user/b.md"), Some("Read from user/b.md")),
        (
            "write_file",
            write("user/n.md"),
            Some("Write 4 chars to user/n.md"),
        ),
        ("write_file", write("free/n.md"), None),
        ("write_file", write("docs/n.md"), None),
        (
            "edit_file",
            edit("user/b.md", "one", "1"),
            Some("Edit user/b.md: replace 3 chars with 1 chars"),
        ),
        ("delete_file", path("user/b.md"), Some("Delete user/b.md")),
        (
            "move_file",
            from_to("user/b.md", "free/b.md"),
            Some("Move user/b.md to free/b.md"),
        ),
        (
            "copy_file",
            from_to("docs/a.md", "user/a.md"),
            Some("Copy docs/a.md to user/a.md"),
        ),
        (
            "list_files",
            path("user"),
            Some("List file paths in user matching **/*"),
        ),
        ("list_files", path("free"), None),
        ("list_files", path("secret"), None),
    ] {
        let backend = mounted::store().await;
        let person = RecordingApprover::new(true);
        let chat = mounted::chat(&backend, &person);
        let preview = chat.preview(tool, arguments.clone()).await;
        let asked = preview.questions().first();
        let asked = asked.map(|question| question.description.as_str());
        assert_eq!(asked, description, "{tool} {arguments}");
        agree("mounts", &chat, &person, (tool, arguments)).await;
    }
}

/// Link targets, commands, and background shells.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn local_for_links_and_commands() {
    let calls: &[Call] = &calls! {
        read_file {"path": "link"};
        grep {"pattern": "two", "path": "link"};
        grep {"pattern": "two", "path": "secrets.link"};
        ls {"path": "directory"};
        glob {"pattern": "*", "path": "directory"};
        write_file {"path": "directory/new", "content": "x"};
        edit_file {"path": "link", "old_string": "two", "new_string": "2"};
        delete_file {"path": "link"};
        execute {"command": "echo one"};
        execute {"command": "rm -rf /"};
        execute {"command": "cat /.env"};
        execute {"command": "echo", "directory": "directory"};
        run_in_background {"command": "cat"};
        list_shells {};
        read_output {"shell_id": "bg_1"};
        write_input {"shell_id": "bg_1", "input": "one\n"};
        write_input {"shell_id": "bg_1", "input": "one\n"};
        kill_shell {"shell_id": "bg_1"};
        read_output {"shell_id": "bg_7"};
    };
    for (law, apply) in LAWS {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("real")).unwrap();
        std::fs::write(at("real/file"), "one\ntwo\n").unwrap();
        std::fs::write(at(".env"), "two\n").unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, at(name)).unwrap();
        link("real/file", "link");
        link("real", "directory");
        link(".env", "secrets.link");
        let local = backend_local::LocalBackend::builder(directory.path()).enable_execute(true);
        let person = RecordingApprover::new(true);
        let builder = Toolset::builder(Arc::new(local.open().unwrap()))
            .options(options(EditFormat::StrReplace))
            .approver(person.clone());
        let chat = apply(builder).build().unwrap().conversation("c");
        for call in calls {
            agree(law, &chat, &person, call.clone()).await;
        }
        chat.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_preview_leaves_no_trace_in_the_conversation() {
    let mut options = options(EditFormat::StrReplace);
    options.require_read_before_edit = true;
    let toolset = Toolset::builder(Arc::new(store().await)).options(options);
    let toolset = toolset.approver(ApproveAll).build().unwrap();
    let chat = toolset.conversation("c");
    let change = json!({"path": "/src/a.rs", "old_string": "two", "new_string": "2"});
    chat.preview("read_file", json!({"path": "/src/a.rs"}))
        .await;
    let reply = chat.call("edit_file", change.clone()).await;
    assert!(reply.text.contains("has not been read"), "{}", reply.text);
    chat.call("read_file", json!({"path": "/src/a.rs"})).await;
    let preview = chat.preview("edit_file", change.clone()).await;
    assert_eq!(preview.questions().len(), 1, "what was read counts");
    assert!(chat.call("edit_file", change).await.is_success());
}

#[tokio::test]
async fn what_is_remembered_counts() {
    let builder = || {
        let backend = Arc::new(StateBackend::new());
        Toolset::builder(backend).ruleset(Preset::Default.ruleset())
    };
    let (first, second) = (
        json!({"path": "/a", "content": "1"}),
        json!({"path": "/b", "content": "2"}),
    );
    let once = Interactive::new(async |_: Question| Ok(Answer::yes().remember(Remember::Session)));
    let chat = builder().approver(once).build().unwrap().conversation("c");
    assert!(
        !chat
            .preview("write_file", second.clone())
            .await
            .is_allowed()
    );
    assert!(chat.call("write_file", first.clone()).await.is_success());
    assert!(
        chat.preview("write_file", second.clone())
            .await
            .is_allowed()
    );

    let never = Interactive::new(async |_: Question| Ok(Answer::no().remember(Remember::Session)));
    let service = ApprovalService::new(Arc::new(never), Grants::new()).remember_denials(true);
    let chat = builder()
        .approval_service(service)
        .build()
        .unwrap()
        .conversation("c");
    let reply = chat.call("write_file", first.clone()).await;
    assert_eq!(reply.failure, Some(FailureClass::Refused));
    let preview = chat.preview("write_file", first).await;
    let CallPreview::Denied(told) = preview else {
        panic!("{preview:?}");
    };
    assert_eq!(told, reply);
}

#[tokio::test]
async fn with_nobody_to_ask_it_says_what_would_have_to_be_asked() {
    let toolset = Toolset::builder(Arc::new(StateBackend::new()));
    let toolset = toolset.ruleset(Preset::Default.ruleset()).build().unwrap();
    let chat = toolset.conversation("c");
    let write = json!({"path": "/a", "content": "1"});
    let preview = chat.preview("write_file", write.clone()).await;
    assert_eq!(preview.questions().len(), 1);
    let reply = chat.call("write_file", write).await;
    assert_eq!(reply.failure, Some(FailureClass::Refused));
}

#[tokio::test]
async fn a_tool_of_the_host_does_not_run() {
    let backend = approver::store().await;
    let before = snapshot(&backend).await;
    for (preset, allowed) in [(Preset::Strict, false), (Preset::Permissive, true)] {
        let toolset = Toolset::builder(Arc::new(backend.clone()))
            .ruleset(preset.ruleset())
            .approver(Strict)
            .tool(Swap);
        let chat = toolset.build().unwrap().conversation("c");
        let swap = json!({"one": "/a", "two": "/b"});
        let preview = chat.preview("swap", swap).await;
        assert_eq!(preview.is_allowed(), allowed, "{preview:?}");
        let asked = preview.questions().first();
        let asked = asked.map(|question| question.description.as_str());
        assert_eq!(asked, (!allowed).then_some("swap /a and /b"));
        assert!(snapshot(&backend).await == before);
    }
}

#[tokio::test]
async fn a_preview_does_not_wait_for_a_call_that_waits() {
    let (asked, answer) = (
        Arc::new(tokio::sync::Notify::new()),
        Arc::new(tokio::sync::Notify::new()),
    );
    let (tell, wait) = (Arc::clone(&asked), Arc::clone(&answer));
    let person = Interactive::new(move |_| {
        let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
        async move {
            tell.notify_one();
            wait.notified().await;
            Ok(Answer::yes())
        }
    });
    let toolset = Toolset::builder(Arc::new(StateBackend::new()));
    let toolset = toolset.ruleset(Preset::Default.ruleset()).approver(person);
    let chat = toolset.build().unwrap().conversation("c");
    let write = json!({"path": "/a", "content": "1"});
    let call = chat.call("write_file", write.clone());
    let preview = async {
        asked.notified().await;
        let preview = chat.preview("write_file", write.clone()).await;
        answer.notify_one();
        preview
    };
    let (reply, preview) = futures::join!(call, preview);
    assert!(reply.is_success(), "{}", reply.text);
    assert_eq!(preview.questions().len(), 1);
}

#[tokio::test]
async fn a_decision_made_later_is_for_what_was_shown() {
    let backend = store().await;
    let deferred = Deferred::new();
    let toolset = Toolset::builder(Arc::new(backend.clone()))
        .ruleset(Preset::Default.ruleset())
        .approver(deferred.clone())
        .build()
        .unwrap();
    let chat = toolset.conversation("c");
    let change = json!({"path": "/src/a.rs", "old_string": "two", "new_string": "2"});
    let preview = chat.preview("edit_file", change.clone()).await;
    let stored = serde_json::to_string(&preview.questions()[0].fingerprint()).unwrap();
    let reply = chat.call("edit_file", change.clone()).await;
    assert!(reply.text.contains("not decided yet"), "{}", reply.text);

    // In another process, with the same conversation id.
    let decided = Deferred::new();
    decided.decide(serde_json::from_str(&stored).unwrap(), Answer::yes());
    let resumed = chat.approver(decided.clone());
    backend
        .write_file("/src/a.rs", "zero\ntwo\n")
        .await
        .unwrap();
    let reply = resumed.call("edit_file", change.clone()).await;
    assert_eq!(reply.failure, Some(FailureClass::Refused), "{}", reply.text);
    backend.write_file("/src/a.rs", "one\ntwo\n").await.unwrap();
    // The decision cannot be used for another conversation, or twice.
    let other = toolset.conversation("d").approver(decided.clone());
    let reply = other.call("edit_file", change.clone()).await;
    assert_eq!(reply.failure, Some(FailureClass::Refused), "{}", reply.text);
    let reply = resumed.call("edit_file", change.clone()).await;
    assert!(reply.is_success(), "{}", reply.text);
    backend.write_file("/src/a.rs", "one\ntwo\n").await.unwrap();
    let anew = chat.approver(decided);
    let reply = anew.call("edit_file", change).await;
    assert_eq!(reply.failure, Some(FailureClass::Refused), "{}", reply.text);
}

#[tokio::test]
async fn a_yes_to_a_write_is_for_the_new_content_alone() {
    let backend = store().await;
    let toolset = Toolset::builder(Arc::new(backend.clone()))
        .ruleset(Preset::Default.ruleset())
        .build()
        .unwrap();
    let chat = toolset.conversation("c");
    let write = json!({"path": "/src/a.rs", "content": "new\n"});
    let preview = chat.preview("write_file", write.clone()).await;
    let decided = Deferred::new();
    decided.decide(preview.questions()[0].fingerprint(), Answer::yes());
    let resumed = chat.approver(decided);
    backend.write_file("/src/a.rs", "changed\n").await.unwrap();
    let other = json!({"path": "/src/a.rs", "content": "other\n"});
    let reply = resumed.call("write_file", other).await;
    assert_eq!(reply.failure, Some(FailureClass::Refused), "{}", reply.text);
    let reply = resumed.call("write_file", write).await;
    assert!(reply.is_success(), "{}", reply.text);
    assert_eq!(backend.read_to_string("/src/a.rs").await.unwrap(), "new\n");
}
