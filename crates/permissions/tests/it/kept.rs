//! Tests of the paths that a guard keeps from commands, and of the level it requires.

use backend_core::ops::{Command, HardLinks, ShellId, TerminalSize, View};
use backend_core::search::Exclude;
use backend_core::{Backend as _, CommandPaths, Enforcement, ErrorKind, Sandbox, VPath};
use backend_local::{LocalBackend, NameSpace};
use backend_state::StateBackend;
use backend_testkit::fails;
use backend_testkit::fake::{FakeSandbox, PausedClock};
use permissions::approval::Strict;
use permissions::audit::AuditLog;
use permissions::{Access, Guarded, Op, Policy, Preset, Refusal, Ruleset};

use crate::support::scene::{Person, guard, path, policy};

const VAULT: &str = r#"{"default": "allow", "read": {"rules": [
    {"pattern": "vault/public/**", "action": "allow"},
    {"pattern": "vault/**", "action": "deny"}]},
    "write": {"rules": [{"pattern": "*.lock", "action": "deny"}]},
    "edit": {"rules": [{"pattern": "/docs", "action": "deny"}]}}"#;

fn fake() -> FakeSandbox<StateBackend> {
    FakeSandbox::new("fake", StateBackend::new(), PausedClock::new())
}

fn enforcing(level: Enforcement) -> FakeSandbox<StateBackend> {
    fake().enforcing(level, Some("the kernel is too old; use another"))
}

fn preset(preset: Preset) -> Policy {
    let rules = preset.ruleset();
    Policy::builder().ruleset(&rules, &VPath::root()).build()
}

fn requiring(level: &str) -> Policy {
    policy(&format!(
        r#"{{"default": "ask", "execute": {{"require_enforcement": "{level}"}},
        "read": {{"rules": [{{"pattern": "/vault", "action": "deny"}}]}}}}"#
    ))
}

#[test]
fn ordered_rules_keep_their_meaning() {
    let ruleset: Ruleset = serde_json::from_str(VAULT).unwrap();
    let policy = Policy::builder()
        .ruleset(&ruleset, &path("/work"))
        .build()
        .protecting([path("/conf/rules.toml")]);
    let view = policy.view();
    for (kept, paths) in [
        (true, ["/work/vault", "/work/vault/key", "/work/vault/a/b"]),
        (
            false,
            ["/work/vault/public", "/work/vault/public/a", "/vault/key"],
        ),
    ] {
        for at in paths {
            assert_eq!(view.deny_read.hides(&path(at)), kept, "{at}");
        }
    }
    for (kept, paths) in [
        (
            true,
            ["/a.lock", "/work/d/b.lock", "/docs/a", "/conf/rules.toml"],
        ),
        (false, ["/work/vault/key", "/a", "/conf/other", "/conf"]),
    ] {
        for at in paths {
            assert_eq!(view.deny_write.hides(&path(at)), kept, "{at}");
        }
    }
    assert_eq!(view.required, Enforcement::Words);
    assert_eq!(view.hard_links, HardLinks::Refuse);
    assert!(Policy::allow_all().view().is_empty());
}

#[test]
fn what_is_asked_about_is_not_kept() {
    let asks = policy(
        r#"{"default": "ask", "read": {"default": "ask", "rules": [
        {"pattern": "/a", "action": "ask"}]}}"#,
    );
    assert!(asks.view().is_empty(), "{:?}", asks.view());
}

#[test]
fn without_permissions_only_what_is_kept_remains() {
    let closed = policy(
        r#"{"default": "deny", "read": {"default": "deny", "rules": [
        {"pattern": "/src/**", "action": "allow"}]}}"#,
    );
    let view = closed.view();
    for (at, read) in [
        ("/src", true),
        ("/src/a/b", true),
        ("/a", false),
        ("/etc", false),
    ] {
        assert_eq!(view.deny_read.hides(&path(at)), !read, "{at}");
        assert!(view.deny_write.hides(&path(at)), "{at}");
    }
}

/// In a directory that is shown as `/`, a rule about the system's `/bin` is not about the
/// `bin` in it.
#[tokio::test]
async fn system_files_are_those_of_the_system() {
    let policy = preset(Preset::Permissive);
    let bin = path("/bin/tool");
    assert!(policy.view().deny_write.hides(&bin));
    assert!(policy.view().deny_read.hides(&path("/a/.env")));
    let shown = CommandPaths::default().with_root(VPath::root(), path("/srv/project"));
    let sandbox = Recorder(enforcing(Enforcement::View), shown);
    let (inside, commands) = (
        guard(sandbox.clone(), policy.clone(), &Person::yes()),
        sandbox.0,
    );
    inside.execute(Command::new("true")).await.unwrap();
    let view = commands.commands().pop().unwrap().view;
    assert!(!view.deny_write.hides(&bin), "{view:?}");
    assert!(view.deny_write.hides(&path("/a/.env")), "{view:?}");
    assert!(view.deny_read.hides(&path("/a/.env")), "{view:?}");
}

