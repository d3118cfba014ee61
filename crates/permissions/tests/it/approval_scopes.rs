//! Tests that no grant covers more than was agreed to.
use backend_testkit::path;
use permissions::approval::{Answer, Asked, Grants, Question, Remember};
use permissions::{Op, Target};
use proptest::prelude::*;

use crate::support::asked::{at, run};

/// Generates paths from a small set, so that scopes and targets overlap often.
fn any_path() -> impl Strategy<Value = String> {
    "(/[ab]{1,2}){1,3}"
}

fn any_line() -> impl Strategy<Value = String> {
    "(ls|git log)( -[ab]|; rm| && x|\n|\\$\\(x\\)){0,2}"
}

fn any_asked() -> impl Strategy<Value = Asked> {
    let op = || prop::sample::select(vec![Op::Read, Op::Write, Op::Delete, Op::Execute]);
    let asked = prop_oneof![
        (op(), any_path()).prop_map(|(op, text)| at(op, &text)),
        (op(), any_line()).prop_map(|(op, line)| Asked::new(op, Target::Command(line))),
    ];
    (asked, any::<bool>()).prop_map(|(asked, by_rule)| asked.by_rule(by_rule))
}

fn any_probe() -> impl Strategy<Value = Asked> {
    prop_oneof![any_asked(), any_line().prop_map(|line| run(&line))]
}

/// Generates mostly single questions, as in most calls.
fn any_given() -> impl Strategy<Value = Vec<Asked>> {
    prop_oneof![
        2 => any_asked().prop_map(|asked| vec![asked]),
        2 => any_line().prop_map(|line| vec![run(&line)]),
        1 => prop::collection::vec(any_asked(), 0..3),
    ]
}

fn any_remember() -> impl Strategy<Value = Remember> {
    prop_oneof![
        1 => Just(Remember::No),
        1 => Just(Remember::Call),
        1 => Just(Remember::Path),
        1 => any_path().prop_map(|text| Remember::Prefix(path(&text))),
        4 => prop_oneof![
            1 => any_path().prop_map(|text| format!("{text}/**")),
            1 => any_path(),
            1 => Just("/**".to_owned()),
            3 => Just("ls *".to_owned()),
            1 => Just("git log *".to_owned()),
            1 => any_line(),
        ]
        .prop_map(Remember::Pattern),
        1 => Just(Remember::Session),
    ]
}

/// Whether a scope may cover `asked` at all, written independently of the
/// implementation.
fn in_scope(remember: &Remember, given: &[Asked], asked: &Asked) -> bool {
    let same_op = given
        .iter()
        .any(|given| given.op == asked.op && (given.by_rule || !asked.by_rule));
    let beneath = |directory: &str, text: &str| {
        let directory: Vec<_> = directory.split('/').collect();
        text.split('/').collect::<Vec<_>>().starts_with(&directory)
    };
    match (remember, &asked.target) {
        (Remember::No | Remember::Call, _) => false,
        (Remember::Path, _) => given
            .iter()
            .any(|given| given.op == asked.op && given.target == asked.target),
        (Remember::Prefix(prefix), Target::Path(path)) => {
            same_op && beneath(prefix.as_str(), path.as_str())
        }
        (Remember::Pattern(pattern), Target::Path(path)) => {
            let directory = pattern.strip_suffix("/**").unwrap_or(pattern);
            same_op && beneath(directory, path.as_str())
        }
        (Remember::Pattern(pattern), Target::Command(line)) => {
            let words = pattern.strip_suffix(" *");
            let one = |line: &str| !line.contains([';', '&', '$', '\n']);
            same_op
                && match words {
                    Some(words) => line.starts_with(words) && one(line),
                    None => line == pattern,
                }
        }
        (Remember::Session, _) => same_op,
        _ => false,
    }
}

proptest! {
    #[test]
    fn nothing_is_covered_outside_the_recorded_scope(
        given in any_given(),
        remember in any_remember(),
        probes in prop::collection::vec(any_probe(), 1..20),
        session in "[st]",
    ) {
        let grants = Grants::new();
        let answer = Answer::yes().remember(remember.clone());
        let _ = grants.record(&Question::new("s", given.clone()), &answer);
        let loaded = Grants::from_json(&grants.to_json()).unwrap();
        for asked in probes.iter().chain(&given) {
            let covered = grants.covers(&session, asked);
            prop_assert_eq!(covered, loaded.covers(&session, asked));
            if covered {
                prop_assert_eq!(&session, "s");
                prop_assert!(in_scope(&remember, &given, asked), "{:?} {:?} {}", remember, given, asked);
            }
        }
        // The questions themselves are covered, if more than a single call was
        // remembered.
        if !grants.is_empty() && remember != Remember::Call {
            for asked in &given {
                prop_assert!(grants.covers("s", asked));
            }
        }
    }

    #[test]
    fn any_pattern_is_taken_or_refused(pattern in any::<String>(), line in any::<String>()) {
        let grants = Grants::new();
        for asked in [run(&line), at(Op::Read, "/a/b")] {
            let answer = Answer::yes().remember(Remember::Pattern(pattern.clone()));
            let _ = grants.record(&Question::new("s", vec![asked]), &answer);
        }
        let _ = grants.covers("s", &run("rm x"));
    }
}
