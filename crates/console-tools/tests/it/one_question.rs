//! Each action asks one question, for every tool: the question shows what will happen,
//! a yes makes exactly that happen, and a no changes nothing.

use std::sync::Arc;

use backend_core::BackendExt as _;
use backend_state::StateBackend;
use console_tools::{Block, Chat, EditFormat, FailureClass, Options, Toolset, ToolsetBuilder};
use permissions::tool::{Tool, ToolSetting, ToolSettings};
use permissions::{Action, Op, Preset, Question, Ruleset};
use serde_json::{Value, json};

use crate::support::approver::{RecordingApprover, snapshot};
use crate::support::cases::{Case, by_line, changes, looks, store};

/// The reason for questions: the rules, or the settings of the tools.
#[derive(Debug, Clone, Copy)]
enum Law {
    Rules,
    Settings,
}

impl Law {
    fn apply(self, builder: ToolsetBuilder) -> ToolsetBuilder {
        match self {
            Self::Rules => builder.ruleset(Preset::Strict.ruleset()),
            Self::Settings => {
                let ask = ToolSetting::action(Action::Ask);
                let settings = Tool::ALL.iter();
                let settings =
                    settings.fold(ToolSettings::default(), |all, tool| all.with(*tool, ask));
                builder.tool_settings(settings)
            }
        }
    }
}

fn options(format: EditFormat) -> Options {
    let mut options = Options::default();
    options.edit_format = format;
    options.include_file_operations = true;
    options.image_support = true;
    options.document_support = true;
    options
}

fn chat(law: Law, backend: &StateBackend, format: EditFormat, person: &RecordingApprover) -> Chat {
    let builder = Toolset::builder(Arc::new(backend.clone())).options(options(format));
    let builder = law.apply(builder).approver(person.clone());
    builder.build().unwrap().conversation("c")
}

fn check_question(what: &str, asked: &[Question], case: &Case) {
    let [question] = asked else {
        panic!("{what}: {} questions: {asked:#?}", asked.len());
    };
    assert_eq!(question.description, case.description, "{what}");
    let shown = question.to_string();
    assert!(
        shown.contains(case.shown),
        "{what} does not show it: {shown}"
    );
    assert_eq!(question.tool.as_deref(), Some(case.tool), "{what}");
    assert_eq!(question.args, case.arguments, "{what}");
    let changes = case.after.is_empty();
    let reads = |op: Op| matches!(op, Op::Read | Op::Ls | Op::Glob | Op::Grep);
    let only_reads = question.asked.iter().all(|asked| reads(asked.op));
    assert_eq!(only_reads, changes, "{what}: {:?}", question.asked);
}

async fn run(format: EditFormat, cases: fn() -> Vec<Case>) {
    for law in [Law::Rules, Law::Settings] {
        for yes in [true, false] {
            for case in cases() {
                let what = format!("{} {} {law:?} {yes}", case.tool, case.arguments);
                let backend = store().await;
                let mut expected = snapshot(&backend).await;
                let person = RecordingApprover::new(yes);
                let chat = chat(law, &backend, format, &person);
                let reply = chat.call(case.tool, case.arguments.clone()).await;
                check_question(&what, &person.taken(), &case);
                if yes {
                    assert!(reply.is_success(), "{what}: {}", reply.text);
                    for (path, content) in &case.after {
                        expected.retain(|(known, _)| known != path);
                        let content = content.map(|content| content.as_bytes().to_vec());
                        expected.extend(content.map(|content| ((*path).to_owned(), content)));
                    }
                    expected.sort_unstable();
                } else {
                    assert_eq!(
                        reply.failure,
                        Some(FailureClass::Refused),
                        "{what}: {}",
                        reply.text
                    );
                    assert!(reply.text.contains("not today"), "{what}: {}", reply.text);
                    assert!(
                        reply.blocks.is_empty() && reply.structured.is_none(),
                        "{what}"
                    );
                }
                let mut now = snapshot(&backend).await;
                now.sort_unstable();
                assert!(now == expected, "{what}: something else happened");
            }
        }
    }
}