/// A fake sandbox with names of its own.
#[derive(Debug, Clone)]
struct Recorder(FakeSandbox<StateBackend>, CommandPaths);

impl backend_core::Backend for Recorder {
    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    backend_core::delegate! {
        |self| self.0 => info, working_dir, resolve, stat, ls, read, read_text, write, edit,
        create_dir, delete, rename, copy, glob, grep, watch
    }
}

#[async_trait::async_trait]
impl Sandbox for Recorder {
    fn command_names(&self, _: &VPath) -> CommandPaths {
        self.1.clone()
    }

    backend_core::delegate! {
        |self| self.0 => id, start, stop, is_alive, last_activity, trace, execute, stream,
        shell_start, shell_read, shell_write, shell_kill, shell_list, connect, shell_attach,
        shell_resize, shell_signal
    }
}

#[tokio::test]
async fn every_way_to_run_a_command_has_the_view() {
    let sandbox = enforcing(Enforcement::View);
    let guarded = guard(sandbox.clone(), policy(VAULT), &Person::yes());
    let expected = guarded.policy().view().clone();
    let terminal = Command::new("bash").terminal(TerminalSize::default());
    guarded.execute(Command::new("true")).await.unwrap();
    // The fake streams nothing, but the command has arrived.
    assert!(guarded.stream(Command::new("true")).await.is_err());
    guarded.shell_start(Command::new("cat")).await.unwrap();
    guarded.shell_start(terminal).await.unwrap();
    let directory = Command::new("true").directory(path("/elsewhere"));
    guarded.execute(directory).await.unwrap();
    let views: Vec<View> = sandbox.commands().into_iter().map(|it| it.view).collect();
    assert_eq!(views, vec![expected; 5]);
}

#[tokio::test]
async fn a_callers_view_is_added_to_and_never_lowered() {
    let sandbox = enforcing(Enforcement::View);
    let guarded = guard(sandbox.clone(), policy(VAULT), &Person::yes());
    let own = View::new(Exclude::hide(["/mine"]).unwrap(), Exclude::none())
        .required(Enforcement::View)
        .hard_links(HardLinks::Accept);
    let command = Command::new("true").view(own);
    guarded.execute(command.clone()).await.unwrap();
    let view = sandbox.commands().pop().unwrap().view;
    assert!(view.deny_read.hides(&path("/mine")) && view.deny_read.hides(&path("/vault")));
    assert_eq!(
        (view.required, view.hard_links),
        (Enforcement::View, HardLinks::Refuse)
    );

    let weak = guard(
        enforcing(Enforcement::Landlock),
        Policy::allow_all(),
        &Person::yes(),
    );
    fails(ErrorKind::PermissionDenied, weak.execute(command).await);
}

#[tokio::test]
async fn below_the_required_level_no_command_runs_and_nobody_is_asked() {
    let log = AuditLog::new(10);
    let person = Person::yes();
    let sandbox = enforcing(Enforcement::Landlock);
    let guarded = Guarded::builder(sandbox.clone())
        .policy(requiring("view"))
        .approver(person.clone())
        .audit(log.audit())
        .build();
    let terminal = Command::new("bash").terminal(TerminalSize::default());
    let refused = [
        guarded.execute(Command::new("true")).await.err(),
        guarded.stream(Command::new("true")).await.err(),
        guarded.shell_start(Command::new("true")).await.err(),
        guarded.shell_start(terminal).await.err(),
        guarded.plan([Access::command("true")]).await.err(),
    ];
    for error in refused {
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(
            matches!(Refusal::of(&error), Some(Refusal::Level(_))),
            "{error}"
        );
        assert_eq!(
            error.message(),
            "commands must have the enforcement level 'view' and have 'landlock' here: the kernel \
             is too old; use another"
        );
    }
    assert!(person.taken().is_empty() && sandbox.commands().is_empty());
    let records = log.records();
    assert_eq!(records.len(), 5);
    assert_eq!(records[0].enforcement, Some(Enforcement::Landlock));
    assert!(
        records[0].reason.contains("'view'"),
        "{}",
        records[0].reason
    );

    for (level, required) in [
        (Enforcement::View, "view"),
        (Enforcement::View, "words"),
        (Enforcement::Landlock, "landlock"),
        (Enforcement::Words, "words"),
    ] {
        let guarded = guard(enforcing(level), requiring(required), &person);
        guarded.execute(Command::new("true")).await.unwrap();
        let planned = guarded.plan([Access::command("true")]).await;
        assert!(planned.is_ok(), "{level} {required}");
    }
}

