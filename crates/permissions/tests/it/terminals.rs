//! Tests of terminals and attached connections behind a guard.

use backend_core::ErrorKind;
use backend_core::ops::{Command, ShellId, Signal, TerminalSize};
use backend_core::{Backend, Sandbox as _, VPath};
use backend_state::StateBackend;
use backend_testkit::fails;
use backend_testkit::fake::{FakeSandbox, PausedClock};
use bytes::Bytes;
use permissions::approval::Remember;
use permissions::{Action, Answer, Op, Policy, Preset, Ruleset};

use crate::support::scene::{Person, guard, local, policy};

fn fake() -> FakeSandbox<StateBackend> {
    FakeSandbox::new("fake", StateBackend::new(), PausedClock::new())
}

fn terminal(line: &str) -> Command {
    Command::new(line).terminal(TerminalSize::default())
}

fn preset(preset: Preset) -> Policy {
    let rules = preset.ruleset();
    Policy::builder().ruleset(&rules, &VPath::root()).build()
}

/// Returns the operations of the questions asked since the last call.
fn asked(person: &Person) -> Vec<Vec<Op>> {
    let ops = |question: permissions::Question| question.asked.iter().map(|it| it.op).collect();
    person.taken().into_iter().map(ops).collect()
}

#[tokio::test]
async fn a_terminal_is_an_access_of_its_own() {
    for (which, expected) in [
        (Preset::Default, Some(vec![vec![Op::Execute, Op::Terminal]])),
        (Preset::Strict, Some(vec![vec![Op::Execute, Op::Terminal]])),
        (Preset::Permissive, Some(Vec::new())),
        (Preset::Readonly, None),
    ] {
        let person = Person::yes();
        let guarded = guard(fake(), preset(which), &person);
        let started = guarded.shell_start(terminal("vi notes.md")).await;
        match expected {
            Some(questions) => {
                assert!(started.is_ok(), "{which}: {started:?}");
                assert_eq!(asked(&person), questions, "{which}");
            }
            None => {
                fails(ErrorKind::PermissionDenied, started);
                assert_eq!(asked(&person), Vec::<Vec<Op>>::new(), "{which}");
            }
        }
    }
}

#[tokio::test]
async fn the_question_says_that_it_is_a_terminal() {
    let person = Person::no();
    let guarded = guard(fake(), preset(Preset::Default), &person);
    fails(
        ErrorKind::PermissionDenied,
        guarded.shell_start(terminal("bash")).await,
    );
    let question = person.taken().pop().unwrap();
    assert_eq!(question.description, "Open a terminal for bash");
    assert!(
        question
            .reasons
            .iter()
            .any(|why| why.starts_with("terminal bash: ")),
        "{:?}",
        question.reasons
    );
}

