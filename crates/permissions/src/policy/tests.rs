//! Tests of all layers together.

use super::*;
use crate::command::CommandContext;
use crate::rules::{CommandRules, PathPattern, PathRule, PathRules, Ruleset};
use crate::tool::{Tool, ToolSetting};

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

fn rule(pattern: &str, action: Action) -> PathRule {
    PathRule {
        pattern: PathPattern::new(pattern).unwrap(),
        action,
        description: "why".to_owned(),
        hide: false,
    }
}

fn section(default: Action, rules: Vec<PathRule>) -> Option<PathRules> {
    Some(PathRules { default, rules })
}

fn policy(ruleset: &Ruleset) -> Policy {
    Policy::builder().ruleset(ruleset, &VPath::root()).build()
}

#[test]
fn nothing_is_against_anything_without_layers() {
    let policy = Policy::allow_all();
    for op in Op::ALL {
        let verdict = policy.judge(op, &path("/x"), Kind::File, Some(1));
        assert_eq!(verdict.action(), Action::Allow);
        assert_eq!(policy.most_lenient(op), Action::Allow);
        assert_eq!(policy.strongest_beneath(op, &path("/x")), Action::Allow);
        assert!(policy.exclude(op).is_none());
    }
    let root = VPath::root();
    let judged = policy.judge_command(CommandContext::new("rm -rf /", &root));
    assert_eq!(judged.verdict.action(), Action::Allow);
}

#[test]
fn move_and_copy_speak_only_in_their_own_sections() {
    let mut ruleset = Ruleset {
        default: Action::Deny,
        ..Ruleset::default()
    };
    let judge = |ruleset: &Ruleset, op| {
        let verdict = policy(ruleset).judge(op, &path("/a"), Kind::File, None);
        (verdict.action(), policy(ruleset).most_lenient(op))
    };
    for op in [Op::Move, Op::Copy] {
        assert_eq!(judge(&ruleset, op).0, Action::Allow);
    }
    ruleset.moves = section(Action::Ask, Vec::new());
    ruleset.copy = section(Action::Deny, Vec::new());
    assert_eq!(judge(&ruleset, Op::Move).0, Action::Ask);
    assert_eq!(judge(&ruleset, Op::Copy).0, Action::Deny);
}

#[test]
fn the_strongest_spelling_counts() {
    let ruleset = Ruleset {
        read: section(Action::Allow, vec![rule("/real/**", Action::Deny)]),
        ..Ruleset::default()
    };
    let (link, real) = (path("/link"), path("/real/x"));
    let policy = policy(&ruleset);
    for spellings in [[&link, &real], [&real, &link]] {
        let [one, two] = spellings.map(|path| policy.judge(Op::Read, path, Kind::File, None));
        assert_eq!(one.and_all(two).action(), Action::Deny);
    }
    let text = policy.explain(Op::Read, &real);
    assert!(text.contains("rule 1 of read ('/real/**'): why"), "{text}");
}

#[test]
fn equal_layers_have_equal_ids() {
    let ruleset = Ruleset {
        execute: Some(CommandRules::default()),
        ..Ruleset::default()
    };
    assert_eq!(policy(&ruleset).id(), policy(&ruleset).id());
    assert_ne!(policy(&ruleset).id(), policy(&Ruleset::default()).id());
    assert_ne!(policy(&ruleset).id(), Policy::allow_all().id());
    let tools = ToolSettings::default().with(Tool::Ls, ToolSetting::pre_approved());
    let with_tools = Policy::builder().tools(tools).build();
    assert_ne!(with_tools.id(), Policy::allow_all().id());
}

#[cfg(feature = "shell")]
#[test]
fn paths_in_a_command_are_judged() {
    let policy = policy(&crate::Preset::Permissive.ruleset());
    let root = path("/project");
    for (line, expected) in [
        ("cat notes.txt", Action::Allow),
        ("cat .env", Action::Deny),
        ("cat /project/../project/.env", Action::Deny),
        ("cat .e*", Action::Deny),
        ("cat *.pem", Action::Deny),
        ("cat */*.key", Action::Deny),
        ("cat my-sec*", Action::Allow),
        ("cat sec*", Action::Deny),
        ("cat *.rs", Action::Allow),
        ("cat *", Action::Allow),
        ("echo x > /etc/hosts", Action::Deny),
        ("cp a /etc/a", Action::Deny),
        ("cat < /root/.ssh/id", Action::Deny),
        ("some-tool --key=/root/.ssh/id", Action::Deny),
        // A path that may not be written may not even be named, except to run it.
        ("cat /etc/hosts", Action::Deny),
        ("sort -o /etc/hosts x", Action::Deny),
        ("/usr/bin/python3 --version", Action::Allow),
    ] {
        let judged = policy.judge_command(CommandContext::new(line, &root));
        assert_eq!(
            judged.verdict.action(),
            expected,
            "{line}: {}",
            judged.verdict
        );
    }
    let judged = policy.judge_command(CommandContext::new("cat .env", &root));
    let why = &judged.verdict.decisive().reason;
    let crate::Reason::Refused(refusal) = why else {
        unreachable!("{why:?}");
    };
    assert!(matches!(&**refusal, crate::Refusal::CommandPath { path, .. } if path == ".env"));
}

#[cfg(feature = "shell")]
#[test]
fn an_ask_about_a_path_is_an_ask_about_the_command() {
    let ruleset = Ruleset {
        default: Action::Allow,
        read: section(Action::Allow, vec![rule("/ask/**", Action::Ask)]),
        execute: Some(CommandRules::default()),
        ..Ruleset::default()
    };
    let judged = policy(&ruleset).judge_command(CommandContext::new("cat /ask/x", &VPath::root()));
    assert_eq!(judged.verdict.action(), Action::Ask);
    let asks: Vec<_> = judged
        .parts
        .iter()
        .filter(|(_, verdict)| verdict.action() == Action::Ask)
        .map(|(access, _)| access.to_string())
        .collect();
    assert_eq!(asks, ["read /ask/x"]);
}
