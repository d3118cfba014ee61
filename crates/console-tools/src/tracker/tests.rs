//! Unit tests of the tracker.

use futures::FutureExt as _;
use futures::executor::block_on;

use super::*;

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

fn seen(content: &str) -> SeenFile {
    SeenFile::whole(&Bytes::copy_from_slice(content.as_bytes()))
}

fn text(tracker: &Tracker, at: &str) -> Option<String> {
    let seen = tracker.seen(&path(at))?;
    seen.text().map(str::to_owned)
}

#[test]
fn a_slow_read_does_not_hide_a_later_write() {
    let tracker = Tracker::default();
    let since = tracker.now();
    tracker.wrote(&path("/f"), seen("new"));
    tracker.read(&path("/f"), since, seen("old"));
    assert_eq!(text(&tracker, "/f").as_deref(), Some("new"));
    tracker.read(&path("/f"), tracker.now(), seen("newer"));
    assert_eq!(text(&tracker, "/f").as_deref(), Some("newer"));
}

#[test]
fn what_lies_beneath_goes_along() {
    let tracker = Tracker::default();
    for at in ["/d", "/d/a", "/d/e/b", "/dx", "/t/a"] {
        tracker.wrote(&path(at), seen(at));
    }
    tracker.moved(&path("/d"), &path("/t"));
    for (at, want) in [
        ("/d/a", None),
        ("/t", Some("/d")),
        ("/t/a", Some("/d/a")),
        ("/t/e/b", Some("/d/e/b")),
        ("/dx", Some("/dx")),
    ] {
        assert_eq!(text(&tracker, at).as_deref(), want, "{at}");
    }
    tracker.moved(&path("/unknown"), &path("/t/a"));
    assert!(tracker.seen(&path("/t/a")).is_none());
    tracker.forget(&path("/t"));
    assert!(text(&tracker, "/t/e/b").is_none() && text(&tracker, "/dx").is_some());
    assert_eq!(lock(&tracker.files).kept, "/dx".len());
}

#[test]
fn memory_is_bounded() {
    let tracker = Tracker::default();
    tracker.wrote(&path("/large"), seen(&"x".repeat(KEPT_BYTES + 1)));
    let large = tracker.seen(&path("/large")).unwrap();
    assert!(large.content.is_none() && large.hash().is_some());
    assert_eq!(large.lines, Some(1));
    let most = "x".repeat(KEPT_BYTES);
    for n in 0..50 {
        tracker.wrote(&path(&format!("/{n}")), seen(&most));
    }
    assert_eq!(lock(&tracker.files).kept, KEPT_TOTAL_BYTES);
    assert!(text(&tracker, "/0").is_none() && text(&tracker, "/49").is_some());
    assert!(tracker.seen(&path("/0")).unwrap().hash().is_some());
    for n in 0..FILES {
        tracker.wrote(&path(&format!("/s/{n}")), seen(""));
    }
    assert_eq!(lock(&tracker.files).seen.len(), FILES);
    assert!(tracker.seen(&path("/49")).is_none());
    assert_eq!(lock(&tracker.files).kept, 0);
}

#[test]
fn lines_are_counted_as_they_are_shown() {
    for (content, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)] {
        assert_eq!(count_lines(content.as_bytes()), lines, "{content:?}");
    }
}

#[test]
fn locks_exclude_each_other_and_leave_nothing() {
    let tracker = Tracker::default();
    let (a, b) = (path("/a"), path("/b"));
    let held = block_on(tracker.lock(&a));
    assert!(tracker.lock(&a).now_or_never().is_none());
    assert_eq!(tracker.locks.len(), 1);
    drop(tracker.lock(&b).now_or_never().unwrap());
    assert_eq!(tracker.locks.len(), 1);
    // A waiting call keeps the lock in the table after its holder is gone.
    let mut waits = Box::pin(tracker.lock(&a));
    assert!((&mut waits).now_or_never().is_none());
    drop(held);
    assert_eq!(tracker.locks.len(), 1);
    let held = waits.now_or_never().unwrap();
    assert!(tracker.lock(&a).now_or_never().is_none());
    drop(held);
    assert_eq!(tracker.locks.len(), 0);
    let both = tracker.lock_both(&b, &a).now_or_never().unwrap();
    assert!(tracker.lock(&a).now_or_never().is_none());
    assert!(tracker.lock(&b).now_or_never().is_none());
    assert!(tracker.lock_both(&a, &b).now_or_never().is_none());
    drop(both);
    drop(tracker.lock_both(&a, &a).now_or_never().unwrap());
    assert_eq!(tracker.locks.len(), 0);
}
