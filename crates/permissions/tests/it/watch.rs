//! A guard's changes: nothing that the policy hides is told.

use backend_core::ErrorKind::PermissionDenied;
use backend_core::ops::{Change, ChangeKind, WatchEvent, WatchQuery};
use backend_core::search::Exclude;
use backend_core::{Backend, BackendExt as _, WatchStream};
use backend_state::StateBackend;
use backend_testkit::fails;
use futures::{FutureExt as _, StreamExt as _};

use crate::support::scene::{Person, guard, link, local, path, policy};

const RULES: &str = r#"{
    "default": "allow",
    "ls": {"default": "allow", "rules": [{"pattern": "/private/**", "action": "deny"}]},
    "read": {"default": "allow", "rules": [{"pattern": "**/*.pem", "action": "deny", "hide": true}]}
}"#;

fn text(event: WatchEvent) -> String {
    match event {
        WatchEvent::Change(Change { path, kind, .. }) => match kind {
            ChangeKind::Renamed { from } => format!("{from} -> {path}"),
            kind => format!("{kind:?} {path}"),
        },
        other => format!("{other:?}"),
    }
}

/// Returns the changes that can be read without waiting.
fn unread(stream: &mut WatchStream) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(Some(event)) = stream.next().now_or_never() {
        told.push(text(event.unwrap()));
    }
    told
}

#[tokio::test]
async fn what_rules_deny_is_never_told() {
    let state = StateBackend::new();
    for name in ["/private/a", "/open/b", "/open/key.pem"] {
        state.write_file(name, "").await.unwrap();
    }
    let guarded = guard(state.clone(), policy(RULES), &Person::yes());
    let mut stream = guarded.watch(WatchQuery::new(path("/"))).await.unwrap();
    for name in ["/private/new", "/open/key.pem", "/open/new.pem", "/open/c"] {
        state.write_file(name, "x").await.unwrap();
    }
    assert_eq!(unread(&mut stream), ["Created /open/c"]);
    // A move of which one side is hidden is told as the other.
    state.move_to("/private/a", "/open/a").await.unwrap();
    state.move_to("/open/b", "/private/b").await.unwrap();
    state.move_to("/open/key.pem", "/open/key").await.unwrap();
    state.move_to("/open/c", "/open/d").await.unwrap();
    let expected = [
        "Created /open/a",
        "Deleted /open/b",
        "Created /open/key",
        "/open/c -> /open/d",
    ];
    assert_eq!(unread(&mut stream), expected);
}

#[tokio::test]
async fn a_directory_that_may_not_be_listed_cannot_be_watched() {
    let state = StateBackend::new();
    state.write_file("/private/a", "").await.unwrap();
    let guarded = guard(state, policy(RULES), &Person::yes());
    for at in ["/private", "/private/a"] {
        let watched = guarded.watch(WatchQuery::new(path(at))).await;
        fails(PermissionDenied, watched.map(drop));
    }
}

/// Through a link, both the path that was given and the one it leads to are judged.
#[tokio::test]
async fn a_link_shows_no_more_than_its_target() {
    let (directory, backend) = local();
    backend.write_file("/real/sub/a", "").await.unwrap();
    link(directory.path(), "way", "real");
    let rules = r#"{
        "default": "allow",
        "ls": {"default": "allow", "rules": [
            {"pattern": "/real/secret*", "action": "deny"},
            {"pattern": "/way/own*", "action": "deny"}
        ]}
    }"#;
    let guarded = guard(backend.clone(), policy(rules), &Person::yes());
    let query = WatchQuery::new(path("/way")).exclude(Exclude::hide(["/way/left"]).unwrap());
    let mut stream = guarded.watch(query).await.unwrap();
    for name in ["secret", "own", "left", "sub/b", "fence"] {
        let name = format!("/real/{name}");
        backend.create_dir_all(name).await.unwrap();
    }
    let mut told = Vec::new();
    while told.last().is_none_or(|last| last != "Created /way/fence") {
        told.push(text(stream.next().await.unwrap().unwrap()));
    }
    assert_eq!(told, ["Created /way/sub/b", "Created /way/fence"]);
}

#[tokio::test]
async fn lost_changes_are_told_through_a_guard() {
    let state = StateBackend::new();
    let guarded = guard(state.clone(), policy(RULES), &Person::yes());
    let mut stream = guarded.watch(WatchQuery::new(path("/"))).await.unwrap();
    for number in 0..backend_core::limits::WATCH_EVENTS + 5 {
        let name = format!("/{number}");
        state.write_file(name, "").await.unwrap();
    }
    assert_eq!(
        unread(&mut stream).last().map(String::as_str),
        Some("Overflow")
    );
}
