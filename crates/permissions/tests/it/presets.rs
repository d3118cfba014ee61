//! Tests of every preset, from the tool call to its effect, and of mistakes known from
//! other libraries.

use backend_core::ErrorKind::{self, PermissionDenied};
use backend_core::ops::{Command, GrepQuery};
use backend_core::{Backend, BackendExt as _, Sandbox as _, VPath};
use backend_local::LocalBackend;
use backend_mounts::{Mode, Mount, MountConfig, Scope};
use backend_state::StateBackend;
use backend_testkit::fails;
use permissions::access::Intent;
use permissions::tool::{Tool, Visibility, visible};
use permissions::{Action, Guarded, Kind, Op, Policy, Preset, Refusal};

use crate::support::scene::{Person, call, furnish, guard, local, path, policy, snapshot};

/// The outcome of a call: done, asked about, or denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Asked,
    Refused,
}

use Fate::{Asked, Done, Refused};

/// Tool, method, and its outcome under default, permissive, readonly and strict.
const LOOP: &[(Tool, &str, [Fate; 4])] = &[
    (Tool::ReadFile, "read", [Done, Done, Done, Asked]),
    (Tool::ReadFile, "read_text", [Done, Done, Done, Asked]),
    (Tool::WriteFile, "write", [Asked, Done, Refused, Asked]),
    (Tool::EditFile, "edit", [Asked, Done, Refused, Asked]),
    (Tool::DeleteFile, "delete", [Asked, Done, Refused, Asked]),
    (Tool::MoveFile, "rename", [Asked, Done, Refused, Asked]),
    (Tool::CopyFile, "copy", [Asked, Done, Refused, Asked]),
    (Tool::Ls, "ls", [Done, Done, Done, Asked]),
    (Tool::Glob, "glob", [Done, Done, Done, Asked]),
    (Tool::Grep, "grep", [Done, Done, Done, Asked]),
    (Tool::Execute, "execute", [Asked, Done, Refused, Asked]),
    (
        Tool::RunInBackground,
        "shell_start",
        [Asked, Done, Refused, Asked],
    ),
];

fn preset(preset: Preset) -> Policy {
    let rules = preset.ruleset();
    Policy::builder().ruleset(&rules, &VPath::root()).build()
}

/// Returns the policy's decision about the parts of a call, before it is made.
fn planned(policy: &Policy, method: &str) -> Fate {
    let (a, d, new) = (path("/d/a.txt"), path("/d"), path("/d/new"));
    let intent = match method {
        "read" | "read_text" => Intent::read(a),
        "write" => Intent::write(a),
        "edit" => Intent::edit(a),
        "delete" => Intent::delete(a),
        "rename" => Intent::rename(a, new),
        "copy" => Intent::copy(a, new),
        "ls" => Intent::ls(d),
        "glob" => Intent::glob(d),
        "grep" => Intent::grep(d),
        _ => {
            let root = VPath::root();
            let context = permissions::command::CommandContext::new("touch ran", &root);
            return fate(policy.judge_command(context).verdict.action());
        }
    };
    let judge = |access: permissions::Access| {
        let path = access.path().unwrap();
        policy
            .judge(access.op, path, access.kind, access.bytes)
            .action()
    };
    fate(intent.accesses().map(judge).max().unwrap())
}

fn fate(action: Action) -> Fate {
    match action {
        Action::Allow => Done,
        Action::Ask => Asked,
        Action::Deny => Refused,
    }
}

async fn furnished() -> (tempfile::TempDir, LocalBackend) {
    let (directory, backend) = local();
    furnish(&backend).await;
    (directory, backend)
}

#[tokio::test]
async fn from_the_tool_call_to_the_effect() {
    for (tool, method, fates) in LOOP {
        let (_expected, bare) = furnished().await;
        call(&bare, method).await.unwrap();
        let after = snapshot(&bare).await;
        for (which, fate) in Preset::ALL.into_iter().zip(fates) {
            let name = format!("{tool} under {which}");
            let policy = preset(which);
            assert_eq!(planned(&policy, method), *fate, "{name}");
            for agreed in [true, false] {
                let (_directory, backend) = furnished().await;
                let before = snapshot(&backend).await;
                let person = if agreed { Person::yes() } else { Person::no() };
                let guarded = guard(backend.clone(), policy.clone(), &person);
                let answer = call(&guarded.with_tool(tool.name()), method).await;
                let questions = person.taken();
                assert_eq!(questions.len(), usize::from(*fate == Asked), "{name}");
                for question in &questions {
                    assert_eq!(question.tool.as_deref(), Some(tool.name()));
                }
                let happens = *fate == Done || (*fate == Asked && agreed);
                match answer {
                    Ok(_) => assert!(happens, "{name}"),
                    Err(error) => {
                        assert!(!happens, "{name}: {error}");
                        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
                        let refusal = Refusal::of(&error).unwrap().to_string();
                        assert!(error.to_string().contains(&refusal), "{error}");
                    }
                }
                let now = snapshot(&backend).await;
                assert_eq!(now, if happens { after.clone() } else { before }, "{name}");
            }
        }
    }
}

