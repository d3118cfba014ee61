//! Tests of approvers: callbacks, modes, none at all, and timeouts.
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures::FutureExt as _;
use permissions::approval::limits::BLOCKED_THREADS;
use permissions::approval::{
    Answer, ApprovalService, ApproveAll, Approver, ApproverError, ApproverMode, Grants,
    Interactive, Question, Strict, Unavailable, WithTimeout,
};
use permissions::{Op, Refusal};

use crate::support::asked::at;

fn write() -> Question {
    Question::new("s", vec![at(Op::Write, "/a")])
}

async fn refused(approver: impl Approver, question: Question) -> Refusal {
    ApprovalService::new(Arc::new(approver), Grants::new())
        .authorize(question)
        .await
        .unwrap_err()
}

#[tokio::test]
async fn approve_all_says_yes_and_remembers_nothing() {
    let service = ApprovalService::new(Arc::new(ApproveAll), Grants::new());
    let permit = service.authorize(write()).await.unwrap();
    assert_eq!(permit.note(), None);
    assert!(service.grants().is_empty());
}

#[tokio::test]
async fn strict_says_no_and_names_the_tool() {
    let text = refused(Strict, write().tool("write_file"))
        .await
        .to_string();
    assert_eq!(
        text,
        "write /a was not approved: Strict mode: write_file requires approval"
    );
    let text = refused(Strict, write()).await.to_string();
    assert!(
        text.ends_with("Strict mode: write requires approval"),
        "{text}"
    );
}

#[tokio::test]
async fn nobody_is_a_no_or_an_error_as_configured() {
    let deny = refused(Unavailable::Deny, write()).await;
    assert!(matches!(deny, Refusal::Declined { .. }));
    assert!(deny.to_string().contains("approval required"), "{deny}");
    let error = refused(Unavailable::Error, write()).await;
    assert!(matches!(error, Refusal::ApprovalRequired { .. }));
    assert_eq!(
        error.to_string(),
        "write /a needs approval, and no approver is available; set one, or allow it in \
         the rules"
    );
}

#[tokio::test]
async fn an_interactive_callback_gets_the_question_and_its_errors_come_through() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let approver = Interactive::new(move |question: Question| {
        seen.lock().unwrap().push(question.to_string());
        async { Err(ApproverError::new("the terminal is gone; start it again")) }
    });
    let refusal = refused(approver, write().reason("because")).await;
    assert_eq!(
        refusal.to_string(),
        "write /a needs approval, and the terminal is gone; start it again"
    );
    assert_eq!(
        *asked.lock().unwrap(),
        ["write /a\nasks: write /a\nbecause: because"]
    );
}

#[tokio::test]
async fn a_yes_or_no_callback_is_asked_for_each_operation() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    let approver = Interactive::from_bool(move |op, target, reason| {
        seen.lock().unwrap().push(format!("{op} {target} {reason}"));
        async move { op != Op::Delete }
    });
    let service = ApprovalService::new(Arc::new(approver), Grants::new());
    let question = |ops: &[Op]| {
        let asked = ops.iter().map(|op| at(*op, "/a")).collect();
        Question::new("s", asked).reason("x").reason("y")
    };
    service
        .authorize(question(&[Op::Read, Op::Write]))
        .await
        .unwrap();
    assert_eq!(*calls.lock().unwrap(), ["read /a x; y", "write /a x; y"]);
    calls.lock().unwrap().clear();
    let no = service
        .authorize(question(&[Op::Read, Op::Delete, Op::Write]))
        .await;
    assert!(matches!(no, Err(Refusal::Declined { .. })));
    assert_eq!(calls.lock().unwrap().len(), 2, "the first no is the answer");
    let tool = Question::for_tool("s", "send_mail", serde_json::json!({}));
    let unasked = service.authorize(tool).await;
    assert!(matches!(unasked, Err(Refusal::ApprovalRequired { .. })));
    assert_eq!(calls.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_callback_that_blocks_holds_up_nobody_else() {
    // This test runs on one thread, so it would hang if the callback blocked it.
    let (open, gate) = mpsc::channel();
    let gate = Mutex::new(gate);
    let approver = Interactive::blocking(move |_| Ok(gate.lock().unwrap().recv().unwrap()));
    let service = ApprovalService::new(Arc::new(approver), Grants::new());
    let (permit, ()) = futures::join!(service.authorize(write()), async {
        open.send(Answer::yes().note("after a while")).unwrap();
    });
    assert_eq!(permit.unwrap().note(), Some("after a while"));
}

#[tokio::test]
async fn callbacks_that_block_are_counted_and_their_panics_are_no_answer() {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let started = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&started);
    let approver = Interactive::blocking(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        // Waits for the test, and panics when released.
        let _ = gate.lock().map(|gate| gate.recv());
        panic!("let go")
    });
    let service = ApprovalService::new(Arc::new(approver), Grants::new());
    let ask =
        |n: usize| service.authorize(Question::new("s", vec![at(Op::Write, &format!("/{n}"))]));
    let mut waiting: Vec<_> = (0..BLOCKED_THREADS).map(|n| Box::pin(ask(n))).collect();
    for future in &mut waiting {
        assert!(futures::poll!(future).is_pending());
    }
    // Fails at once: no thread is free.
    let refusal = ask(BLOCKED_THREADS).now_or_never().unwrap().unwrap_err();
    assert!(
        refusal.to_string().contains("have no answer yet"),
        "{refusal}"
    );
    drop(open);
    for result in futures::future::join_all(waiting).await {
        let refusal = result.unwrap_err();
        assert!(refusal.to_string().contains("panicked"), "{refusal}");
    }
    // Threads are free again.
    let refusal = ask(0).await.unwrap_err();
    assert!(refusal.to_string().contains("panicked"), "{refusal}");
    assert_eq!(started.load(Ordering::SeqCst), BLOCKED_THREADS + 1);
}

