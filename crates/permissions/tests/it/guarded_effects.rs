//! Tests of a guard with links, questions, whole directories, searches and shells.

use std::fs;

use backend_core::ErrorKind::{
    self, AlreadyExists, Conflict, IsADirectory, IsALink, NoMatch, PermissionDenied, TooLarge,
};
use backend_core::ops::{
    Command, GrepQuery, GrepResult, Links, ReadOptions, ResolveOptions, ShellId, StopMode,
    WriteMode, WriteOptions,
};
use backend_core::{Backend, BackendExt as _, Sandbox as _};
use backend_state::StateBackend;
use backend_testkit::fails;
use bytes::Bytes;
use permissions::guarded::TREE_ENTRIES;
use permissions::tool::{Tool, ToolSetting, ToolSettings};
use permissions::{Action, Answer, Guarded, Op, Policy, Preset, Refusal, Target};

use crate::support::scene::{Person, guard, link, local, path, policy};

/// Denies all access to `/deny`, and asks about `/ask`.
const RULES: &str = r#"{ "default": "allow",
    "read":   {"rules": [{"pattern": "/deny/**", "action": "deny"},
                         {"pattern": "/ask/**", "action": "ask"}]},
    "write":  {"rules": [{"pattern": "/deny/**", "action": "deny"},
                         {"pattern": "/ask/**", "action": "ask"}]},
    "edit":   {"rules": [{"pattern": "/deny/**", "action": "deny"},
                         {"pattern": "/ask/**", "action": "ask"}]},
    "ls":     {"rules": [{"pattern": "/deny/**", "action": "deny"}]},
    "execute": {"default": "allow", "opaque": "ask"} }"#;

fn found(result: &GrepResult) -> Vec<String> {
    let files = result.files.iter();
    files.map(|file| file.path.to_string()).collect()
}

#[tokio::test]
async fn a_link_is_judged_where_it_leads_and_nothing_is_told_about_it() {
    let (directory, backend) = local();
    for (path, text) in [("/deny/secret.txt", "secret"), ("/ok/file", "fine")] {
        backend.write_file(path, text).await.unwrap();
    }
    let root = directory.path();
    link(root, "out", "deny/secret.txt");
    link(root, "dir", "deny");
    link(root, "fine", "ok");
    let guarded = guard(backend, policy(RULES), &Person::yes());
    for name in ["/out", "/dir/secret.txt"] {
        let (at, options) = (path(name), ResolveOptions::default());
        for result in [
            guarded.read_bytes(name).await.map(drop),
            guarded.write_file(name, "x").await.map(drop),
            guarded.replace_text(name, "secret", "x").await.map(drop),
            guarded.metadata(name).await.map(drop),
            guarded.resolve(&at, options).await.map(drop),
            guarded
                .grep(GrepQuery::new(".", path(name)))
                .await
                .map(drop),
        ] {
            let error = fails(PermissionDenied, result);
            assert_eq!(error.path(), Some(&at), "{error}");
            assert!(Refusal::of(&error).is_some(), "{error}");
            assert!(!format!("{error:?}").contains("/deny"), "{error:?}");
        }
    }
    for result in [
        guarded.list_dir("/dir").await.map(drop),
        guarded.delete_file("/dir/secret.txt").await,
        guarded.move_to("/dir/secret.txt", "/x").await,
        guarded.copy_to("/dir/secret.txt", "/x").await,
        guarded.copy_to("/ok/file", "/dir/new").await,
    ] {
        let error = fails(PermissionDenied, result);
        assert!(!format!("{error:?}").contains("/deny"), "{error:?}");
    }
    assert_eq!(guarded.read_to_string("/fine/file").await.unwrap(), "fine");
    let refuse = ReadOptions::default().links(Links::Refuse);
    fails(IsALink, guarded.read(&path("/fine/file"), refuse).await);
    // The link itself is not secret.
    guarded.delete_file("/out").await.unwrap();
    let secret = fs::read_to_string(root.join("deny/secret.txt"));
    assert_eq!(secret.unwrap(), "secret");
}

