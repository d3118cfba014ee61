//! Tests of grants: which answers are remembered, and for how long.
use std::sync::Arc;
use std::time::Duration;

use backend_testkit::fake::PausedClock;
use backend_testkit::path;
use permissions::approval::limits::{GRANT_TARGETS, GRANT_TEXT_BYTES, GRANTS};
use permissions::approval::{
    Answer, Asked, GrantKey, Grants, GrantsError, NotRemembered, Question, Remember,
};
use permissions::{Op, Target};

use crate::support::asked::{at, run};

fn paused() -> (PausedClock, Grants) {
    let clock = PausedClock::new();
    let shown = clock.clone();
    (clock, Grants::with_clock(Arc::new(move || shown.now())))
}

fn grant(grants: &Grants, asked: &[Asked], remember: Remember) {
    grants
        .record(
            &Question::new("s", asked.to_vec()),
            &Answer::yes().remember(remember),
        )
        .unwrap()
        .unwrap();
}

#[test]
fn no_remembers_nothing() {
    let grants = Grants::new();
    let question = Question::new("s", vec![at(Op::Write, "/a")]);
    assert_eq!(grants.record(&question, &Answer::yes()), Ok(None));
    assert!(grants.is_empty());
}

#[test]
fn path_is_the_same_operation_on_the_same_path() {
    let grants = Grants::new();
    grant(
        &grants,
        &[at(Op::Read, "/a"), at(Op::Write, "/b")],
        Remember::Path,
    );
    assert!(grants.covers("s", &at(Op::Read, "/a")) && grants.covers("s", &at(Op::Write, "/b")));
    assert!(grants.covers("s", &at(Op::Read, "/x/..//a")), "folded");
    for other in [
        at(Op::Write, "/a"),
        at(Op::Read, "/b"),
        at(Op::Edit, "/b"),
        at(Op::Write, "/b/c"),
        at(Op::Write, "/B"),
    ] {
        assert!(!grants.covers("s", &other), "{other}");
    }
    assert!(!grants.covers("t", &at(Op::Read, "/a")), "another session");
}

#[test]
fn path_of_a_command_is_the_exact_line() {
    let grants = Grants::new();
    grant(&grants, &[run("make test")], Remember::Path);
    assert!(grants.covers("s", &run("make test")));
    for line in [
        "make  test",
        "make test ",
        "make test; rm x",
        "make",
        "make test\n",
    ] {
        assert!(!grants.covers("s", &run(line)), "{line:?}");
    }
}

#[test]
fn prefix_is_a_directory_and_what_lies_beneath() {
    let grants = Grants::new();
    grant(
        &grants,
        &[at(Op::Write, "/w/ok/a")],
        Remember::Prefix(path("/w/ok")),
    );
    for beneath in ["/w/ok", "/w/ok/b", "/w/ok/c/d"] {
        assert!(grants.covers("s", &at(Op::Write, beneath)), "{beneath}");
        assert!(!grants.covers("s", &at(Op::Read, beneath)), "{beneath}");
    }
    for other in ["/w/ok-evil", "/w/OK/a", "/w", "/w/ok/../x"] {
        assert!(!grants.covers("s", &at(Op::Write, other)), "{other}");
    }
}

#[test]
fn pattern_is_what_it_matches() {
    let grants = Grants::new();
    grant(
        &grants,
        &[at(Op::Edit, "/src/a.rs")],
        Remember::Pattern("/src/**/*.rs".into()),
    );
    grant(
        &grants,
        &[run("git log -3")],
        Remember::Pattern("git log *".into()),
    );
    assert!(grants.covers("s", &at(Op::Edit, "/src/b/c.rs")));
    assert!(!grants.covers("s", &at(Op::Edit, "/src/b/c.toml")));
    assert!(!grants.covers("s", &at(Op::Write, "/src/b/c.rs")));
    assert!(grants.covers("s", &run("git log --oneline")));
    assert!(!grants.covers("s", &run("git log; rm x")));
    assert!(!grants.covers("s", &run("git logx")));
    // A pattern for paths does not match commands, and vice versa.
    let mixed = Asked::new(Op::Edit, Target::Command("/src/a.rs".into()));
    assert!(!grants.covers("s", &mixed));
    let mixed = Asked::new(Op::Execute, Target::Path(path("/git log -3")));
    assert!(!grants.covers("s", &mixed));
}

#[test]
fn session_is_the_operation_on_anything() {
    let grants = Grants::new();
    grant(&grants, &[at(Op::Write, "/a")], Remember::Session);
    assert!(grants.covers("s", &at(Op::Write, "/any/where")));
    assert!(!grants.covers("s", &at(Op::Delete, "/a")));
    assert!(!grants.covers("s2", &at(Op::Write, "/a")));
}

