//! Tests of questions.

use std::time::Duration;

use super::*;
use crate::approval::limits::{ARGUMENT_BYTES, ARGUMENTS_BYTES, EFFECT_BYTES};

fn at(op: Op, path: &str) -> Asked {
    Asked::new(op, Target::Path(VPath::parse(path).unwrap()))
}

fn question() -> Question {
    Question::new("s", vec![at(Op::Write, "/a")])
}

#[test]
fn the_fingerprint_is_the_same_in_every_process() {
    let question = question()
        .tool("write_file")
        .args(json!({"path": "/a", "content": "x"}))
        .effect(Effect::write("/a", None, b"x"));
    assert_eq!(
        question.fingerprint().to_string(),
        "8fab1c899dc6e24fa53a3b2a17cfc841920c006fb979a3278e0881203deb499b",
        "a change here forgets every saved grant for a call"
    );
}

#[test]
fn the_fingerprint_is_of_what_would_happen() {
    let base = || question().tool("t").args(json!({"a": 1, "b": 2}));
    let same = |other: Question| base().fingerprint() == other.fingerprint();
    assert!(same(base()));
    assert!(same(question().tool("t").args(json!({"b": 2, "a": 1}))));
    assert!(same(base().description("other words")));
    assert!(same(base().reason("another reason")));
    assert!(same(base().redact(&["a"])), "what is shown changes nothing");

    assert!(!same(base().tool("u")));
    assert!(!same(base().args(json!({"a": 1, "b": 3}))));
    assert!(!same(base().args(json!({"a": 1, "b": "2"}))));
    assert!(!same(base().effect(Effect::delete("/a"))));
    let other = |session: &str, asked| {
        Question::new(session, asked)
            .tool("t")
            .args(json!({"a": 1, "b": 2}))
    };
    assert!(same(other("s", vec![at(Op::Write, "/x/../a")])), "folded");
    assert!(!same(other("s2", vec![at(Op::Write, "/a")])));
    assert!(!same(other("s", vec![at(Op::Edit, "/a")])));
    assert!(!same(other("s", vec![at(Op::Write, "/b")])));
    assert!(!same(other("s", vec![])));
    let command = Asked::new(Op::Write, Target::Command("/a".into()));
    assert!(!same(other("s", vec![command])));
}

#[test]
fn a_write_is_the_same_call_whatever_it_replaces_and_an_edit_is_not() {
    let write = |old: Option<&[u8]>, new: &[u8]| {
        question()
            .effect(Effect::write("/a", old, new))
            .fingerprint()
    };
    assert_eq!(write(None, b"x"), write(Some(b"y"), b"x"));
    assert_ne!(write(None, b"x"), write(None, b"y"));
    // Also if the difference is in a part that is not shown.
    let (mut one, mut two) = (vec![b'x'; 200_000], vec![b'x'; 200_000]);
    (one[100_000], two[100_000]) = (b'1', b'2');
    assert_ne!(write(None, &one), write(None, &two));

    let edit = |old: &[u8], new: &[u8]| {
        question()
            .effect(Effect::diff("/a", old, new))
            .fingerprint()
    };
    assert_ne!(edit(b"a 1", b"b 1"), edit(b"a 2", b"b 2"));
}

#[test]
fn questions_that_show_something_else_are_not_asked_as_one() {
    let base = || question().effect(Effect::write("/a", Some(b"old"), b"new"));
    let same = |other: Question| base().shown_fingerprint() == other.shown_fingerprint();
    assert!(same(base()));
    assert!(!same(question().effect(Effect::write(
        "/a",
        Some(b"older"),
        b"new"
    ))));
    let path = VPath::parse("/a").unwrap();
    assert!(!same(base().bind(path, ContentHash::of(b"old"))));
    assert!(!same(base().description("harmless")));
}

#[test]
fn the_description_is_the_effects_own_unless_another_is_given() {
    let two = Question::new("s", vec![at(Op::Read, "/a"), at(Op::Write, "/b")]);
    assert_eq!(two.description, "read /a, write /b");
    let copy = two.clone().effect(Effect::copy("/a", "/b"));
    assert_eq!(copy.description, "Copy /a to /b");
    let own = two
        .clone()
        .description("mine")
        .effect(Effect::copy("/a", "/b"));
    assert_eq!(own.description, "mine");
    assert_eq!(two.only(vec![at(Op::Write, "/b")]).description, "write /b");
    let tool = Question::for_tool("s", "t", json!({"b": [1, "x"], "a": null}));
    assert_eq!(tool.description, r#"t(a=null, b=[1,"x"])"#);
    assert_eq!(Question::for_tool("s", "t", json!(null)).description, "t()");
    assert_eq!(
        Question::for_tool("s", "t", json!([1])).description,
        "t([1])"
    );
}

#[test]
fn secrets_are_taken_out_of_what_is_shown() {
    let args = json!({"key": "hunter2", "deep": [{"key": {"x": "hunter2"}}], "to": "x"});
    let question = Question::for_tool("s", "t", args).redact(&["key"]);
    let shown = format!(
        "{question} {question:?} {}",
        serde_json::to_string(&question).unwrap()
    );
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("[redacted]") && shown.contains("to"));
}

