//! Tests of the approval service: its questions, how often it asks, and the permits it
//! issues.
use std::sync::{Arc, Mutex};

use backend_core::ops::ContentHash;
use backend_testkit::path;
use permissions::approval::{
    Answer, ApprovalService, Approver, ApproverError, Effect, Grants, PermitSource, Question,
    Remember,
};
use permissions::{Op, Refusal, Target};

use crate::support::asked::{at, write};

/// Gives scripted answers in order and records the questions.
#[derive(Debug, Default)]
struct Script {
    answers: Mutex<Vec<Answer>>,
    asked: Mutex<Vec<Question>>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        Arc::new(Self {
            answers: Mutex::new(answers),
            asked: Mutex::default(),
        })
    }

    fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn approval_service(self: &Arc<Self>) -> ApprovalService {
        ApprovalService::new(Arc::<Self>::clone(self), Grants::new())
    }
}

#[async_trait::async_trait]
impl Approver for Script {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        self.asked.lock().unwrap().push(question.clone());
        let answer = self.answers.lock().unwrap().pop();
        answer.ok_or_else(|| ApproverError::new("the script has ended"))
    }
}

#[tokio::test]
async fn a_yes_is_a_permit_for_what_was_asked_and_nothing_else() {
    let script = Script::new([Answer::yes().note("go on")]);
    let service = script.approval_service();
    let hash = ContentHash::of(b"old");
    let question =
        Question::new("s", vec![at(Op::Read, "/a"), at(Op::Edit, "/a")]).bind(path("/a"), hash);
    let permit = service.authorize(question.clone()).await.unwrap();
    assert!(permit.covers(Op::Read, &Target::Path(path("/a"))));
    assert!(permit.covers(Op::Edit, &Target::Path(path("/a"))));
    assert!(!permit.covers(Op::Write, &Target::Path(path("/a"))));
    assert!(!permit.covers(Op::Read, &Target::Path(path("/a/b"))));
    assert!(!permit.covers(Op::Read, &Target::Command("/a".into())));
    assert!(permit.answers(&question) && !permit.answers(&write("/a")));
    assert_eq!(permit.expects(&path("/a")), Some(hash));
    assert_eq!(permit.expects(&path("/b")), None);
    assert_eq!(permit.source(), PermitSource::Answer);
    assert_eq!(permit.note(), Some("go on"));
    assert!(permit.waited().is_some() && permit.grants().is_empty());
    assert_eq!(permit.asked(), question.asked);
}

#[tokio::test]
async fn a_no_and_nobody_are_different_refusals() {
    let script = Script::new([Answer::no().note("not today"), Answer::no().note("")]);
    let service = script.approval_service();
    let declined = service.authorize(write("/a\n")).await.unwrap_err();
    assert_eq!(
        declined.to_string(),
        r"write /a\n was not approved: not today"
    );
    assert!(matches!(declined, Refusal::Declined { .. }));
    let declined = service.authorize(write("/a")).await.unwrap_err();
    assert_eq!(
        declined.to_string(),
        "write /a was not approved",
        "an empty note is none"
    );
    let nobody = service.authorize(write("/a")).await.unwrap_err();
    assert_eq!(
        nobody.to_string(),
        "write /a needs approval, and the script has ended"
    );
    assert!(matches!(nobody, Refusal::ApprovalRequired { .. }));
}

#[tokio::test]
async fn a_yes_to_this_call_alone_is_asked_again() {
    let script = Script::new([Answer::yes(), Answer::no()]);
    let service = script.approval_service();
    service.authorize(write("/a")).await.unwrap();
    service.authorize(write("/a")).await.unwrap_err();
    assert_eq!(script.count(), 2);
    assert!(service.grants().is_empty());
}