#[test]
fn an_answer_to_a_default_leaves_the_questions_of_rules() {
    let scopes = [
        (Remember::Path, true),
        (Remember::Prefix(path("/w")), false),
        (Remember::Pattern("/w/**".into()), false),
        (Remember::Session, false),
    ];
    for (remember, covers_rules) in scopes {
        let (by_default, by_rule) = (at(Op::Write, "/w/a"), at(Op::Write, "/w/a").by_rule(true));
        let grants = Grants::new();
        grant(&grants, std::slice::from_ref(&by_default), remember.clone());
        let loaded = Grants::from_json(&grants.to_json()).unwrap();
        for grants in [grants, loaded] {
            assert!(grants.covers("s", &by_default), "{remember:?}");
            assert_eq!(grants.covers("s", &by_rule), covers_rules, "{remember:?}");
        }

        // An answer to a rule's question covers both, but no other operation's rules.
        let grants = Grants::new();
        let asked = [by_rule.clone(), at(Op::Edit, "/w/a")];
        grant(&grants, &asked, remember.clone());
        let loaded = Grants::from_json(&grants.to_json()).unwrap();
        for grants in [grants, loaded] {
            for covered in [&by_default, &by_rule, &asked[1]] {
                assert!(grants.covers("s", covered), "{remember:?} {covered}");
            }
            let edit = at(Op::Edit, "/w/a").by_rule(true);
            assert_eq!(grants.covers("s", &edit), covers_rules, "{remember:?}");
        }

        // A no is for both.
        let grants = Grants::new();
        let question = Question::new("s", vec![by_default]);
        let answer = Answer::no().remember(remember.clone());
        grants.record(&question, &answer).unwrap().unwrap();
        let denial = grants.lookup("s", &by_rule);
        assert!(denial.is_some_and(|no| !no.approved), "{remember:?}");
    }
}

#[test]
fn call_is_no_more_than_the_call() {
    let grants = Grants::new();
    grant(&grants, &[at(Op::Write, "/a")], Remember::Call);
    assert!(
        !grants.covers("s", &at(Op::Write, "/a")),
        "not known to be that call"
    );
    assert!(matches!(grants.list()[0].key, GrantKey::Call { .. }));
}

#[test]
fn a_scope_that_does_not_cover_what_was_asked_is_not_remembered() {
    let grants = Grants::new();
    let long = "x".repeat(GRANT_TEXT_BYTES + 1);
    let two = vec![at(Op::Write, "/a/x"), at(Op::Write, "/b/x")];
    let mixed = vec![run("ls"), at(Op::Read, "/a/x")];
    let many: Vec<_> = (0..=GRANT_TARGETS)
        .map(|n| at(Op::Read, &format!("/{n}")))
        .collect();
    for (asked, remember, why) in [
        (&two, Remember::Prefix(path("/a")), "does not cover"),
        (&two, Remember::Prefix(path("/c")), "does not cover"),
        (&mixed, Remember::Prefix(path("/")), "does not cover"),
        (&two, Remember::Pattern("/a/*".into()), "does not cover"),
        (&mixed, Remember::Pattern("ls *".into()), "does not cover"),
        (&mixed, Remember::Pattern("**".into()), "does not cover"),
        (
            &vec![run("rm x")],
            Remember::Pattern("*".into()),
            "does not cover",
        ),
        (&two, Remember::Pattern("[".into()), "["),
        (&two, Remember::Pattern("~/x".into()), "not expanded"),
        (&two, Remember::Pattern("/../x".into()), ".."),
        (&two, Remember::Pattern(long.clone()), "not remembered"),
        (&vec![run(&long)], Remember::Path, "not remembered"),
        (&many, Remember::Path, "targets"),
        (&vec![], Remember::Session, "no operation"),
        (&vec![], Remember::Path, "no operation"),
        (&vec![], Remember::Prefix(path("/")), "no operation"),
    ] {
        let answer = Answer::yes().remember(remember.clone());
        let error = grants
            .record(&Question::new("s", asked.clone()), &answer)
            .unwrap_err();
        assert!(error.to_string().contains(why), "{remember:?}: {error}");
        assert!(grants.is_empty());
    }
    let question = Question::new("s", two);
    let answer = Answer::yes().remember(Remember::Prefix(path("/c")));
    assert_eq!(
        grants.record(&question, &answer),
        Err(NotRemembered::TooNarrow)
    );
}