#[test]
fn long_arguments_are_cut_but_all_of_them_count() {
    let long = |end: char| {
        let text = format!("{}{end}{}", "x".repeat(5_000), "x".repeat(5_000));
        Question::for_tool("s", "t", json!({"content": text}))
    };
    assert_ne!(long('a').fingerprint(), long('b').fingerprint());
    assert_eq!(long('a').args, long('b').args);
    assert!(long('a').args.to_string().len() < ARGUMENT_BYTES + 100);
    let many: Vec<u32> = (0..100_000).collect();
    let question = Question::for_tool("s", "t", json!(many));
    assert!(question.args.to_string().len() < ARGUMENTS_BYTES);
    assert!(question.description.contains("bytes of arguments, sha256"));
}

#[test]
fn it_reads_well_on_a_terminal_and_hostile_text_does_no_harm() {
    let hostile = "/a\nbecause: it is harmless\u{1b}[1A\u{202e}";
    let question = Question::new("s", vec![at(Op::Write, hostile)])
        .effect(Effect::delete(hostile))
        .reason("rule 1 of write ('/a\n*')");
    let shown = question.to_string();
    assert_eq!(
        shown,
        "Delete /a\\nbecause: it is harmless\\u{1b}[1A\\u{202e}\n\
         asks: write /a\\nbecause: it is harmless\\u{1b}[1A\\u{202e}\n\
         because: rule 1 of write ('/a\\n*')"
    );
    let command = Question::new(
        "s",
        vec![Asked::new(Op::Execute, Target::Command("ls".into()))],
    )
    .effect(Effect::command("ls\nrm x\r\u{1b}[2K"));
    assert_eq!(
        command.to_string(),
        "Run ls\\nrm x\\r\\u{1b}[2K\nasks: execute ls\n$ ls\n> rm x\\r\\u{1b}[2K"
    );
}

#[test]
fn it_is_bounded_however_much_is_asked() {
    let long = "x".repeat(100_000);
    let mut question = Question::new(
        "s",
        (0..5_000)
            .map(|n| at(Op::Write, &format!("/{n}")))
            .collect(),
    )
    .effect(Effect::command(&long));
    for _ in 0..5_000 {
        question = question.reason(&long);
    }
    let shown = question.to_string();
    assert!(shown.len() < EFFECT_BYTES + 50_000, "{}", shown.len());
    assert!(shown.contains("[… 4980 more …]"));
    assert!(question.what().len() < 1_200);
}

#[test]
fn it_can_be_sent_elsewhere() {
    let json = serde_json::to_value(question().tool("t").effect(Effect::command("ls"))).unwrap();
    assert_eq!(
        json,
        json!({
            "session": "s", "tool": "t", "args": null,
            "asked": [{"op": "write", "target": {"path": "/a"}}],
            "description": "Run ls", "effect": {"command": "ls"}, "reasons": [],
        })
    );
    for effect in [
        Effect::None,
        Effect::read("/a"),
        Effect::list("/a", "*"),
        Effect::diff("/a", b"a", b"b"),
        Effect::write("/a", None, b"b"),
        Effect::write("/a", Some(b"a"), b"b"),
        Effect::delete("/a"),
        Effect::rename("/a", "/b"),
        Effect::copy("/a", "/b"),
    ] {
        serde_json::to_string(&question().effect(effect)).unwrap();
    }
}

#[test]
fn a_binding_is_one_per_path() {
    let path = VPath::parse("/a").unwrap();
    let (one, two) = (ContentHash::of(b"1"), ContentHash::of(b"2"));
    let question = question().bind(path.clone(), one).bind(path.clone(), two);
    assert_eq!(question.bound(), [(path, two)]);
}

#[test]
fn an_answer_says_what_it_was_told() {
    use crate::approval::{Answer, Remember};
    let answer = Answer::no()
        .note("no")
        .remember(Remember::Call)
        .expires_in(Duration::from_secs(1));
    assert!(!answer.approved && answer.remember == Remember::Call);
    assert_eq!(answer.note.as_deref(), Some("no"));
    for (remember, json) in [
        (Remember::No, r#""no""#),
        (Remember::Call, r#""call""#),
        (
            Remember::Prefix(VPath::parse("/a/../b").unwrap()),
            r#"{"prefix":"/b"}"#,
        ),
        (Remember::Pattern("*.rs".into()), r#"{"pattern":"*.rs"}"#),
    ] {
        assert_eq!(serde_json::to_string(&remember).unwrap(), json);
        assert_eq!(serde_json::from_str::<Remember>(json).unwrap(), remember);
    }
}
