//! Tests of questions that are concurrent, withdrawn, or fail.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use backend_core::ops::ContentHash;
use backend_testkit::path;
use futures::channel::oneshot;
use futures::future::{FutureExt as _, join_all, poll_fn};
use permissions::approval::{
    Answer, ApprovalService, ApproverError, Effect, Grants, Interactive, Question, Remember,
};
use permissions::{Op, Refusal};

use crate::support::asked::{at, write};

/// An approver that answers when the test tells it to.
struct ManualApprover {
    waiting: Arc<Mutex<Vec<oneshot::Sender<Answer>>>>,
    withdrawn: Arc<AtomicUsize>,
    service: ApprovalService,
}

impl ManualApprover {
    fn new() -> Self {
        let waiting: Arc<Mutex<Vec<oneshot::Sender<Answer>>>> = Arc::default();
        let withdrawn = Arc::new(AtomicUsize::new(0));
        let (theirs, count) = (Arc::clone(&waiting), Arc::clone(&withdrawn));
        let approver = Interactive::new(move |_| {
            let (send, answer) = oneshot::channel();
            theirs.lock().unwrap().push(send);
            let mut counter = WithdrawnCounter(Arc::clone(&count), true);
            async move {
                let answer = answer.await;
                counter.disarm();
                answer.map_err(|_| ApproverError::new("the question was withdrawn"))
            }
        });
        let service = ApprovalService::new(Arc::new(approver), Grants::new());
        Self {
            waiting,
            withdrawn,
            service,
        }
    }

    fn asked(&self) -> usize {
        self.waiting.lock().unwrap().len()
    }

    fn withdrawn(&self) -> usize {
        self.withdrawn.load(Ordering::SeqCst)
    }

    fn answer(&self, answer: Answer) {
        let sender = self.waiting.lock().unwrap().remove(0);
        sender.send(answer).unwrap();
    }
}

struct WithdrawnCounter(Arc<AtomicUsize>, bool);

impl WithdrawnCounter {
    fn disarm(&mut self) {
        self.1 = false;
    }
}

impl Drop for WithdrawnCounter {
    fn drop(&mut self) {
        self.0.fetch_add(usize::from(self.1), Ordering::SeqCst);
    }
}