#[tokio::test]
async fn a_remembered_call_is_asked_once_for_the_same_arguments() {
    let yes = || Answer::yes().remember(Remember::Call);
    let script = Script::new([yes(), yes(), yes(), yes()]);
    let service = script.approval_service();
    let call = |session: &str, content: &[u8], old| {
        Question::new(session, vec![at(Op::Write, "/a")])
            .tool("write_file")
            .effect(Effect::write("/a", old, content))
    };
    service.authorize(call("s", b"x", None)).await.unwrap();
    let again = service
        .authorize(call("s", b"x", Some(b"x")))
        .await
        .unwrap();
    assert_eq!(script.count(), 1, "the same call");
    assert_eq!(
        again.source(),
        PermitSource::Grant(service.grants().list()[0].id)
    );
    assert!(again.covers(Op::Write, &Target::Path(path("/a"))));
    service.authorize(call("s", b"y", None)).await.unwrap();
    service.authorize(call("t", b"x", None)).await.unwrap();
    assert_eq!(script.count(), 3, "other content, another session");
    service
        .authorize(call("s", b"x", None).tool("other"))
        .await
        .unwrap();
    assert_eq!(script.count(), 4, "another tool");
}

#[tokio::test]
async fn only_what_is_not_granted_is_asked() {
    let script = Script::new([
        Answer::yes().remember(Remember::Path),
        Answer::yes().remember(Remember::Call),
    ]);
    let service = script.approval_service();
    service
        .authorize(Question::new("s", vec![at(Op::Read, "/a")]))
        .await
        .unwrap();
    let copy = || Question::new("s", vec![at(Op::Read, "/a"), at(Op::Write, "/b")]);
    let permit = service.authorize(copy()).await.unwrap();
    let second = script.asked.lock().unwrap()[1].clone();
    assert_eq!(second.asked, [at(Op::Write, "/b")]);
    assert_eq!(second.description, "write /b");
    assert!(
        permit.covers(Op::Read, &Target::Path(path("/a"))),
        "the whole call"
    );
    assert_eq!(permit.source(), PermitSource::Answer);
    let first = service.grants().list()[0].id;
    assert_eq!(permit.grants(), [first]);
    // Both grants together cover it now. Neither does alone.
    service.authorize(copy()).await.unwrap();
    assert_eq!(script.count(), 2);
    service.grants().revoke(first);
    service.authorize(copy()).await.unwrap_err();
    assert_eq!(script.asked.lock().unwrap()[2].asked, [at(Op::Read, "/a")]);
}

#[tokio::test]
async fn a_call_of_no_known_operation_is_asked_and_can_be_remembered() {
    let script = Script::new([
        Answer::yes().remember(Remember::Session),
        Answer::yes().remember(Remember::Call),
    ]);
    let service = script.approval_service();
    let call = |to: &str| Question::for_tool("s", "send_mail", serde_json::json!({"to": to}));
    let permit = service.authorize(call("a")).await.unwrap();
    assert_eq!(script.count(), 1, "nothing asked is not everything granted");
    assert_eq!(
        permit.note(),
        Some("(not remembered: the question names no operation; remember the call itself)")
    );
    service.authorize(call("a")).await.unwrap();
    service.authorize(call("a")).await.unwrap();
    assert_eq!(script.count(), 2);
    service.authorize(call("b")).await.unwrap_err();
    assert_eq!(script.count(), 3);
}

#[tokio::test]
async fn a_scope_that_covers_something_else_holds_for_this_call_only() {
    let wrong = Answer::yes()
        .note("fine")
        .remember(Remember::Prefix(path("/elsewhere")));
    let script = Script::new([wrong.clone(), wrong]);
    let service = script.approval_service();
    let permit = service.authorize(write("/a")).await.unwrap();
    assert!(
        permit
            .note()
            .unwrap()
            .starts_with("fine (not remembered: the scope does not cover"),
        "{:?}",
        permit.note()
    );
    service.authorize(write("/a")).await.unwrap();
    assert_eq!(script.count(), 2);
}