#[tokio::test]
async fn looking_asks_once() {
    run(EditFormat::StrReplace, looks).await;
}

#[tokio::test]
async fn changing_asks_once_and_shows_the_change() {
    run(EditFormat::StrReplace, changes).await;
}

#[tokio::test]
async fn lines_are_edited_after_one_question() {
    run(EditFormat::Hashline, by_line).await;
}

#[tokio::test]
async fn what_is_allowed_asks_nobody() {
    for (format, cases) in [
        (EditFormat::StrReplace, looks as fn() -> Vec<Case>),
        (EditFormat::StrReplace, changes),
        (EditFormat::Hashline, by_line),
    ] {
        for case in cases() {
            let backend = store().await;
            let person = RecordingApprover::new(false);
            let toolset = Toolset::builder(Arc::new(backend))
                .options(options(format))
                .ruleset(Preset::Permissive.ruleset())
                .approver(person.clone());
            let chat = toolset.build().unwrap().conversation("c");
            let reply = chat.call(case.tool, case.arguments).await;
            assert!(reply.is_success(), "{}: {}", case.tool, reply.text);
            assert!(person.taken().is_empty(), "{}", case.tool);
        }
    }
}

#[tokio::test]
async fn a_yes_shows_pictures_and_documents() {
    let person = RecordingApprover::new(true);
    let backend = store().await;
    let chat = chat(Law::Rules, &backend, EditFormat::StrReplace, &person);
    let reply = chat.call("read_file", json!({"path": "/p.png"})).await;
    assert!(matches!(reply.blocks[..], [Block::Image { .. }]));
    let reply = chat.call("read_file", json!({"path": "/d.pdf"})).await;
    assert!(matches!(reply.blocks[..], [Block::Document { .. }]));
    assert_eq!(person.taken().len(), 2);
}

#[tokio::test]
async fn an_edit_that_fails_asks_only_to_read() {
    let arguments = json!({"path": "/src/a.rs", "old_string": "twoo", "new_string": "2"});
    let person = RecordingApprover::new(true);
    let backend = store().await;
    let strict = chat(Law::Rules, &backend, EditFormat::StrReplace, &person);
    let reply = strict.call("edit_file", arguments.clone()).await;
    assert_eq!(reply.failure, Some(FailureClass::Fixable));
    // After a yes the model gets the helpful message.
    assert!(reply.text.contains("Nearest lines") && reply.text.contains("two"));
    let asked = person.taken();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].description, "Read from /src/a.rs");
    assert!(asked[0].asked.iter().all(|asked| asked.op == Op::Read));
    // After a no it learns nothing.
    person.say(false);
    let reply = strict.call("edit_file", arguments.clone()).await;
    assert_eq!(reply.failure, Some(FailureClass::Refused));
    assert!(!reply.text.contains("two"), "{}", reply.text);
    assert_eq!(person.taken().len(), 1);

    // Where reading is allowed, a failing call asks nothing.
    let toolset = Toolset::builder(Arc::new(backend)).options(options(EditFormat::StrReplace));
    let toolset = toolset
        .ruleset(Preset::Default.ruleset())
        .approver(person.clone());
    let free = toolset.build().unwrap().conversation("c");
    for (tool, arguments) in [
        ("edit_file", arguments),
        (
            "edit_file",
            json!({"path": "/src/a.rs", "old_string": "two", "new_string": "2", "dry_run": true}),
        ),
        (
            "edit_file",
            json!({"path": "/nowhere", "old_string": "two", "new_string": "2"}),
        ),
    ] {
        free.call(tool, arguments).await;
        assert!(person.taken().is_empty(), "{tool}");
    }
}