#[test]
fn what_can_only_be_denied_is_not_offered() {
    for which in Preset::ALL {
        let policy = preset(which);
        for tool in Tool::ALL {
            let best = tool
                .operations()
                .iter()
                .map(|op| policy.most_lenient(*op))
                .max();
            let looks = [Tool::ReadOutput, Tool::ListShells, Tool::KillShell];
            let expected = match best.unwrap() {
                Action::Deny => Visibility::Hidden,
                Action::Ask if looks.contains(tool) => Visibility::Offered { asks: false },
                Action::Ask => Visibility::Offered { asks: true },
                Action::Allow => Visibility::Offered { asks: false },
            };
            assert_eq!(visible(*tool, &policy, true), expected, "{tool} {which}");
        }
        let offered = |tool| visible(tool, &policy, true) != Visibility::Hidden;
        let changes = [
            Tool::WriteFile,
            Tool::EditFile,
            Tool::HashlineEdit,
            Tool::DeleteFile,
            Tool::MoveFile,
            Tool::CopyFile,
            Tool::Execute,
            Tool::RunInBackground,
            Tool::ReadOutput,
            Tool::WriteInput,
            Tool::KillShell,
            Tool::ListShells,
        ];
        for tool in changes {
            assert_eq!(offered(tool), which != Preset::Readonly, "{tool} {which}");
        }
        for tool in [Tool::Ls, Tool::ReadFile, Tool::Glob, Tool::Grep] {
            assert!(offered(tool), "{tool} {which}");
        }
    }
}

/// A background command is judged like any other, and its ID is reported.
#[tokio::test]
async fn no_command_slips_past_the_rules_in_the_background() {
    let (directory, backend) = local();
    let guarded = guard(backend, preset(Preset::Readonly), &Person::yes());
    let command = || Command::new("touch slipped");
    fails(PermissionDenied, guarded.shell_start(command()).await);
    assert!(guarded.stream(command()).await.is_err());
    assert!(guarded.execute(command()).await.is_err());
    assert!(!directory.path().join("slipped").exists());
}

/// All spellings of a path are treated as the same path.
#[tokio::test]
async fn no_spelling_evades_a_rule() {
    let backend = StateBackend::new();
    backend.write_file("/etc/passwd", "root").await.unwrap();
    backend.write_file("/app/.env", "TOKEN").await.unwrap();
    let guarded = guard(backend, preset(Preset::Permissive), &Person::yes());
    for spelling in ".env ./.env /app/../app/.env app//.env x/../../app/.env".split(' ') {
        let full = if spelling.contains("app") {
            spelling.to_owned()
        } else {
            format!("app/{spelling}")
        };
        let Ok(path) = guarded.path(&full) else {
            continue;
        };
        let error = guarded.read_bytes(path.as_str()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{spelling}");
    }
    for spelling in ["etc/passwd", "./etc/../etc/passwd", "/etc//passwd"] {
        let error = guarded.write_file(spelling, "x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{spelling}");
    }
}

/// A file shown in a listing exists, whether or not it can be read.
#[tokio::test]
async fn exists_is_judged_as_a_listing_is() {
    let backend = StateBackend::new();
    backend.write_file("/app/secret.txt", "x").await.unwrap();
    let rules = |section: &str, more: &str| {
        format!(
            r#"{{"default":"allow","{section}":{{"rules":[
                {{"pattern":"**/secret.txt","action":"deny"{more}}}]}}}}"#
        )
    };
    for (section, more, exists) in [
        ("write", "", true),
        ("read", "", true),
        ("read", r#","hide":true"#, false),
        ("ls", "", false),
    ] {
        let guarded = guard(
            backend.clone(),
            policy(&rules(section, more)),
            &Person::yes(),
        );
        let listed = guarded.list_dir("/app").await.unwrap().entries;
        assert_eq!(listed.len(), usize::from(exists), "{section}{more}");
        let found = guarded.exists("/app/secret.txt").await.unwrap();
        assert_eq!(found, exists, "{section}{more}");
        let described = guarded.metadata("/app/secret.txt").await;
        assert_eq!(described.is_ok(), exists, "{section}{more}");
        let missing = guarded.exists("/app/other.txt").await.unwrap();
        assert!(!missing, "{section}{more}");
    }
}

