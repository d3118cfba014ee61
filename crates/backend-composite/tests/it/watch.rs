//! Changes of several children as one stream.

use std::sync::Arc;

use backend_composite::{Composite, Route};
use backend_core::ErrorKind::Unsupported;
use backend_core::ops::{Change, WatchEvent, WatchQuery};
use backend_core::search::Exclude;
use backend_core::{Backend, BackendExt as _, WatchStream};
use backend_state::StateBackend;
use backend_testkit::path;
use futures::{FutureExt as _, StreamExt as _};

use crate::support::states::{route, state};

async fn watch(composite: &Composite, at: &str) -> WatchStream {
    composite.watch(WatchQuery::new(path(at))).await.unwrap()
}

/// Returns the changes that can be read without waiting, in any order.
fn unread(stream: &mut WatchStream) -> Vec<String> {
    let mut events = Vec::new();
    while let Some(Some(event)) = stream.next().now_or_never() {
        events.push(match event.unwrap() {
            WatchEvent::Change(Change { path, kind, .. }) => format!("{path} {kind:?}"),
            other => format!("{other:?}"),
        });
    }
    events.sort();
    events
}

async fn write(backend: &dyn Backend, path: &str) {
    backend.write_file(path, "text").await.unwrap();
}

#[tokio::test]
async fn every_child_beneath_is_watched() {
    let [default, notes, deep] = [state(), state(), state()];
    deep.write_file("/desk/old", "").await.unwrap();
    let composite = Composite::builder()
        .default_backend(Arc::<StateBackend>::clone(&default))
        .route(route("/notes", &notes))
        .route(route("/a/b", &deep).to_directory(path("/desk")))
        .build()
        .unwrap();
    assert!(composite.info().capabilities.watch);
    let mut all = watch(&composite, "/").await;
    let mut one = watch(&composite, "/a/b").await;
    let query = WatchQuery::new(path("/")).recursive(false);
    let mut flat = composite.watch(query).await.unwrap();
    write(&composite, "/top").await;
    write(&composite, "/notes/n").await;
    write(&composite, "/a/b/new").await;
    // A child's files that no path of the composite leads to.
    write(&*default, "/notes/hidden").await;
    write(&*deep, "/elsewhere").await;
    let expected = ["/a/b/new Created", "/notes/n Created", "/top Created"];
    assert_eq!(unread(&mut all), expected);
    assert_eq!(unread(&mut one), ["/a/b/new Created"]);
    assert_eq!(unread(&mut flat), ["/top Created"]);
    composite.move_to("/notes/n", "/top2").await.unwrap();
    let mut told = unread(&mut all);
    told.retain(|change| !change.ends_with("Changed"));
    assert_eq!(told, ["/notes/n Deleted", "/top2 Created"]);
}

/// A directory above a route exists, whatever the default holds.
#[tokio::test]
async fn a_directory_that_no_child_has_can_be_watched() {
    let [default, deep] = [state(), state()];
    let composite = Composite::builder()
        .default_backend(Arc::<StateBackend>::clone(&default))
        .route(route("/a/b", &deep))
        .build()
        .unwrap();
    let mut stream = watch(&composite, "/a").await;
    write(&composite, "/a/b/x").await;
    write(&composite, "/a/y").await;
    write(&composite, "/elsewhere").await;
    assert_eq!(unread(&mut stream), ["/a/b/x Created", "/a/y Created"]);
}

#[tokio::test]
async fn what_is_excluded_is_excluded_in_every_child() {
    let [default, notes] = [state(), state()];
    let composite = Composite::builder()
        .default_backend(Arc::<StateBackend>::clone(&default))
        .route(route("/notes", &notes))
        .build()
        .unwrap();
    write(&composite, "/notes/secret/a").await;
    let exclude = Exclude::hide(["/notes/secret", "*.pem"]).unwrap();
    let query = WatchQuery::new(path("/")).exclude(exclude);
    let mut stream = composite.watch(query).await.unwrap();
    for name in ["/notes/secret/b", "/notes/k.pem", "/k.pem", "/notes/shown"] {
        write(&composite, name).await;
    }
    assert_eq!(unread(&mut stream), ["/notes/shown Created"]);
    composite
        .move_to("/notes/secret", "/notes/open")
        .await
        .unwrap();
    let expected = [
        "/notes/open Created",
        "/notes/open/a Created",
        "/notes/open/b Created",
    ];
    assert_eq!(unread(&mut stream), expected);
}

/// A child that tells no changes is named, and only the paths above it cannot be watched.
#[tokio::test]
async fn a_child_without_changes_is_named() {
    #[derive(Debug)]
    struct Silent(StateBackend);
    impl Backend for Silent {
        fn info(&self) -> backend_core::BackendInfo {
            let mut info = self.0.info();
            (info.name, info.capabilities.watch) = ("silent".into(), false);
            info
        }
        backend_core::delegate! {
            |self| self.0 => working_dir, as_sandbox, resolve, stat, ls, read, read_text, write,
            edit, create_dir, delete, rename, copy, glob, grep
        }
    }
    let silent = Arc::new(Silent(StateBackend::new()));
    let composite = Composite::builder()
        .default_backend(Arc::new(StateBackend::new()))
        .route(Route::new(path("/mute"), silent))
        .route(route("/loud", &state()))
        .build()
        .unwrap();
    assert!(!composite.info().capabilities.watch);
    for at in ["/", "/mute"] {
        let watched = composite.watch(WatchQuery::new(path(at))).await;
        let error = watched.map(drop).unwrap_err();
        assert_eq!(error.kind(), Unsupported);
        assert!(
            error.to_string().contains("route '/mute' (silent)"),
            "{error}"
        );
    }
    let mut stream = watch(&composite, "/loud").await;
    write(&composite, "/loud/a").await;
    assert_eq!(unread(&mut stream), ["/loud/a Created"]);
}