#[tokio::test]
async fn a_failure_asks_no_further_question() {
    for law in [Law::Rules, Law::Settings] {
        let person = RecordingApprover::new(true);
        let backend = store().await;
        let chat = chat(law, &backend, EditFormat::StrReplace, &person);
        // The destination exists.
        let onto = json!({"source": "/src/a.rs", "destination": "/src/b.rs"});
        for tool in ["move_file", "copy_file"] {
            let reply = chat.call(tool, onto.clone()).await;
            assert_eq!(reply.failure, Some(FailureClass::Fixable), "{}", reply.text);
            assert_eq!(person.taken().len(), 1, "{tool} {law:?}");
        }
        // The file has changed since it was read.
        chat.call("read_file", json!({"path": "/src/a.rs"})).await;
        backend.write_file("/src/a.rs", "three\n").await.unwrap();
        person.taken();
        for (tool, arguments) in calls! {
            write_file {"path": "/src/a.rs", "content": "x"};
            edit_file {"path": "/src/a.rs", "old_string": "three", "new_string": "3"};
        } {
            let reply = chat.call(tool, arguments).await;
            assert_eq!(reply.failure, Some(FailureClass::Fixable), "{}", reply.text);
            assert!(reply.text.contains("changed since"), "{}", reply.text);
            // At most one question, to read, and only for an edit, which reads anyway.
            let most = usize::from(tool == "edit_file");
            assert!(person.taken().len() <= most, "{tool} {law:?}");
        }
        // The file was deleted since it was read, and is written again.
        backend.delete_file("/src/a.rs").await.unwrap();
        let anew = json!({"path": "/src/a.rs", "content": "anew\n"});
        let reply = chat.call("write_file", anew).await;
        assert!(reply.is_success(), "{}", reply.text);
        assert_eq!(person.taken().len(), 1, "{law:?}");
    }
}

#[tokio::test]
async fn what_was_shown_is_what_happens_or_nothing_does() {
    use permissions::approval::Interactive;
    let edit = json!({"path": "/src/a.rs", "old_string": "two", "new_string": "2"});
    let line =
        json!({"path": "/src/a.rs", "start_line": 2, "start_hash": "b8", "new_content": "2"});
    let write = json!({"path": "/src/a.rs", "content": "all new\n"});
    for (format, tool, arguments) in [
        (EditFormat::StrReplace, "edit_file", edit),
        (EditFormat::Hashline, "hashline_edit", line),
        (EditFormat::StrReplace, "write_file", write),
    ] {
        let backend = store().await;
        let meanwhile = backend.clone();
        let person = Interactive::new(move |_| {
            let backend = meanwhile.clone();
            async move {
                let changed = backend.write_file("/src/a.rs", "zero\none\ntwo\n").await;
                changed.unwrap();
                Ok(permissions::Answer::yes())
            }
        });
        let toolset = Toolset::builder(Arc::new(backend.clone())).options(options(format));
        let toolset = toolset.ruleset(Preset::Strict.ruleset()).approver(person);
        let chat = toolset.build().unwrap().conversation("c");
        let reply = chat.call(tool, arguments).await;
        assert_eq!(
            reply.failure,
            Some(FailureClass::Fixable),
            "{tool}: {}",
            reply.text
        );
        let now = backend.read_to_string("/src/a.rs").await.unwrap();
        assert_eq!(now, "zero\none\ntwo\n", "{tool}");
    }
}

/// Everything needs approval, and one file in `/src` is denied.
fn partly_denied() -> Ruleset {
    let mut rules = json!({"default": "ask"});
    for op in ["read", "ls", "glob", "grep"] {
        let deny = json!({"pattern": "/src/b.rs", "action": "deny"});
        rules[op] = json!({"default": "ask", "rules": [deny]});
    }
    Ruleset::from_json(&rules.to_string()).unwrap()
}