#[test]
fn grants_end_when_they_are_told_to() {
    let (clock, grants) = paused();
    let asked = at(Op::Write, "/a");
    let question = Question::new("s", vec![asked.clone()]);
    let answer = Answer::yes()
        .remember(Remember::Path)
        .expires_in(Duration::from_secs(60));
    grants.record(&question, &answer).unwrap().unwrap();
    clock.advance(Duration::from_millis(59_999));
    assert!(grants.covers("s", &asked));
    clock.advance(Duration::from_millis(1));
    assert!(!grants.covers("s", &asked));
    assert!(grants.list().is_empty() && grants.len() == 1);
    assert_eq!((grants.expire(), grants.len()), (1, 0));

    let none = answer.clone().expires_in(Duration::ZERO);
    assert_eq!(grants.record(&question, &none), Ok(None));
    grants
        .record(&question, &answer.clone().expires_in(Duration::MAX))
        .unwrap()
        .unwrap();
    clock.advance(Duration::from_secs(1_000_000_000));
    assert!(grants.covers("s", &asked));
}

#[test]
fn a_clock_that_is_set_back_prolongs_nothing() {
    let (clock, grants) = paused();
    let asked = at(Op::Write, "/a");
    let begun = clock.now();
    clock.advance(Duration::from_secs(1_000));
    let answer = Answer::yes()
        .remember(Remember::Path)
        .expires_in(Duration::from_secs(60));
    grants
        .record(&Question::new("s", vec![asked.clone()]), &answer)
        .unwrap();
    clock.set(begun);
    assert!(!grants.covers("s", &asked));
}

#[test]
fn one_can_be_revoked_and_a_session_cleared() {
    let grants = Grants::new();
    grant(&grants, &[at(Op::Write, "/a")], Remember::Path);
    grant(&grants, &[at(Op::Write, "/b")], Remember::Path);
    let other = Question::new("t", vec![at(Op::Write, "/a")]);
    let answer = Answer::yes().remember(Remember::Path);
    grants.record(&other, &answer).unwrap();

    let list = grants.list();
    assert_eq!(list.len(), 3);
    assert_eq!(list[0].what, "write /a");
    assert!(grants.revoke(list[0].id) && !grants.revoke(list[0].id));
    assert!(!grants.covers("s", &at(Op::Write, "/a")) && grants.covers("s", &at(Op::Write, "/b")));
    assert_eq!(grants.clear("s"), 1);
    assert!(grants.covers("t", &at(Op::Write, "/a")));
    let clone = grants.clone();
    assert_eq!(
        (clone.clear("t"), grants.len()),
        (1, 0),
        "clones are one store"
    );
}

#[test]
fn the_same_answer_twice_is_one_grant() {
    let grants = Grants::new();
    for _ in 0..3 {
        grant(&grants, &[at(Op::Write, "/a")], Remember::Path);
    }
    assert_eq!(grants.len(), 1);
}

#[test]
fn a_no_outweighs_a_yes() {
    let grants = Grants::new();
    grant(&grants, &[at(Op::Write, "/a/x")], Remember::Session);
    let question = Question::new("s", vec![at(Op::Write, "/a/x")]);
    let answer = Answer::no().remember(Remember::Prefix(path("/a")));
    grants.record(&question, &answer).unwrap();
    assert!(!grants.covers("s", &at(Op::Write, "/a/y")));
    assert!(grants.covers("s", &at(Op::Write, "/b")));
    assert!(!grants.lookup("s", &at(Op::Write, "/a/y")).unwrap().approved);
}

#[test]
fn the_number_of_grants_is_bounded() {
    let (clock, grants) = paused();
    let no = Question::new("s", vec![at(Op::Delete, "/a")]);
    grants
        .record(&no, &Answer::no().remember(Remember::Path))
        .unwrap();
    let brief = Answer::yes()
        .remember(Remember::Path)
        .expires_in(Duration::from_secs(1));
    let question = Question::new("s", vec![at(Op::Read, "/brief")]);
    grants.record(&question, &brief).unwrap();
    for n in 0..GRANTS - 2 {
        grant(&grants, &[at(Op::Write, &format!("/{n}"))], Remember::Path);
    }
    assert_eq!(grants.len(), GRANTS);
    clock.advance(Duration::from_secs(2));
    grant(&grants, &[at(Op::Write, "/more")], Remember::Path);
    assert_eq!(grants.len(), GRANTS);
    assert!(
        grants.covers("s", &at(Op::Write, "/0")),
        "the expired one went"
    );
    grant(&grants, &[at(Op::Write, "/yet/more")], Remember::Path);
    assert_eq!(grants.len(), GRANTS);
    assert!(
        !grants.covers("s", &at(Op::Write, "/0")),
        "then the oldest yes"
    );
    assert!(
        grants.lookup("s", &at(Op::Delete, "/a")).is_some(),
        "not the no"
    );
}