#[tokio::test]
async fn one_question_tells_where_a_link_leads() {
    let (directory, backend) = local();
    backend.write_file("/ask/file", "old").await.unwrap();
    link(directory.path(), "link", "ask/file");
    let person = Person::yes();
    let guarded = guard(backend.clone(), policy(r#"{"default":"ask"}"#), &person);
    guarded.write_file("/link", "new").await.unwrap();
    let questions = person.taken();
    assert_eq!(questions.len(), 1);
    let asked = questions[0].asked.iter();
    let targets: Vec<_> = asked.map(|asked| asked.target.clone()).collect();
    let expected = ["/link", "/ask/file"].map(|text| Target::Path(path(text)));
    assert_eq!(targets, expected);
    assert!(!questions[0].description.contains("/ask/file"));
    assert_eq!(backend.read_to_string("/ask/file").await.unwrap(), "new");
    // Only the target is asked about.
    let guarded = guard(backend, policy(RULES), &person);
    guarded.read_to_string("/link").await.unwrap();
    assert_eq!(person.taken().len(), 1);
}

#[tokio::test]
async fn a_link_swapped_while_somebody_thinks_changes_nothing() {
    let (directory, backend) = local();
    backend.write_file("/ask/file", "old").await.unwrap();
    backend.write_file("/deny/file", "secret").await.unwrap();
    let root = directory.path().to_owned();
    link(&root, "link", "ask/file");
    let swap = root.clone();
    let person = Person::who(move |_| {
        let _ = fs::remove_file(swap.join("link"));
        link(&swap, "link", "deny/file");
        Answer::yes()
    });
    let guarded = guard(backend, policy(RULES), &person);
    guarded.write_file("/link", "new").await.unwrap();
    for (name, text) in [("ask/file", "new"), ("deny/file", "secret")] {
        assert_eq!(fs::read_to_string(root.join(name)).unwrap(), text);
    }
}

#[tokio::test]
async fn what_changed_since_the_question_is_not_overwritten() {
    let backend = StateBackend::new();
    backend.write_file("/ask/file", "one\n").await.unwrap();
    let other = backend.clone();
    let person = Person::who(move |question| {
        let shown = format!("{:?}", question.effect);
        assert!(shown.contains("mine"), "{shown}");
        for path in ["/ask/file", "/ask/new"] {
            let write = other.write_file(path, "theirs\n");
            futures::executor::block_on(write).unwrap();
        }
        Answer::yes()
    });
    let guarded = guard(backend.clone(), policy(RULES), &person);
    for path in ["/ask/new", "/ask/file"] {
        if path == "/ask/file" {
            backend.write_file(path, "one\n").await.unwrap();
        }
        let error = fails(Conflict, guarded.write_file(path, "mine\n").await);
        let told = "changed in the meantime";
        assert!(error.to_string().contains(told), "{error}");
        assert_eq!(backend.read_to_string(path).await.unwrap(), "theirs\n");
    }
    backend.write_file("/ask/file", "one\n").await.unwrap();
    let edited = guarded.replace_text("/ask/file", "one", "mine").await;
    fails(Conflict, edited);
    let now = backend.read_to_string("/ask/file").await.unwrap();
    assert_eq!(now, "theirs\n");
}

#[tokio::test]
async fn nobody_is_asked_about_what_cannot_be_done() {
    let backend = StateBackend::new();
    backend.write_file("/ask/file", "one\n").await.unwrap();
    let person = Person::yes();
    let guarded = guard(backend.clone(), policy(RULES), &person);
    let new = WriteOptions::default().mode(WriteMode::CreateNew);
    let error = guarded.write(&path("/ask/file"), "x".into(), new).await;
    fails(AlreadyExists, error);
    fails(IsADirectory, guarded.write_file("/ask", "x").await);
    assert!(person.taken().is_empty());
    // The reason why an edit fails reveals the contents of the file, so it needs
    // approval.
    let no = guard(backend, policy(RULES), &Person::no());
    let edited = no.replace_text("/ask/file", "onn", "x").await;
    let error = fails(PermissionDenied, edited);
    assert!(!error.to_string().contains("one"), "{error}");
    fails(NoMatch, guarded.replace_text("/ask/file", "onn", "x").await);
    assert_eq!(person.taken().len(), 1);
}

#[tokio::test]
async fn a_search_keeps_what_rules_deny_or_ask_about() {
    let backend = StateBackend::new();
    for path in ["/deny/a", "/ask/b", "/ask/deeper/b", "/ok/c"] {
        backend.write_file(path, "needle\n").await.unwrap();
    }
    let person = Person::yes();
    let guarded = guard(backend.clone(), policy(RULES), &person);
    let all = guarded.search_text("needle").await.unwrap();
    assert_eq!(found(&all), ["/ok/c"]);
    assert!(person.taken().is_empty());
    for (place, expected) in [
        ("/ask/b", &["/ask/b"][..]),
        ("/ask", &["/ask/b", "/ask/deeper/b"]),
    ] {
        let result = guarded.grep(GrepQuery::new("needle", path(place))).await;
        assert_eq!(found(&result.unwrap()), expected, "{place}");
        assert_eq!(person.taken().len(), 1);
    }
    let query = GrepQuery::new("needle", path("/deny/a"));
    fails(PermissionDenied, guarded.grep(query).await);
    let no = guard(backend, policy(RULES), &Person::no());
    let error = no.grep(GrepQuery::new("needle", path("/ask"))).await;
    fails(PermissionDenied, error);
}

#[tokio::test]
async fn a_directory_is_as_protected_as_what_it_holds() {
    let rules = r#"{ "default": "allow",
        "read":   {"rules": [{"pattern": "**/.env", "action": "deny"}]},
        "write":  {"rules": [{"pattern": "**/*.lock", "action": "deny"},
                             {"pattern": "**/*.cfg", "action": "ask"}]} }"#;
    let backend = StateBackend::new();
    let paths = "/secret/deep/.env /locked/x.lock /asks/one.cfg /asks/two.cfg /free/a/b";
    for path in paths.split(' ') {
        backend.write_file(path, "x").await.unwrap();
    }
    let person = Person::yes();
    let guarded = guard(backend.clone(), policy(rules), &person);
    let options = backend_core::ops::CopyOptions::default().recursive(true);
    let (to, env, lock) = (path("/x"), "/secret/deep/.env", "/locked/x.lock");
    let copy = async |from| guarded.copy(&path(from), &to, options).await;
    for (error, named) in [
        (guarded.move_to("/secret", "/x").await, env),
        (copy("/secret").await, env),
        (copy("/locked").await, lock),
        (guarded.delete_tree("/locked").await, lock),
    ] {
        let error = fails(PermissionDenied, error);
        assert!(error.to_string().contains(named), "{error}");
    }
    assert!(person.taken().is_empty());
    assert!(!backend.exists("/x/x.lock").await.unwrap());
    guarded.delete_tree("/asks").await.unwrap();
    let questions = person.taken();
    assert_eq!(questions.len(), 1, "one question for all of it");
    assert_eq!(questions[0].asked.len(), 2);
    guarded.delete_tree("/free").await.unwrap();
    assert!(person.taken().is_empty());
}

#[tokio::test]
async fn a_directory_that_is_asked_about_is_one_question() {
    let backend = StateBackend::new();
    for number in 0..50 {
        let path = format!("/d/{}/{number}", number % 5);
        backend.write_file(&path, "x").await.unwrap();
    }
    let person = Person::yes();
    let guarded = guard(backend, policy(r#"{"default":"ask"}"#), &person);
    guarded.delete_tree("/d").await.unwrap();
    let questions = person.taken();
    assert_eq!(questions.len(), 1);
    assert_eq!(questions[0].asked.len(), 1, "what it holds goes with it");
    assert!(questions[0].reasons[0].starts_with("it includes 55 entries"));
}

#[tokio::test]
async fn too_large_a_directory_is_taken_apart() {
    let backend = StateBackend::new();
    for number in 0..=TREE_ENTRIES {
        let path = format!("/d/{number}");
        backend.write_file(&path, "").await.unwrap();
    }
    let rules = r#"{"default":"allow","write":{"rules":[{"pattern":"**/.env","action":"deny"}]}}"#;
    let guarded = guard(backend.clone(), policy(rules), &Person::yes());
    let error = fails(TooLarge, guarded.delete_tree("/d").await);
    assert!(error.to_string().contains("do it in parts"), "{error}");
    assert!(backend.exists("/d/0").await.unwrap());
}

async fn type_into(
    guarded: &Guarded<backend_local::LocalBackend>,
    id: &ShellId,
    text: &str,
) -> Result<(), ErrorKind> {
    let input = Bytes::copy_from_slice(text.as_bytes());
    let typed = guarded.shell_write(id, Some(input)).await;
    typed.map_err(|error| error.kind())
}

#[tokio::test]
async fn what_is_typed_into_a_shell_is_judged() {
    let (_directory, backend) = local();
    let person = Person::no();
    let guarded = guard(backend.clone(), policy(RULES), &person);
    let shell = guarded.shell_start(Command::new("sh")).await.unwrap().id;
    let cat = guarded.shell_start(Command::new("cat")).await.unwrap().id;
    assert_eq!(type_into(&guarded, &shell, "true\n").await, Ok(()));
    assert_eq!(type_into(&guarded, &cat, "rm -rf").await, Ok(()), "data");
    assert!(person.taken().is_empty());
    let refused = Err(ErrorKind::PermissionDenied);
    assert_eq!(type_into(&guarded, &shell, "half a li").await, refused);
    assert_eq!(person.taken().len(), 1, "no complete line");
    assert_eq!(type_into(&guarded, &shell, "half \\\n").await, refused);
    assert_eq!(person.taken().len(), 1);
    // Started without the guard, so its earlier input is not known.
    let other = backend.shell_start(Command::new("sh")).await.unwrap().id;
    assert_eq!(type_into(&guarded, &other, "true\n").await, refused);
    assert_eq!(person.taken().len(), 1);
    let typed = type_into(&guarded, &ShellId::new("none"), "x").await;
    assert_eq!(typed, Err(ErrorKind::NotFound));
    let python = Command::new("exec python3 -i || true");
    let python = backend.shell_start(python).await.unwrap().id;
    assert_eq!(type_into(&guarded, &python, "1\n").await, refused);
    assert_eq!(person.taken().len(), 1, "code of another kind");
    guarded.shell_write(&shell, None).await.unwrap();
    assert!(person.taken().is_empty());
    let tools = ToolSettings::default().with(Tool::WriteInput, ToolSetting::action(Action::Ask));
    let asking = Policy::builder().tools(tools).build();
    let asking = guard(backend.clone(), asking, &person).with_tool("write_input");
    assert_eq!(type_into(&asking, &cat, "x\n").await, refused);
    assert_eq!(person.taken().len(), 1, "the tool asks, once");
    let denied = guard(backend.clone(), policy(r#"{"default":"deny"}"#), &person);
    assert_eq!(type_into(&denied, &cat, "x").await, refused);
    fails(PermissionDenied, denied.shell_list().await);
    fails(PermissionDenied, denied.shell_kill(&cat).await);
    assert!(person.taken().is_empty());
    backend.stop(StopMode::Keep).await.unwrap();
}

#[tokio::test]
async fn what_may_be_a_shell_is_typed_into_as_into_one() {
    let (_directory, backend) = local();
    backend.write_file("/.env", "SECRET").await.unwrap();
    let person = Person::no();
    let rules = Policy::builder().ruleset(&Preset::Permissive.ruleset(), &path("/"));
    let guarded = guard(backend.clone(), rules.build(), &person);
    let refused = Err(ErrorKind::PermissionDenied);
    // They need not be installed. The point is that no table has them.
    for line in ["linux64 || cat", "fakeroot || cat", "./tool || cat"] {
        let id = guarded.shell_start(Command::new(line)).await.unwrap().id;
        assert_eq!(type_into(&guarded, &id, "echo a\n").await, Ok(()), "{line}");
        let typed = type_into(&guarded, &id, "cat .env\n").await;
        assert_eq!(typed, refused, "{line}");
    }
    let python = guarded.shell_start(Command::new("python3 -i")).await;
    let python = python.unwrap().id;
    for (line, expected) in [("open('a.txt')\n", Ok(())), ("open('.env')\n", refused)] {
        assert_eq!(type_into(&guarded, &python, line).await, expected);
    }
    assert!(person.taken().is_empty());
    let shell = guarded.shell_start(Command::new("sh")).await.unwrap().id;
    for edited in ["echo \u{15}true", "tX\u{7f}rue", "a \u{17}true", "true\r"] {
        let typed = type_into(&guarded, &shell, &format!("{edited}\n")).await;
        assert_eq!(typed, refused, "{edited:?}");
        assert_eq!(person.taken().len(), 1, "{edited:?}");
    }
    backend.stop(StopMode::Keep).await.unwrap();
}

#[tokio::test]
async fn protected_files_are_kept_from_what_is_typed() {
    let (_directory, backend) = local();
    let rules = "/conf/rules.toml";
    backend.write_file(rules, "kept").await.unwrap();
    let policy = Policy::builder().build().protecting([path(rules)]);
    let guarded = guard(backend.clone(), policy, &Person::no());
    let shell = guarded.shell_start(Command::new("sh")).await.unwrap().id;
    assert_eq!(type_into(&guarded, &shell, "cd conf\n").await, Ok(()));
    let typed = type_into(&guarded, &shell, "echo x > rules.toml\n").await;
    assert_eq!(typed, Err(ErrorKind::PermissionDenied));
    backend.stop(StopMode::Keep).await.unwrap();
    assert_eq!(backend.read_to_string(rules).await.unwrap(), "kept");
}

#[tokio::test]
async fn an_answer_about_a_line_does_not_hold_for_another_environment() {
    let (_directory, backend) = local();
    let person = Person::yes();
    let guarded = guard(backend, policy(r#"{"default":"ask"}"#), &person);
    let plain = Command::new("true");
    for command in [
        plain.clone(),
        plain.clone().env("PATH", "/tmp"),
        plain.clone().env("PATH", "/tmp/x"),
        plain.directory(path("/")),
    ] {
        guarded.execute(command).await.unwrap();
    }
    let questions = person.taken();
    let asked: Vec<_> = questions
        .iter()
        .map(|question| (question.asked[0].op, question.asked[0].target.to_string()))
        .collect();
    assert_eq!(asked[0], (Op::Execute, "true".to_owned()));
    assert_ne!(asked[0], asked[1]);
    assert_ne!(asked[1], asked[2]);
    assert_eq!(asked[0], asked[3], "the working directory, spelt out");
}