/// Polls a future once.
async fn begin<T>(future: &mut (impl Future<Output = T> + Unpin)) {
    poll_fn(|context| {
        assert!(future.poll_unpin(context).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn what_is_revoked_while_somebody_thinks_is_asked_too() {
    let manual = ManualApprover::new();
    let service = &manual.service;
    let read = Question::new("s", vec![at(Op::Read, "/a")]);
    let answer = Answer::yes().remember(Remember::Path);
    let id = service.grants().record(&read, &answer).unwrap().unwrap();
    let copy = Question::new("s", vec![at(Op::Read, "/a"), at(Op::Write, "/b")]);
    let mut waiting = Box::pin(service.authorize(copy));
    begin(&mut waiting).await;
    assert_eq!(service.pending()[0].question.asked, [at(Op::Write, "/b")]);
    service.grants().revoke(id);
    manual.answer(Answer::yes());
    begin(&mut waiting).await;
    let asked = &service.pending()[0].question.asked;
    assert_eq!(*asked, [at(Op::Read, "/a"), at(Op::Write, "/b")]);
    manual.answer(Answer::no());
    waiting.await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn equal_questions_at_once_are_asked_once() {
    for answer in [
        Answer::yes().note("all of you"),
        Answer::no().note("all of you"),
    ] {
        let manual = ManualApprover::new();
        let mut tasks: Vec<_> = (0..100)
            .map(|_| {
                let service = manual.service.clone();
                Box::pin(async move { service.authorize(write("/a")).await })
            })
            .collect();
        for task in &mut tasks {
            begin(task).await;
        }
        assert_eq!(manual.asked(), 1);
        assert_eq!(manual.service.pending().len(), 1);
        let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
        let approved = answer.approved;
        manual.answer(answer);
        let mut ids = std::collections::HashSet::new();
        for result in join_all(tasks).await {
            match result.unwrap() {
                Ok(permit) => {
                    assert!(approved && ids.insert(permit.id()), "each has its own");
                    assert_eq!(permit.note(), Some("all of you"));
                }
                Err(refusal) => {
                    assert!(!approved && refusal.to_string().ends_with("all of you"));
                }
            }
        }
        assert!(manual.service.pending().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_that_race_ask_no_more_than_they_must() {
    // In any order, only one of the equal questions is asked: its answer is remembered
    // before another call can ask again.
    for _ in 0..50 {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let approver = Interactive::new(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Ok(Answer::yes().remember(Remember::Path)) }
        });
        let service = ApprovalService::new(Arc::new(approver), Grants::new());
        let tasks: Vec<_> = (0..64)
            .map(|n| {
                let service = service.clone();
                let name = format!("/{}", n % 4);
                tokio::spawn(async move { service.authorize(write(&name)).await })
            })
            .collect();
        for result in join_all(tasks).await {
            result.unwrap().unwrap();
        }
        assert_eq!(asked.load(Ordering::SeqCst), 4);
        assert_eq!(service.grants().len(), 4);
        assert!(service.pending().is_empty());
    }
}

#[tokio::test]
async fn different_questions_at_once_are_different_questions() {
    let manual = ManualApprover::new();
    let mut waiting = Vec::new();
    for question in [
        write("/a"),
        write("/b"),
        write("/a").tool("t"),
        Question::new("t", vec![at(Op::Write, "/a")]),
        write("/a").effect(Effect::write("/a", None, b"1")),
        write("/a").effect(Effect::write("/a", None, b"2")),
        write("/a").effect(Effect::write("/a", Some(b"0"), b"2")),
        write("/a").bind(path("/a"), ContentHash::of(b"0")),
    ] {
        let mut future = Box::pin(manual.service.authorize(question));
        begin(&mut future).await;
        waiting.push(future);
    }
    assert_eq!(manual.asked(), 8);
    let pending = manual.service.pending();
    assert_eq!(pending.len(), 8);
    assert_eq!(
        pending[1].question.description, "write /b",
        "the oldest first"
    );
    drop(waiting);
    assert_eq!((manual.withdrawn(), manual.service.pending().len()), (8, 0));
}

#[tokio::test]
async fn who_stops_waiting_withdraws_nothing_while_another_waits() {
    let manual = ManualApprover::new();
    let mut first = Box::pin(manual.service.authorize(write("/a")));
    let mut second = Box::pin(manual.service.authorize(write("/a")));
    begin(&mut first).await;
    begin(&mut second).await;
    drop(first);
    assert_eq!((manual.withdrawn(), manual.service.pending().len()), (0, 1));
    manual.answer(Answer::yes());
    second.await.unwrap();
    assert_eq!(manual.withdrawn(), 0);
}

#[tokio::test]
async fn a_waiter_goes_on_when_the_one_who_began_is_gone() {
    // On a separate task, so that it has to be woken.
    let manual = ManualApprover::new();
    let mut first = Box::pin(manual.service.authorize(write("/a")));
    begin(&mut first).await;
    let service = manual.service.clone();
    let mut second = Box::pin(async move { service.authorize(write("/a")).await });
    begin(&mut second).await;
    let second = tokio::spawn(second);
    tokio::task::yield_now().await;
    drop(first);
    manual.answer(Answer::yes());
    second.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_last_to_stop_waiting_withdraws_the_question_and_it_can_be_asked_again() {
    let manual = ManualApprover::new();
    let mut waiting: Vec<_> = (0..3)
        .map(|_| Box::pin(manual.service.authorize(write("/a"))))
        .collect();
    for future in &mut waiting {
        begin(future).await;
    }
    drop(waiting.pop());
    drop(waiting.pop());
    assert_eq!(manual.withdrawn(), 0);
    drop(waiting.pop());
    assert_eq!((manual.withdrawn(), manual.service.pending().len()), (1, 0));

    let mut again = Box::pin(manual.service.authorize(write("/a")));
    begin(&mut again).await;
    assert_eq!(manual.asked(), 2, "asked anew");
    // The sender of the first question is dead by now.
    manual.waiting.lock().unwrap().remove(0);
    manual.answer(Answer::yes());
    again.await.unwrap();
    assert!(manual.service.pending().is_empty());
}

#[tokio::test]
async fn an_answer_that_comes_with_the_withdrawal_is_not_remembered() {
    let manual = ManualApprover::new();
    let mut only = Box::pin(manual.service.authorize(write("/a")));
    begin(&mut only).await;
    manual.answer(Answer::yes().remember(Remember::Session));
    drop(only);
    assert!(manual.service.grants().is_empty());
}

#[tokio::test]
async fn a_panic_is_no_answer_and_harms_no_later_question() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let approver = Interactive::new(move |_| {
        let call = count.fetch_add(1, Ordering::SeqCst);
        // Panic once before the future exists, and once within it.
        assert!(call != 0, "the first \u{1b}[2J");
        async move {
            tokio::task::yield_now().await;
            assert!(call != 1, "the second");
            Ok(Answer::yes())
        }
    });
    let service = ApprovalService::new(Arc::new(approver), Grants::new());
    let first = service.authorize(write("/a")).await.unwrap_err();
    assert!(matches!(first, Refusal::ApprovalRequired { .. }));
    assert!(
        first.to_string().contains(r"(the first \u{1b}[2J)"),
        "{first}"
    );
    let (one, two) = futures::join!(
        service.authorize(write("/a")),
        service.authorize(write("/a"))
    );
    for second in [one.unwrap_err(), two.unwrap_err()] {
        assert!(matches!(second, Refusal::ApprovalRequired { .. }));
        assert!(second.to_string().contains("(the second)"), "{second}");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    service.authorize(write("/a")).await.unwrap();
    assert!(service.pending().is_empty());
}

#[tokio::test]
async fn an_approver_may_use_the_service_itself() {
    // No lock is held while the approver is asked.
    let slot: Arc<Mutex<Option<ApprovalService>>> = Arc::default();
    let theirs = Arc::clone(&slot);
    let approver = Interactive::new(move |question: Question| {
        let service = theirs.lock().unwrap().clone().unwrap();
        async move {
            assert_eq!(service.pending().len(), 1);
            service
                .grants()
                .record(&question, &Answer::yes().remember(Remember::Path))
                .unwrap();
            Ok(Answer::yes())
        }
    });
    let service = ApprovalService::new(Arc::new(approver), Grants::new());
    *slot.lock().unwrap() = Some(service.clone());
    service.authorize(write("/a")).await.unwrap();
    assert_eq!(service.grants().len(), 1);
    *slot.lock().unwrap() = None;
}