/// Everything in a secret directory is secret, and a rule can hide its name.
#[tokio::test]
async fn secret_directories_protect_what_is_in_them() {
    let backend = StateBackend::new();
    backend
        .write_file("/app/secrets/db/login.txt", "needle")
        .await
        .unwrap();
    backend.write_file("/app/open.txt", "needle").await.unwrap();
    let guarded = guard(backend.clone(), preset(Preset::Permissive), &Person::yes());
    fails(
        PermissionDenied,
        guarded.read_bytes("/app/secrets/db/login.txt").await,
    );
    let found = guarded.search_text("needle").await.unwrap();
    assert_eq!(found.files.len(), 1);
    let error = guarded.move_to("/app", "/b").await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::PermissionDenied,
        "not by moving its parent"
    );
    fails(PermissionDenied, guarded.delete_tree("/app").await);
    let hiding = r#"{"default":"allow","read":{"rules":[
        {"pattern":"**/secrets","action":"deny","hide":true}]}}"#;
    let guarded = guard(backend, policy(hiding), &Person::yes());
    let names: Vec<_> = guarded.list_dir("/app").await.unwrap().entries;
    assert_eq!(names.len(), 1);
    assert_eq!(guarded.find_files("**").await.unwrap().files.len(), 1);
    for hidden in ["/app/secrets", "/app/secrets/db/login.txt"] {
        assert!(!guarded.exists(hidden).await.unwrap());
        fails(PermissionDenied, guarded.metadata(hidden).await);
    }
    fails(PermissionDenied, guarded.list_dir("/app/secrets").await);
    let grep = guarded.grep(GrepQuery::new("needle", path("/"))).await;
    assert_eq!(grep.unwrap().files.len(), 1);
}

/// A denial is an error with a text for the model. Listing shells is not asked about.
#[tokio::test]
async fn a_denial_ends_nothing_and_looking_asks_nobody() {
    let (_directory, backend) = local();
    backend.write_file("/.env", "x").await.unwrap();
    let person = Person::yes();
    let guarded = guard(backend, preset(Preset::Default), &person);
    let error = guarded.read_bytes("/.env").await.unwrap_err();
    assert!(
        error.to_string().contains("Protect sensitive files"),
        "{error}"
    );
    guarded.shell_list().await.unwrap();
    assert!(person.taken().is_empty());
}

fn mounts() -> Scope {
    let mount = |point: &str| Mount::new(format!("/srv{point}"), point).unwrap();
    let mounts = vec![
        mount("/free").mode(Mode::Rw).write_approval(false),
        mount("/rw").mode(Mode::Rw),
        mount("/ro").mode(Mode::Ro),
        mount("/shy")
            .mode(Mode::Rw)
            .read_approval(true)
            .write_approval(false),
    ];
    Scope::new(MountConfig::new(mounts).build().unwrap())
}

/// Mounts deny some calls and ask about others.
#[tokio::test]
async fn mounts_block_and_ask() {
    let policy = Policy::builder().layer(mounts()).build();
    for (name, expected) in [
        ("write /free/f", Done),
        ("write /rw/f", Asked),
        ("write /ro/f", Refused),
        ("write /none/f", Refused),
        ("edit /rw/f", Asked),
        ("edit /ro/f", Refused),
        ("delete /rw/f", Asked),
        ("delete /ro/f", Refused),
        ("read /rw/f", Done),
        ("read /ro/f", Done),
        ("read /shy/f", Asked),
        ("read /none/f", Refused),
        ("list /", Asked),
        ("list /rw", Done),
        ("list /shy", Asked),
        ("list /none", Refused),
        ("move /free/f /free/g", Done),
        ("move /rw/f /free/g", Asked),
        ("move /free/f /rw/g", Asked),
        ("move /ro/f /free/g", Refused),
        ("move /free/f /ro/g", Refused),
        ("move /none/f /free/g", Refused),
        ("move /shy/f /free/g", Asked),
        ("copy /ro/f /free/g", Done),
        ("copy /shy/f /free/g", Asked),
        ("copy /free/f /rw/g", Asked),
        ("copy /free/f /ro/g", Refused),
        ("copy /free/f /none/g", Refused),
    ] {
        let backend = StateBackend::new();
        for directory in ["free", "rw", "ro", "shy", "none"] {
            let path = format!("/{directory}/f");
            backend.write_file(&path, "needle").await.unwrap();
        }
        let person = Person::yes();
        let guarded = guard(backend, policy.clone(), &person);
        let answer = run(&guarded, name).await;
        assert_eq!(answer.is_ok(), expected != Refused, "{name}: {answer:?}");
        let asked = person.taken().len();
        assert_eq!(asked, usize::from(expected == Asked), "{name}");
    }
}