#[tokio::test]
async fn nobody_in_time_is_an_error_that_names_the_time() {
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&dropped);
    let never = Interactive::new(move |_| {
        let guard = OnDrop(Arc::clone(&flag));
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let never: Arc<dyn Approver> = Arc::new(never);
    let short = Duration::from_millis(20);
    let error = refused(WithTimeout::new(Arc::clone(&never), short), write()).await;
    assert!(matches!(error, Refusal::ApprovalRequired { .. }));
    assert_eq!(
        error.to_string(),
        "write /a needs approval, and there was no answer within 20ms; ask again"
    );
    assert!(dropped.load(Ordering::SeqCst), "the question was withdrawn");
    let deny = WithTimeout::new(never, short).fallback(Unavailable::Deny);
    assert!(matches!(
        refused(deny, write()).await,
        Refusal::Declined { .. }
    ));
}

struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn an_answer_in_time_is_the_answer_however_long_the_time() {
    for after in [Duration::ZERO, Duration::from_secs(60), Duration::MAX] {
        let approver = WithTimeout::new(ApproveAll, after);
        let service = ApprovalService::new(Arc::new(approver), Grants::new());
        service.authorize(write()).await.unwrap();
    }
}

#[tokio::test]
async fn the_mode_outranks_a_callback() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let callback: Arc<dyn Approver> = Arc::new(Interactive::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(Answer::yes().note("by hand")) }
    }));
    for (word, text) in [
        ("interactive", "by hand"),
        ("approve_all", ""),
        (
            "strict",
            "write /a was not approved: Strict mode: write requires approval",
        ),
        ("deny", "approval required"),
        ("error", "needs approval, and no approver is available"),
    ] {
        let mode: ApproverMode = serde_json::from_value(word.into()).unwrap();
        let approver = mode.approver(Some(Arc::clone(&callback)));
        let service = ApprovalService::new(approver, Grants::new());
        let said = match service.authorize(write()).await {
            Ok(permit) => permit.note().unwrap_or_default().to_owned(),
            Err(refusal) => refusal.to_string(),
        };
        assert!(said.contains(text), "{word}: {said}");
        assert_eq!(said.is_empty(), text.is_empty(), "{word}: {said}");
        assert_eq!(serde_json::to_value(mode).unwrap(), word);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1, "only interactive asks");
    // Without a callback to ask, it does not hang.
    let service = ApprovalService::new(ApproverMode::Interactive.approver(None), Grants::new());
    let error = service.authorize(write()).await.unwrap_err();
    assert!(matches!(error, Refusal::ApprovalRequired { .. }));
    for word in ["always", "", "Strict"] {
        assert!(serde_json::from_value::<ApproverMode>(word.into()).is_err());
    }
}
