//! Tests of audit events and logs of decisions.
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::VPath;
use permissions::approval::{
    Answer, ApprovalService, ApproveAll, Asked, Grants, Question, Remember,
};
use permissions::audit::{
    Audit, AuditEvent, AuditLog, AuditRecord, DecidedBy, Outcome, RECORD_TEXT_BYTES,
};
use permissions::{Access, Action, Layer, Op, Reason, Target, Verdict, Vote};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

fn access() -> Access {
    Access::file(Op::Write, VPath::parse("/a\n").unwrap())
}

fn verdict(action: Action) -> Verdict {
    Vote::new(Layer::Rules, action, Reason::Default(Op::Write)).into()
}

/// Collects events up to a level, one line each.
struct Lines(Level, Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.0 && metadata.target() == "permissions"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.1.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

fn traced(level: Level, run: impl FnOnce()) -> Vec<String> {
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    tracing::subscriber::with_default(Lines(level, Arc::clone(&lines)), run);
    let lines = lines.lock().unwrap();
    lines.clone()
}

#[test]
fn each_outcome_has_its_level_and_fields() {
    let access = access();
    let lines = traced(Level::DEBUG, || {
        for (action, outcome, by) in [
            (Action::Allow, Outcome::Allowed, DecidedBy::Policy),
            (Action::Ask, Outcome::Permitted, DecidedBy::Answer),
            (Action::Deny, Outcome::Refused, DecidedBy::Policy),
        ] {
            let verdict = verdict(action);
            let mut event = AuditEvent::new("s", &access, &verdict, outcome);
            event.by = by;
            Audit::default().record(&event);
        }
    });
    assert_eq!(
        lines,
        [
            r#"DEBUG message=allowed session='s' op="write" target='/a\n' outcome="allowed" by=policy layer=rules reason='rules: allow, the default of write'"#,
            r#"INFO message=permitted session='s' op="write" target='/a\n' outcome="permitted" by=answer layer=rules reason='rules: ask, the default of write'"#,
            r#"WARN message=refused session='s' op="write" target='/a\n' outcome="refused" by=policy layer=rules reason='rules: deny, the default of write'"#,
        ]
    );
}

#[test]
fn hostile_text_reaches_a_log_quoted_and_cut() {
    let access = Access::command(format!("ls \u{1b}[2J{}", "x".repeat(100_000)));
    let verdict = verdict(Action::Deny);
    let lines = traced(Level::DEBUG, || {
        let mut event = AuditEvent::new("s\n", &access, &verdict, Outcome::Refused);
        (event.tool, event.note) = (Some("t\n"), Some("n\n"));
        event.waited = Some(Duration::from_millis(5));
        Audit::default().record(&event);
    });
    assert!(
        lines[0].len() < 1_000 && !lines[0].contains(['\n', '\u{1b}']),
        "{lines:?}"
    );
    assert!(
        lines[0].contains(r"tool='t\n'") && lines[0].contains("waited=5ms"),
        "{lines:?}"
    );
}

#[test]
fn it_listens_to_what_somebody_wants_to_hear() {
    let outcomes = [Outcome::Allowed, Outcome::Permitted, Outcome::Refused];
    let heard = |audit: &Audit| outcomes.map(|outcome| audit.listens_to(outcome));
    let audit = Audit::default();
    assert_eq!(heard(&audit), [false; 3]);
    for (level, expected) in [
        (Level::ERROR, [false, false, false]),
        (Level::WARN, [false, false, true]),
        (Level::INFO, [false, true, true]),
        (Level::DEBUG, [true, true, true]),
    ] {
        traced(level, || {
            assert_eq!(heard(&audit), expected, "{level}");
        });
    }
    assert_eq!(
        heard(&Audit::new(|_| {})),
        [true; 3],
        "a callback hears all"
    );
}

#[test]
fn a_callback_that_panics_takes_nothing_down() {
    let (access, verdict) = (access(), verdict(Action::Allow));
    let heard = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&heard);
    let audit = Audit::new(|_| panic!("on purpose")).and(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let lines = traced(Level::ERROR, || {
        audit.record(&AuditEvent::new("s", &access, &verdict, Outcome::Allowed));
    });
    assert_eq!(heard.load(Ordering::SeqCst), 1);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("an audit callback panicked"), "{lines:?}");
}

#[tokio::test]
async fn an_event_says_what_the_permit_says() {
    let asked = Asked::new(Op::Write, Target::Path(VPath::parse("/a").unwrap()));
    let question = || Question::new("s", vec![asked.clone()]);
    let grants = Grants::new();
    let service = ApprovalService::new(Arc::new(ApproveAll), grants.clone());
    let (access, verdict) = (access(), verdict(Action::Ask));
    let event = || AuditEvent::new("s", &access, &verdict, Outcome::Permitted);

    let permit = service.authorize(question()).await.unwrap();
    let mut answered = event().permit(&permit);
    answered.waited = Some(Duration::from_secs(2));
    assert_eq!(answered.by, DecidedBy::Answer);
    assert_eq!(AuditRecord::from(&answered).waited, Some(2_000));

    let answer = Answer::yes().remember(Remember::Path);
    let id = grants.record(&question(), &answer).unwrap().unwrap();
    let permit = service.authorize(question()).await.unwrap();
    let granted = event().permit(&permit);
    assert_eq!((granted.by, granted.waited), (DecidedBy::Grant(id), None));
    assert_eq!(granted.by.to_string(), format!("grant {id}"));
}

#[test]
fn a_record_is_a_line_of_json_and_comes_back() {
    let (access, verdict) = (access(), verdict(Action::Ask));
    let mut event = AuditEvent::new("s", &access, &verdict, Outcome::Permitted);
    event.by = DecidedBy::Answer;
    (event.tool, event.note) = (Some("write_file"), Some("fine\n"));
    event.time = std::time::UNIX_EPOCH + Duration::from_millis(1_500);
    let record = AuditRecord::from(&event);
    let line = serde_json::to_string(&record).unwrap();
    assert_eq!(
        line,
        r#"{"time":1500,"session":"s","tool":"write_file","op":"write","target":"/a\n","action":"ask","layer":"rules","reason":"rules: ask, the default of write","outcome":"permitted","by":"answer","note":"fine\n","waited":null}"#
    );
    assert!(!line.contains('\n'));
    assert_eq!(serde_json::from_str::<AuditRecord>(&line).unwrap(), record);
    let long = Access::command("x".repeat(100_000));
    let event = AuditEvent::new("s", &long, &verdict, Outcome::Allowed);
    assert!(AuditRecord::from(&event).target.len() < RECORD_TEXT_BYTES + 100);
}

#[test]
fn a_log_keeps_the_last_and_counts_what_it_dropped() {
    let verdict = verdict(Action::Allow);
    let log = AuditLog::new(3);
    let audit = log.audit();
    for n in 0..5 {
        let access = Access::file(Op::Read, VPath::parse(&format!("/{n}")).unwrap());
        audit.record(&AuditEvent::new("s", &access, &verdict, Outcome::Allowed));
    }
    let targets: Vec<_> = log
        .records()
        .into_iter()
        .map(|record| record.target)
        .collect();
    assert_eq!(targets, ["/2", "/3", "/4"]);
    assert_eq!(log.dropped(), 2);
    log.clear();
    assert_eq!((log.records().len(), log.dropped()), (0, 0));
    assert_eq!(format!("{log:?}"), "AuditLog { records: 0, dropped: 0 }");
}