#[tokio::test]
async fn files_need_no_level() {
    use backend_core::BackendExt as _;
    let guarded = guard(fake(), requiring("view"), &Person::yes());
    guarded.write_file("/a", "b").await.unwrap();
    assert_eq!(guarded.read_to_string("/a").await.unwrap(), "b");
}

/// A shell that was started without the view would run what is typed without it.
#[tokio::test]
async fn only_shells_of_the_same_policy_are_typed_into() {
    let sandbox = enforcing(Enforcement::View);
    let person = Person::yes();
    let strict = guard(sandbox.clone(), requiring("view"), &person);
    let typed = || Some("ls\n".into());
    let open = strict.with_policy(Policy::allow_all());
    let unrestricted = open.shell_start(Command::new("sh")).await.unwrap();
    let own = strict.shell_start(Command::new("sh")).await.unwrap();
    strict.shell_write(&own.id, typed()).await.unwrap();
    person.taken();
    let error = fails(
        ErrorKind::PermissionDenied,
        strict.shell_write(&unrestricted.id, typed()).await,
    );
    assert!(error.message().contains("start another"), "{error}");
    fails(
        ErrorKind::PermissionDenied,
        strict.shell_attach(&unrestricted.id).await.map(drop),
    );
    let elsewhere = sandbox.shell_start(Command::new("sh")).await.unwrap();
    fails(
        ErrorKind::PermissionDenied,
        strict.shell_write(&elsewhere.id, typed()).await,
    );
    let missing = ShellId::new("none");
    fails(
        ErrorKind::NotFound,
        strict.shell_write(&missing, typed()).await,
    );
    assert!(person.taken().is_empty());
    // The end of the input is no command.
    strict.shell_write(&unrestricted.id, None).await.unwrap();
    open.shell_write(&unrestricted.id, typed()).await.unwrap();
}