#[tokio::test]
async fn a_no_is_asked_again_unless_the_service_remembers_it() {
    let no = || Answer::no().note("never").remember(Remember::Path);
    let script = Script::new([no(), no(), Answer::yes()]);
    let service = script.approval_service();
    service.authorize(write("/a")).await.unwrap_err();
    assert!(service.grants().is_empty());
    let stubborn = service.remember_denials(true);
    stubborn.authorize(write("/a")).await.unwrap_err();
    let refusal = stubborn.authorize(write("/a")).await.unwrap_err();
    assert_eq!(refusal.to_string(), "write /a was not approved: never");
    assert_eq!(script.count(), 2);
    // An approval service that does not remember denials asks, although the store
    // contains one.
    let lenient = stubborn.clone().remember_denials(false);
    lenient.authorize(write("/a")).await.unwrap();
    assert_eq!(script.count(), 3);
}

#[tokio::test]
async fn a_remembered_no_keeps_a_wider_yes_from_sparing_the_question() {
    let script = Script::new([]);
    let service = script.approval_service();
    let question = write("/a/x");
    let yes = Answer::yes().remember(Remember::Session);
    let no = Answer::no().remember(Remember::Prefix(path("/a")));
    service.grants().record(&question, &yes).unwrap();
    service.grants().record(&question, &no).unwrap();
    service.authorize(write("/b")).await.unwrap();
    let asked = service.authorize(write("/a/y")).await.unwrap_err();
    assert!(matches!(asked, Refusal::ApprovalRequired { .. }));
    let declined = service
        .remember_denials(true)
        .authorize(write("/a/y"))
        .await;
    assert!(matches!(declined, Err(Refusal::Declined { .. })));
}

#[tokio::test]
async fn grants_of_the_old_rules_are_asked_again_under_new_ones() {
    let yes = || Answer::yes().remember(Remember::Session);
    let script = Script::new([yes(), yes()]);
    let service = script.approval_service().policy_id("rules-1");
    service.authorize(write("/a")).await.unwrap();
    service.authorize(write("/b")).await.unwrap();
    assert_eq!(script.count(), 1);
    let newer = service.clone().policy_id("rules-2");
    newer.authorize(write("/a")).await.unwrap();
    assert_eq!(script.count(), 2);
    assert_eq!(service.grants().list().len(), 2);
}

#[tokio::test]
async fn a_question_says_how_much_it_does_not_show() {
    let long: String = (0..5_000).map(|n| format!("line {n}\n")).collect();
    for (effect, lines) in [
        (Effect::write("/a", None, long.as_bytes()), 1_500..4_000),
        (Effect::diff("/a", b"x\n", long.as_bytes()), 1_500..4_000),
        (Effect::command(&long), 1_500..4_000),
        // A file that cannot be shown at all.
        (Effect::write("/a", None, b"a\nb\n\0"), 2..3),
    ] {
        let unseen = effect.unseen().unwrap();
        assert!(lines.contains(&unseen.lines), "{unseen:?}");
        let text = write("/a").effect(effect).to_string();
        let last = text.lines().last().unwrap();
        let said = format!(
            "{} more lines are not shown; a yes counts for all of it",
            unseen.lines
        );
        assert_eq!(last, said);
    }
    for whole in [
        Effect::write("/a", None, b"a\n"),
        Effect::diff("/a", b"a", b"b"),
        Effect::command("ls"),
        Effect::delete("/a"),
    ] {
        assert_eq!(whole.unseen(), None);
        assert!(!write("/a").effect(whole).to_string().contains("not shown"));
    }
}

#[tokio::test]
async fn a_service_can_insist_on_showing_everything() {
    let long: String = (0..5_000).map(|n| format!("line {n}\n")).collect();
    let script = Script::new([Answer::yes(), Answer::yes()]);
    let question = || write("/a").effect(Effect::write("/a", None, long.as_bytes()));
    let service = script.approval_service().refuse_truncated(true);
    let refusal = service.authorize(question()).await.unwrap_err();
    assert!(matches!(refusal, Refusal::Declined { .. }), "{refusal:?}");
    assert!(refusal.to_string().contains("do it in parts"), "{refusal}");
    assert_eq!(script.count(), 0, "nobody is asked");
    let short = write("/a").effect(Effect::write("/a", None, b"a\n"));
    assert!(service.authorize(short).await.is_ok());
    assert!(
        script
            .approval_service()
            .authorize(question())
            .await
            .is_ok()
    );
    assert_eq!(script.count(), 2);
}
