//! Tests of the pool: bounds, cancellation, panics.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

use futures::FutureExt as _;
use futures::executor::block_on;

use super::*;

#[test]
fn never_more_threads_than_allowed() {
    let pool = Pool::new(3);
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let calls = (0..50).map(|number| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        pool.run(None, move || {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(number)
        })
    });
    let answers = block_on(futures::future::join_all(calls));
    let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers, (0..50).collect::<Vec<_>>());
    assert!(most.load(Ordering::SeqCst) <= 3);
}

#[test]
fn what_is_dropped_before_its_turn_never_begins() {
    let pool = Pool::new(1);
    let (release, held) = mpsc::channel::<()>();
    let mut first = Box::pin(pool.run(None, move || {
        let _ = held.recv();
        Ok(())
    }));
    let mut context = Context::from_waker(Waker::noop());
    assert!(first.poll_unpin(&mut context).is_pending());
    let begun = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&begun);
    let mut second = Box::pin(pool.run(None, move || {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }));
    assert!(second.poll_unpin(&mut context).is_pending());
    drop(second);
    drop(release);
    block_on(first).unwrap();
    block_on(pool.run(None, || Ok(()))).unwrap();
    assert_eq!(begun.load(Ordering::SeqCst), 0);
}

#[test]
fn the_fence_holds_until_a_dropped_change_is_made() {
    let (pool, fence) = (Pool::new(2), Fence::default());
    let (release, held) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel::<()>();
    let mut change = Box::pin(pool.run(Some(&fence), move || {
        begun.send(()).unwrap();
        let _ = held.recv();
        Ok(())
    }));
    let mut context = Context::from_waker(Waker::noop());
    assert!(change.poll_unpin(&mut context).is_pending());
    has_begun.recv().unwrap();
    assert!(fence.wait().now_or_never().is_some(), "it is waited for");
    drop(change);
    let mut passing = Box::pin(fence.wait());
    assert!(passing.poll_unpin(&mut context).is_pending());
    drop(release);
    block_on(passing);
}

#[test]
fn a_panic_is_an_error_and_frees_the_thread() {
    let pool = Pool::new(1);
    for _ in 0..3 {
        let error = block_on(pool.run(None, || -> Result<()> {
            std::panic::resume_unwind(Box::new("on purpose"))
        }));
        assert_eq!(error.unwrap_err().kind(), backend_core::ErrorKind::Internal);
    }
    assert_eq!(block_on(pool.run(None, || Ok(7))).unwrap(), 7);
}

#[test]
fn threads_end_with_the_pool() {
    let pool = Pool::new(2);
    block_on(pool.run(None, || Ok(()))).unwrap();
    let shared = Arc::downgrade(&pool.shared);
    drop(pool);
    while shared.upgrade().is_some() {
        std::thread::yield_now();
    }
}

#[test]
fn waiting_is_pending() {
    let pool = Pool::new(1);
    let permit = block_on(pool.permit()).unwrap();
    let mut call = Box::pin(pool.run(None, || Ok(())));
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(call.poll_unpin(&mut context), Poll::Pending));
    drop(permit);
    block_on(call).unwrap();
}

#[test]
fn what_is_dropped_after_it_was_handed_over_does_not_begin() {
    let task = Arc::new(Task::new(None));
    drop(Waiter(Arc::clone(&task)));
    assert!(!task.begin());
    let task = Arc::new(Task::new(None));
    let waiter = Waiter(Arc::clone(&task));
    assert!(task.begin());
    task.end();
    drop(waiter);
}