async fn run(guarded: &Guarded<StateBackend>, line: &str) -> backend_core::Result<()> {
    let words: Vec<_> = line.split(' ').collect();
    match words[..] {
        ["write", path] => guarded.write_file(path, "x").await.map(drop),
        ["edit", path] => guarded.replace_text(path, "needle", "x").await.map(drop),
        ["delete", path] => guarded.delete_file(path).await,
        ["read", path] => guarded.read_bytes(path).await.map(drop),
        ["list", place] => {
            let query = backend_core::ops::GlobQuery::new("**", path(place));
            guarded.glob(query).await.map(drop)
        }
        ["move", from, to] => guarded.move_to(from, to).await,
        ["copy", from, to] => guarded.copy_to(from, to).await,
        _ => Err(backend_core::Error::internal("no such call")),
    }
}

/// A file cannot be moved out of a mount that asks before reads, and then be read
/// without a question.
#[tokio::test]
async fn moving_is_no_way_around_reading() {
    let backend = StateBackend::new();
    backend.write_file("/shy/f", "private").await.unwrap();
    let policy = Policy::builder().layer(mounts()).build();
    let guarded = guard(backend.clone(), policy, &Person::no());
    for error in [
        guarded.move_to("/shy/f", "/free/f").await.unwrap_err(),
        guarded.copy_to("/shy/f", "/free/f").await.unwrap_err(),
        guarded
            .replace_text("/shy/f", "privat", "x")
            .await
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(!error.to_string().contains("private"), "{error}");
    }
    assert!(!backend.exists("/free/f").await.unwrap());
}

#[test]
fn a_verdict_explains_itself() {
    let policy = preset(Preset::Permissive);
    let verdict = policy.judge(Op::Write, &path("/etc/hosts"), Kind::File, None);
    assert_eq!(verdict.action(), Action::Deny);
    let text = policy.explain(Op::Write, &path("/etc/hosts"));
    assert!(
        text.contains("'/etc/**'") && text.contains("system files"),
        "{text}"
    );
}

/// If the root of a backend is a directory of the host, `bin` in it is not `/bin`.
#[cfg(feature = "shell")]
#[test]
fn a_project_may_have_directories_that_are_called_like_those_of_a_system() {
    let root = VPath::root();
    let names = backend_core::CommandPaths::default()
        .with_root(root.clone(), VPath::parse("/srv/project").unwrap());
    let ruleset = Preset::Permissive.ruleset();
    let policy = Policy::builder().ruleset(&ruleset, &root).build();
    let judge = |line: &str, names: Option<&backend_core::CommandPaths>| {
        let mut command = permissions::command::CommandContext::new(line, &root);
        if let Some(names) = names {
            command = command.names(names);
        }
        policy.judge_command(command).verdict.action()
    };
    for line in [
        "cat bin/app",
        "ls bin",
        "mkdir -p bin",
        "git add bin/app",
        "cp a etc/x",
        "rm -rf var/cache",
        "rm usr/*.o",
        "echo x > etc/app.conf",
        "cd bin && touch app",
        "echo x > /srv/project/etc/x",
    ] {
        assert_eq!(judge(line, Some(&names)), Action::Allow, "{line}");
    }
    for line in [
        "echo x > /etc/hosts",
        "cp a /usr/bin/app",
        "mkdir /bin/x",
        "cp a ../../etc/x",
        "rm /usr/*.o",
        "rm -rf /",
        "rm -rf /etc",
        "rm -rf ../../usr",
        "cat bin/server.pem",
        "cat *.pem",
    ] {
        assert_eq!(judge(line, Some(&names)), Action::Deny, "{line}");
    }
    // If the root of the backend is that of a system, these are the system's
    // directories.
    for line in ["cp a etc/x", "mkdir -p bin/x", "rm usr/*.o"] {
        assert_eq!(judge(line, None), Action::Deny, "{line}");
    }
    // A user's own rule refers to the backend's paths.
    let text = r#"{"default": "allow", "write": {"default": "allow",
        "rules": [{"pattern": "/etc/**", "action": "deny"}]}}"#;
    let own = Policy::builder().ruleset(&serde_json::from_str(text).unwrap(), &root);
    let command = permissions::command::CommandContext::new("cp a etc/x", &root).names(&names);
    let verdict = own.build().judge_command(command).verdict;
    assert_eq!(verdict.action(), Action::Deny);
}
