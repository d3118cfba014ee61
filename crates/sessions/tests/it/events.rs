//! The view from outside: events, counters and snapshots.

use std::sync::Arc;
use std::time::Duration;

use backend_core::{Error, Sandbox};
use sessions::{EventKind, SessionManager, Status};

use crate::support::{Lab, MINUTE, request};

fn names(events: &mut tokio::sync::broadcast::Receiver<sessions::SessionEvent>) -> Vec<String> {
    let mut seen = Vec::new();
    while let Ok(event) = events.try_recv() {
        let kind = match event.kind {
            EventKind::Failed(_) => "failed".to_owned(),
            EventKind::Progress(text) => text,
            other => format!("{other:?}").to_lowercase(),
        };
        seen.push(format!("{} {kind}", event.id));
    }
    seen
}

#[tokio::test]
async fn events_tell_the_life_of_a_session() {
    let lab = Lab::keeping_files();
    let manager = lab.builder().max_sessions(1).build().unwrap();
    let mut events = manager.events();
    manager.get_or_create("a").await.unwrap();
    manager.get_or_create("a").await.unwrap();
    manager.get_or_create("b").await.unwrap();
    manager.get_or_create("a").await.unwrap();
    manager.release("a").await.unwrap();
    lab.clock.advance(61 * MINUTE);
    manager.cleanup_idle(None).await.unwrap();
    lab.fail_starts(Some(|| Error::unavailable("no")));
    manager.get_or_create("c").await.unwrap_err();
    let expected = [
        "a opening",
        "a opened",
        "a reused",
        "b opening",
        "a hibernated",
        "b opened",
        "b hibernated",
        "a woken",
        "a released",
        "b reaped",
        "c opening",
        "c failed",
    ];
    assert_eq!(names(&mut events), expected);
    let counters = manager.counters();
    assert_eq!(
        (counters.opened, counters.reused, counters.failed),
        (2, 1, 1)
    );
    assert_eq!((counters.released, counters.reaped), (1, 1));
}

#[tokio::test]
async fn a_factory_tells_its_progress() {
    let factory = |request: sessions::OpenRequest| async move {
        request.report_progress("layer 1 of 2");
        Err::<Arc<dyn Sandbox>, _>(Error::unavailable("no"))
    };
    let manager = SessionManager::builder().factory(factory).build().unwrap();
    let mut events = manager.events();
    manager.get_or_create("a").await.unwrap_err();
    let expected = ["a opening", "a layer 1 of 2", "a failed"];
    assert_eq!(names(&mut events), expected);
}

#[tokio::test]
async fn a_snapshot_can_be_written() {
    let lab = Lab::new();
    let manager = lab.builder().max_sessions(5).build().unwrap();
    let open = request("alice").tenant("acme").idle_timeout(MINUTE);
    manager.open(open).await.unwrap();
    lab.clock.advance(Duration::from_secs(7));
    let snapshot = manager.snapshot().await;
    assert_eq!(snapshot.sessions[0].status, Status::Running);
    let json = serde_json::to_value(&snapshot).unwrap();
    assert_eq!(json["max_sessions"], 5);
    let session = &json["sessions"][0];
    assert_eq!(session["id"], "alice");
    assert_eq!(session["tenant"], "acme");
    assert_eq!(session["status"], "running");
    assert_eq!(session["idle_seconds"], 7);
    assert_eq!(session["idle_timeout"], 60_000);
    assert_eq!(session["created"], 1_704_067_200_000_u64);
}