#[tokio::test]
async fn questions_and_records_say_the_level() {
    for (level, how) in [
        (Enforcement::View, "kept by the kernel"),
        (Enforcement::Words, "only by the words of the command line"),
        (
            Enforcement::Landlock,
            "only by the words of the command line, within the sandbox's directories",
        ),
    ] {
        let (person, log) = (Person::yes(), AuditLog::new(10));
        let guarded = Guarded::builder(enforcing(level))
            .policy(preset(Preset::Default))
            .approver(person.clone())
            .audit(log.audit())
            .build();
        guarded.execute(Command::new("make")).await.unwrap();
        let terminal = Command::new("vi").terminal(TerminalSize::default());
        guarded.shell_start(terminal).await.unwrap();
        let planned = guarded.plan([Access::command("make all")]).await.unwrap();
        planned.authorize(|question| question).await.unwrap();
        for question in person.taken() {
            assert_eq!(question.enforcement, Some(level));
            let shown = question.to_string();
            let line = format!("path rules: {how}");
            assert!(shown.lines().any(|shown| shown == line), "{shown}");
            let json = serde_json::to_value(&question).unwrap();
            assert_eq!(json["enforcement"], level.as_str());
        }
        assert!(log.records().len() >= 3);
        for record in log.records() {
            assert_eq!(record.enforcement, Some(level));
            let json = serde_json::to_string(&record).unwrap();
            assert!(
                json.contains(&format!(r#""enforcement":"{level}""#)),
                "{json}"
            );
            assert_eq!(
                serde_json::from_str::<permissions::audit::AuditRecord>(&json).unwrap(),
                record
            );
        }
        assert_eq!(guarded.info().enforcement, level);
    }
}

#[tokio::test]
async fn where_no_path_is_denied_no_level_is_told() {
    use backend_core::BackendExt as _;
    let (person, log) = (Person::yes(), AuditLog::new(10));
    let guarded = Guarded::builder(fake())
        .policy(policy(r#"{"default": "ask"}"#))
        .approver(person.clone())
        .audit(log.audit())
        .build();
    guarded.execute(Command::new("make")).await.unwrap();
    let question = person.taken().pop().unwrap();
    assert_eq!(question.enforcement, None);
    assert!(!question.to_string().contains("path rules"), "{question}");
    guarded.write_file("/a", "b").await.unwrap();
    let records = log.records();
    assert_eq!(
        records.last().unwrap().enforcement,
        None,
        "it is no command"
    );
}

#[tokio::test]
async fn what_is_shown_differs_with_the_level() {
    let guarded = |level| {
        let person = Person::yes();
        (
            guard(enforcing(level), preset(Preset::Default), &person),
            person,
        )
    };
    let mut questions = Vec::new();
    for level in [Enforcement::View, Enforcement::Words] {
        let (guarded, person) = guarded(level);
        guarded.execute(Command::new("make")).await.unwrap();
        questions.push(person.taken().pop().unwrap());
    }
    // An answer counts for the command, whatever the level.
    assert_eq!(questions[0].fingerprint(), questions[1].fingerprint());
    assert_ne!(questions[0].to_string(), questions[1].to_string());
}

#[test]
fn demands_are_read_and_the_stricter_counts() {
    let text = "[execute]\nrequire_enforcement = 'landlock'\nhard_links = 'accept'\n";
    let ruleset = Ruleset::from_toml(text).unwrap();
    let execute = ruleset.execute.as_ref().unwrap();
    assert_eq!(execute.require_enforcement, Some(Enforcement::Landlock));
    assert_eq!(execute.hard_links, Some(HardLinks::Accept));
    let again = Ruleset::from_toml(&ruleset.to_toml().unwrap()).unwrap();
    assert_eq!(again, ruleset);
    assert_eq!(
        Ruleset::from_json(&ruleset.to_json().unwrap()).unwrap(),
        ruleset
    );
    let built = Ruleset::builder()
        .require_enforcement(Enforcement::Landlock)
        .hard_links(HardLinks::Accept)
        .build()
        .unwrap();
    let built = built.execute.unwrap();
    assert_eq!(built.require_enforcement, Some(Enforcement::Landlock));
    assert_eq!(built.hard_links, Some(HardLinks::Accept));
    for wrong in [
        "require_enforcement = 'kernel'",
        "hard_links = 'allow'",
        "require = 'view'",
    ] {
        assert!(
            Ruleset::from_toml(&format!("[execute]\n{wrong}")).is_err(),
            "{wrong}"
        );
    }

    let builder = || Policy::builder().ruleset(&ruleset, &VPath::root());
    let policy = builder().build();
    assert_eq!(policy.view().required, Enforcement::Landlock);
    assert_eq!(policy.view().hard_links, HardLinks::Accept);
    let raised = policy.requiring(Enforcement::View);
    assert_eq!(raised.view().required, Enforcement::View);
    assert_eq!(
        raised.requiring(Enforcement::Words).view().required,
        Enforcement::View
    );
    assert_ne!(raised.id(), policy.id());
    let strict = builder().hard_links(HardLinks::Refuse).build();
    assert_eq!(strict.view().hard_links, HardLinks::Refuse);
    let open = Policy::builder().hard_links(HardLinks::Accept).build();
    assert_eq!(open.view().hard_links, HardLinks::Accept);
    assert_eq!(policy.id(), builder().build().id());
}

/// A dry run asks as a real one does.
#[tokio::test]
async fn a_dry_run_is_refused_like_the_call() {
    let guarded = guard(
        enforcing(Enforcement::Words),
        requiring("view"),
        &Person::yes(),
    );
    let trial = guarded.dry_run(
        enforcing(Enforcement::Words),
        Some(std::sync::Arc::new(Strict)),
    );
    let error = trial.execute(Command::new("true")).await.unwrap_err();
    assert!(
        matches!(Refusal::of(&error), Some(Refusal::Level(_))),
        "{error}"
    );
}

/// Where paths are those of the host, so are those of the rules.
#[tokio::test]
async fn host_names_are_the_paths_of_the_rules() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let backend = LocalBackend::builder(&root)
        .names(NameSpace::Host {
            allowed: vec![root.clone()],
        })
        .enable_execute(true)
        .open()
        .unwrap();
    let here = backend.working_dir();
    let ruleset: Ruleset = serde_json::from_str(VAULT).unwrap();
    let policy = Policy::builder().ruleset(&ruleset, &here).build();
    let key = here.join("vault/key").unwrap();
    assert!(policy.view().deny_read.hides(&key), "{key}");
    assert_eq!(
        policy
            .judge(Op::Read, &key, permissions::Kind::File, None)
            .action(),
        permissions::Action::Deny
    );
}