#[tokio::test]
async fn a_search_asks_once_and_leaves_out_what_is_denied() {
    let backend = store().await;
    let person = RecordingApprover::new(true);
    let toolset = Toolset::builder(Arc::new(backend))
        .ruleset(partly_denied())
        .approver(person.clone());
    let chat = toolset.build().unwrap().conversation("c");
    for (tool, arguments, found) in calls! {
        ls {"path": "/src"} => "a.rs";
        glob {"pattern": "**/*.rs", "path": "/"} => "src/a.rs";
        grep {"pattern": "two", "path": "/"} => "/src/a.rs";
        grep {"pattern": "two", "path": "/", "output_mode": "count"} => "101 matches";
    } {
        let reply = chat.call(tool, arguments).await;
        assert!(reply.text.contains(found), "{tool}: {}", reply.text);
        assert!(!reply.text.contains("b.rs"), "{tool}: {}", reply.text);
        assert_eq!(person.taken().len(), 1, "{tool}");
    }
}

/// The path that needs approval is the target of a link at an allowed path.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn through_a_link_there_is_one_question_too() {
    let rules = |op: &str| {
        let ask = json!({"pattern": "/b", "action": "ask"});
        (op.to_owned(), json!({"default": "allow", "rules": [ask]}))
    };
    let mut ruleset: serde_json::Map<_, _> = ["read", "edit", "write", "grep", "ls"]
        .map(rules)
        .into_iter()
        .collect();
    ruleset.insert("default".to_owned(), json!("allow"));
    let ruleset = Ruleset::from_json(&Value::from(ruleset).to_string()).unwrap();
    for (format, tool, arguments, after) in [
        (
            EditFormat::StrReplace,
            "read_file",
            json!({"path": "a"}),
            "one\ntwo\n",
        ),
        (
            EditFormat::StrReplace,
            "grep",
            json!({"pattern": "two", "path": "a"}),
            "one\ntwo\n",
        ),
        (
            EditFormat::StrReplace,
            "write_file",
            json!({"path": "a", "content": "new\n"}),
            "new\n",
        ),
        (
            EditFormat::StrReplace,
            "edit_file",
            json!({"path": "a", "old_string": "two", "new_string": "2"}),
            "one\n2\n",
        ),
        (
            EditFormat::StrReplace,
            "edit_file",
            json!({"path": "a", "old_string": "twoo", "new_string": "2"}),
            "one\ntwo\n",
        ),
        (
            EditFormat::Hashline,
            "hashline_edit",
            json!({"path": "a", "start_line": 2, "start_hash": "b8", "new_content": "2"}),
            "one\n2\n",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("b");
        std::fs::write(&file, "one\ntwo\n").unwrap();
        std::os::unix::fs::symlink("b", directory.path().join("a")).unwrap();
        let local = backend_local::LocalBackend::builder(directory.path());
        let person = RecordingApprover::new(true);
        let toolset = Toolset::builder(Arc::new(local.open().unwrap()))
            .options(options(format))
            .ruleset(ruleset.clone())
            .approver(person.clone());
        let chat = toolset.build().unwrap().conversation("c");
        let reply = chat.call(tool, arguments).await;
        let asked = person.taken();
        assert_eq!(asked.len(), 1, "{tool}: {} {asked:?}", reply.text);
        assert!(
            !asked[0].description.contains("/b"),
            "a refusal would tell the model where the link leads"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), after, "{tool}");
    }
}

#[tokio::test]
async fn a_host_can_insist_that_questions_show_everything() {
    let long: String = (0..5_000).map(|n| format!("line {n}\n")).collect();
    let write = json!({"path": "/a", "content": long}).to_string();
    for whole in [false, true] {
        let (backend, person) = (StateBackend::new(), RecordingApprover::new(true));
        let mut options = options(EditFormat::StrReplace);
        options.require_whole_questions = whole;
        let builder = Toolset::builder(Arc::new(backend.clone())).options(options);
        let builder = Law::Rules.apply(builder).approver(person.clone());
        let chat = builder.build().unwrap().conversation("c");
        let reply = chat.call("write_file", &write).await;
        assert_eq!(reply.failure.is_some(), whole, "{}", reply.text);
        assert_eq!(person.taken().len(), usize::from(!whole));
        assert_eq!(backend.exists("/a").await.unwrap(), !whole);
        let small = json!({"path": "/b", "content": "b"}).to_string();
        assert!(chat.call("write_file", &small).await.failure.is_none());
    }
}