#[test]
fn grants_of_another_policy_do_not_count() {
    let store = Grants::new();
    let (one, two) = (store.for_policy("1"), store.for_policy("2"));
    let asked = at(Op::Write, "/a");
    grant(&one, std::slice::from_ref(&asked), Remember::Path);
    assert!(one.covers("s", &asked));
    assert!(!two.covers("s", &asked) && !store.covers("s", &asked));
    grant(&two, std::slice::from_ref(&asked), Remember::Path);
    assert_eq!(store.len(), 2, "each has its own");
    let again = Grants::from_json(&store.to_json()).unwrap();
    assert!(again.for_policy("1").covers("s", &asked) && !again.covers("s", &asked));
}

fn of_every_kind(grants: &Grants) {
    let asked = [at(Op::Write, "/a/x")];
    grant(grants, &asked, Remember::Call);
    grant(grants, &asked, Remember::Path);
    grant(grants, &asked, Remember::Prefix(path("/a")));
    grant(grants, &asked, Remember::Pattern("/a/*".into()));
    grant(grants, &asked, Remember::Session);
    grant(grants, &[run("ls -l")], Remember::Pattern("ls *".into()));
    let answer = Answer::yes()
        .note("why not")
        .remember(Remember::Path)
        .expires_in(Duration::from_secs(60));
    let question = Question::new("s", vec![run("make\n\u{1b}")]);
    grants.record(&question, &answer).unwrap();
}

#[test]
fn grants_can_be_saved_and_loaded() {
    let (clock, grants) = paused();
    of_every_kind(&grants);
    let saved = grants.to_json();
    let (_, loaded) = paused();
    loaded.restore(&saved).unwrap();
    assert_eq!(loaded.list(), grants.list());
    assert_eq!(loaded.to_json(), saved);
    assert!(loaded.covers("s", &run("ls")));
    grant(&loaded, &[at(Op::Read, "/new")], Remember::Path);
    let ids: std::collections::HashSet<_> = loaded.list().iter().map(|g| g.id).collect();
    assert_eq!(ids.len(), 8, "numbers are given once");
    clock.advance(Duration::from_secs(61));
    grants.restore(&saved).unwrap();
    assert_eq!(grants.len(), 6, "what has expired is not loaded");
}

#[test]
fn what_is_no_saved_store_is_rejected_and_changes_nothing() {
    let grants = Grants::new();
    of_every_kind(&grants);
    let before = grants.list();
    let good: serde_json::Value = serde_json::from_str(&grants.to_json()).unwrap();
    let change = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = good.clone();
        change(&mut value);
        grants.restore(&value.to_string()).unwrap_err()
    };
    let json = |error: &GrantsError| matches!(error, GrantsError::Json(_));
    assert!(json(&change(&|v| v["more"] = 1.into())));
    assert!(json(&change(&|v| v["grants"][0]["more"] = 1.into())));
    assert!(json(&change(&|v| v["grants"][1]["key"]["more"] = 1.into())));
    assert!(json(&change(
        &|v| v["grants"][4]["key"]["ops"][0] = "fly".into()
    )));
    assert!(json(&change(
        &|v| v["grants"][2]["key"]["scope"] = "all".into()
    )));
    assert!(json(&change(
        &|v| v["grants"][2]["key"]["prefix"] = "/../x".into()
    )));
    assert!(json(&change(
        &|v| v["grants"][0]["key"]["fingerprint"] = "xyz".into()
    )));
    assert!(json(&change(&|v| v["grants"][0]["approved"] = "no".into())));
    assert!(json(&change(
        &|v| v["grants"][1]["key"]["asked"][0]["more"] = 1.into()
    )));
    assert!(json(&change(&|v| v["grants"][0]["created"] = (-1).into())));
    assert!(matches!(
        change(&|v| v["version"] = 2.into()),
        GrantsError::Version(2)
    ));
    assert!(matches!(
        change(&|v| v["grants"][3]["key"]["pattern"] = "[".into()),
        GrantsError::Key(_, NotRemembered::Pattern(_))
    ));
    let number = |error: &GrantsError| matches!(error, GrantsError::Number(_));
    assert!(number(&change(
        &|v| v["grants"][1]["id"] = v["grants"][0]["id"].clone()
    )));
    assert!(number(&change(&|v| v["grants"][1]["id"] = u64::MAX.into())));
    assert!(number(&change(&|v| v["next"] = u64::MAX.into())));
    let many = |v: &mut serde_json::Value| {
        let one = v["grants"][0].clone();
        v["grants"] = vec![one; GRANTS + 1].into();
    };
    assert!(matches!(change(&many), GrantsError::TooMany(_)));
    for text in ["", "[]", "{}", "null", "{\"version\":1}"] {
        assert!(json(&grants.restore(text).unwrap_err()), "{text}");
    }
    assert_eq!(grants.list(), before);
}