#[tokio::test]
async fn permission_to_run_is_no_permission_to_type() {
    let json = r#"{"default": "allow", "execute": {"default": "allow"}}"#;
    let person = Person::yes();
    let guarded = guard(fake(), policy(json), &person);
    guarded.shell_start(Command::new("bash")).await.unwrap();
    assert_eq!(asked(&person), Vec::<Vec<Op>>::new());
    guarded.shell_start(terminal("bash")).await.unwrap();
    assert_eq!(asked(&person), [[Op::Terminal]]);
    for (action, expected) in [("allow", None), ("deny", Some(ErrorKind::PermissionDenied))] {
        let json = format!(r#"{{"default": "allow", "terminal": {{"default": "{action}"}}}}"#);
        let guarded = guard(fake(), policy(&json), &Person::no());
        let started = guarded.shell_start(terminal("bash")).await;
        assert_eq!(
            started.err().map(|error| error.kind()),
            expected,
            "{action}"
        );
    }
}

#[tokio::test]
async fn a_remembered_answer_about_a_command_opens_no_terminal() {
    let person = Person::who(|_| Answer::yes().remember(Remember::Session));
    let guarded = guard(fake(), preset(Preset::Default), &person);
    guarded.shell_start(Command::new("bash")).await.unwrap();
    guarded.shell_start(Command::new("bash")).await.unwrap();
    assert_eq!(asked(&person), [[Op::Execute]]);
    guarded.shell_start(terminal("bash")).await.unwrap();
    assert_eq!(asked(&person), [[Op::Terminal]]);
}

#[tokio::test]
async fn a_command_that_may_not_run_gets_no_terminal_either() {
    let person = Person::yes();
    let guarded = guard(fake(), preset(Preset::Permissive), &person);
    let started = guarded.shell_start(terminal("rm -rf /")).await;
    fails(ErrorKind::PermissionDenied, started);
    let running = guarded.execute(terminal("true")).await;
    fails(ErrorKind::InvalidInput, running);
}

#[tokio::test]
async fn attaching_is_asked_about_and_denied_like_a_terminal() {
    let (_directory, backend) = local();
    let shell = backend.shell_start(Command::new("cat")).await.unwrap().id;
    for which in [Preset::Default, Preset::Strict] {
        let person = Person::no();
        let guarded = guard(backend.clone(), preset(which), &person);
        let attached = guarded.shell_attach(&shell).await.map(drop);
        fails(ErrorKind::PermissionDenied, attached);
        let question = person.taken().pop().unwrap();
        let description = format!("Attach to shell {shell}, which runs cat");
        assert_eq!(question.description, description);
        let person = Person::yes();
        let guarded = guard(backend.clone(), preset(which), &person);
        guarded.shell_attach(&shell).await.unwrap();
        assert_eq!(asked(&person), [[Op::Terminal]], "{which}");
    }
    let person = Person::yes();
    let guarded = guard(backend.clone(), preset(Preset::Readonly), &person);
    let attached = guarded.shell_attach(&shell).await.map(drop);
    fails(ErrorKind::PermissionDenied, attached);
    for denied in [
        guarded.shell_resize(&shell, TerminalSize::default()).await,
        guarded.shell_signal(&shell, Signal::Interrupt).await,
    ] {
        fails(ErrorKind::PermissionDenied, denied);
    }
    assert_eq!(asked(&person), Vec::<Vec<Op>>::new());
    let guarded = guard(backend, preset(Preset::Permissive), &person);
    guarded.shell_attach(&shell).await.unwrap();
    let unknown = guarded.shell_attach(&ShellId::new("bg_9")).await.map(drop);
    fails(ErrorKind::NotFound, unknown);
}

#[tokio::test]
async fn after_bytes_were_typed_past_the_guard_input_is_asked_about() {
    let (_directory, backend) = local();
    let person = Person::yes();
    let guarded = guard(backend, preset(Preset::Permissive), &person);
    let shell = guarded.shell_start(Command::new("sh")).await.unwrap().id;
    let input = || Some(Bytes::from_static(b"true\n"));
    guarded.shell_write(&shell, input()).await.unwrap();
    assert_eq!(asked(&person), Vec::<Vec<Op>>::new());
    drop(guarded.shell_attach(&shell).await.unwrap());
    guarded.shell_write(&shell, input()).await.unwrap();
    assert_eq!(asked(&person), [[Op::Execute]]);
}

#[tokio::test]
async fn a_line_that_enter_ends_is_judged_as_a_line() {
    let typed = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
    let json = r#"{"default": "allow", "execute": {"default": "allow"}}"#;
    for (rules, asks) in [(preset(Preset::Permissive), false), (policy(json), true)] {
        let person = Person::yes();
        let guarded = guard(fake(), rules, &person);
        let shell = guarded.shell_start(terminal("sh")).await.unwrap().id;
        asked(&person);
        guarded.shell_write(&shell, typed("true\r")).await.unwrap();
        assert_eq!(asked(&person), Vec::<Vec<Op>>::new());
        // Keys that edit the line make another line of it.
        for text in ["truex\x7f\r", "tru\t\r"] {
            guarded.shell_write(&shell, typed(text)).await.unwrap();
            let question = [Op::Execute];
            let expected = if asks { &[question][..] } else { &[] };
            assert_eq!(asked(&person), expected, "{text:?}");
        }
    }
    let person = Person::yes();
    let guarded = guard(fake(), preset(Preset::Permissive), &person);
    let shell = guarded.shell_start(terminal("sh")).await.unwrap().id;
    let denied = guarded.shell_write(&shell, typed("true\rrm -rf /\r"));
    fails(ErrorKind::PermissionDenied, denied.await);
    // Parts of a line are judged together.
    guarded.shell_write(&shell, typed("rm -rf")).await.unwrap();
    let denied = guarded.shell_write(&shell, typed(" /\r"));
    fails(ErrorKind::PermissionDenied, denied.await);
    // Without a terminal it is a character like others.
    let shell = guarded.shell_start(Command::new("sh")).await.unwrap().id;
    guarded.shell_write(&shell, typed("true\r")).await.unwrap();
    assert_eq!(asked(&person), [[Op::Execute]]);
}

#[test]
fn without_a_section_a_terminal_is_never_just_allowed() {
    let action = |json: &str| {
        let ruleset: Ruleset = serde_json::from_str(json).unwrap();
        ruleset.terminal_action()
    };
    assert_eq!(action(r#"{"default": "allow"}"#), Action::Ask);
    assert_eq!(action(r#"{"default": "deny"}"#), Action::Deny);
    let denied = r#"{"default": "allow", "execute": {"default": "deny"}}"#;
    assert_eq!(action(denied), Action::Deny);
    let own = r#"{"default": "deny", "terminal": {"default": "allow"}}"#;
    assert_eq!(action(own), Action::Allow);
    assert!(fake().info().capabilities.commands);
    let built = Ruleset::builder().terminal(Action::Allow);
    let built = built.rule(Op::Terminal, "bash", Action::Deny, "").build();
    assert_eq!(built.unwrap().terminal_action(), Action::Deny);
}
