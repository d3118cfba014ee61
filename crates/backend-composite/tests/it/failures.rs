//! Errors of children, concurrency of the calls to them, and merging of their results.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backend_composite::{Composite, Route};
use backend_core::ops::{
    Content, CreateDirOptions, DeleteOptions, Entry, FileBytes, GlobQuery, GrepQuery, Listing,
    LsOptions, ReadOptions, Skipped, StatOptions, WriteOptions, WriteOutcome,
};
use backend_core::{
    Backend, BackendExt as _, BackendInfo, Capabilities, Error, ErrorKind, Operation, Result,
    VPath, derived_backend,
};
use backend_state::StateBackend;
use backend_testkit::fake::Intercepted;
use backend_testkit::{fails, path};
use tokio::sync::Barrier;

use crate::support::states::{found, route, state};

/// Returns a backend that fails every call.
fn gone() -> Arc<dyn Backend> {
    Arc::new(Intercepted::new(StateBackend::new(), |_| {
        Err(Error::unavailable("the sandbox is gone"))
    }))
}

fn texts<'a>(paths: impl Iterator<Item = &'a VPath>) -> Vec<&'a str> {
    paths.map(VPath::as_str).collect()
}

#[tokio::test]
async fn errors_speak_the_composites_names() {
    let composite = Composite::new(state());
    composite.add_route(route("/a/b", &state())).unwrap();
    let lost = Route::new(path("/gone"), gone());
    composite.add_route(lost).unwrap();
    let error = composite.read_bytes("/a/b/missing").await.unwrap_err();
    assert_eq!(error.path(), Some(&path("/a/b/missing")));
    assert_eq!(error.backend(), Some("composite"));
    let told = "composite: read '/a/b/missing': no such file";
    assert!(error.to_string().starts_with(told), "{error}");

    let read = composite.read_bytes("/gone/f").await;
    let error = fails(ErrorKind::Unavailable, read);
    assert_eq!(error.operation(), Some(Operation::Read));
    let told = "composite: read '/gone/f': route '/gone' (state): the sandbox is gone";
    assert_eq!(error.to_string(), told);

    for failed in [
        composite.find_files("**").await.map(drop),
        composite.search_text("x").await.map(drop),
        composite.list_dir("/gone").await.map(drop),
        composite.move_to("/gone/f", "/f").await,
    ] {
        let error = fails(ErrorKind::Unavailable, failed);
        let named = error.message().matches("route '/gone'").count();
        assert_eq!(named, 1, "{error}");
    }
}

/// A file may be larger than this process's memory.
#[tokio::test]
async fn the_shared_walk_has_files_searched_where_they_are() {
    let (child, calls) = Intercepted::recording(StateBackend::new());
    let composite = Composite::new(state());
    let recorded = Route::new(path("/a"), Arc::new(child));
    composite.add_route(recorded).unwrap();
    // An ignore file above the route requires the shared walk.
    for (file, content) in [
        ("/.gitignore", "ignored\n"),
        ("/a/f", "one needle\n"),
        ("/a/ignored", "needle\n"),
        ("/z", "another needle\n"),
    ] {
        composite.write_file(file, content).await.unwrap();
    }
    drop(calls.taken());
    let found = composite.search_text("needle").await.unwrap();
    let files = texts(found.files.iter().map(|file| &file.path));
    assert_eq!(files, ["/a/f", "/z"]);
    let calls = calls.taken();
    let of = |operation| calls.iter().filter(move |call| call.operation == operation);
    let searched: Vec<_> = of(Operation::Grep).map(|call| call.path.as_str()).collect();
    assert_eq!(searched, ["/f"]);
    let mut reads = of(Operation::Read).map(|call| call.path.as_str());
    assert!(reads.all(|path| path.ends_with("ignore")), "{calls:?}");
}

#[tokio::test]
async fn partial_results_come_with_the_failures() {
    let composite = Composite::new(state());
    composite.add_route(route("/a", &state())).unwrap();
    let lost = Route::new(path("/a/gone"), gone());
    composite.add_route(lost).unwrap();
    composite.write_file("/a/f", "needle").await.unwrap();
    composite.write_file("/z", "needle").await.unwrap();
    // With an ignore file above the route, the shared walk does the search.
    for rules in [None, Some("nothing\n")] {
        if let Some(rules) = rules {
            composite.write_file("/.gitignore", rules).await.unwrap();
        }
        let query = GlobQuery::new("**", VPath::root());
        let (globbed, failures) = composite.glob_partial(query).await.unwrap();
        let files = texts(globbed.files.iter().map(|file| &file.path));
        assert_eq!(files, ["/a/f", "/z"], "{rules:?}");
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].route, path("/a/gone"));
        assert_eq!(failures[0].error.kind(), ErrorKind::Unavailable);
        let query = GrepQuery::new("needle", VPath::root());
        let (grepped, failures) = composite.grep_partial(query).await.unwrap();
        assert_eq!((grepped.matches, failures.len()), (2, 1));
    }
    let ls = async |text| {
        composite
            .ls_partial(&path(text), LsOptions::default())
            .await
    };
    for (text, total, failed) in [("/a/gone", 0, 1), ("/a", 2, 0)] {
        let (listed, failures) = ls(text).await.unwrap();
        assert_eq!((listed.total, failures.len()), (total, failed));
    }
    // An error of the call itself still fails it.
    fails(ErrorKind::NotFound, ls("/a/missing").await.map(drop));
    let bad = GlobQuery::new("[", VPath::root());
    let bad = composite.glob_partial(bad).await;
    fails(ErrorKind::InvalidInput, bad.map(drop));
}

/// A child may list its files and be gone when they are searched.
#[tokio::test]
async fn the_shared_walk_goes_on_after_a_child_that_fails_in_it() {
    let composite = Composite::new(state());
    let failing = Intercepted::new(StateBackend::new(), |call| match call.operation {
        Operation::Grep => Err(Error::unavailable("the sandbox is gone")),
        _ => Ok(()),
    });
    let failing = Route::new(path("/a/b"), Arc::new(failing));
    for added in [route("/a", &state()), failing] {
        composite.add_route(added).unwrap();
    }
    // Rules from above the start turn the whole search into one walk.
    for (file, content) in [
        ("/.gitignore", "nothing\n"),
        ("/a/b/f", "needle\n"),
        ("/a/b/g", "needle\n"),
        ("/a/z", "needle\n"),
    ] {
        composite.write_file(file, content).await.unwrap();
    }
    let query = GrepQuery::new("needle", path("/a"));
    let error = fails(ErrorKind::Unavailable, composite.grep(query.clone()).await);
    assert!(error.message().contains("route '/a/b'"), "{error}");
    let (found, failures) = composite.grep_partial(query).await.unwrap();
    let files = texts(found.files.iter().map(|file| &file.path));
    assert_eq!(files, ["/a/z"]);
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].route, path("/a/b"));
    assert_eq!(failures[0].error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_failing_default_leaves_the_routes() {
    let composite = Composite::new(gone());
    composite.add_route(route("/a", &state())).unwrap();
    composite.write_file("/a/f", "needle").await.unwrap();
    fails(ErrorKind::Unavailable, composite.list_dir("/").await);
    let (root, options) = (VPath::root(), LsOptions::default());
    let (listed, failures) = composite.ls_partial(&root, options).await.unwrap();
    assert_eq!((listed.total, failures.len()), (1, 1));
    assert_eq!(failures[0].route, VPath::root());
    let query = GrepQuery::new("needle", VPath::root());
    let (grepped, failures) = composite.grep_partial(query).await.unwrap();
    assert_eq!((grepped.matches, failures.len()), (1, 1));
}

/// A backend with one file, which it lists only after as many concurrent calls as
/// the barrier requires have arrived.
#[derive(Debug)]
struct Meeting(Arc<Barrier>);

derived_backend! {
    impl Backend for Meeting {
        fn info(&self) -> BackendInfo {
            BackendInfo::new("meeting", Capabilities::default())
        }

        async fn stat(&self, path: &VPath, _: StatOptions) -> Result<Entry> {
            Ok(Entry::directory(path.clone()))
        }

        async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
            self.0.wait().await;
            let file = Entry::file(path.child("met")?, 0);
            options.listing(vec![file], Skipped::default())
        }

        async fn read(&self, _: &VPath, _: ReadOptions) -> Result<FileBytes> {
            Err(Error::not_found())
        }

        async fn write(&self, _: &VPath, _: Content, _: WriteOptions) -> Result<WriteOutcome> {
            Err(Error::unsupported("it only lists"))
        }

        async fn create_dir(&self, _: &VPath, _: CreateDirOptions) -> Result<()> {
            Err(Error::unsupported("it only lists"))
        }

        async fn delete(&self, _: &VPath, _: DeleteOptions) -> Result<()> {
            Err(Error::unsupported("it only lists"))
        }
    }
}

#[tokio::test(start_paused = true)]
async fn children_are_asked_at_once() {
    let barrier = Arc::new(Barrier::new(3));
    let composite = Composite::new(state());
    for prefix in ["/a", "/b", "/c"] {
        let meeting = Arc::new(Meeting(Arc::clone(&barrier)));
        let added = Route::new(path(prefix), meeting);
        composite.add_route(added).unwrap();
    }
    // The paused clock advances only when every task waits. Then no further call would arrive.
    let finding = tokio::time::timeout(Duration::from_secs(1), found(&composite, "**"));
    let files = finding.await.expect("the children were asked one by one");
    assert_eq!(files, ["/a/met", "/b/met", "/c/met"]);
}

#[tokio::test]
async fn a_maximum_of_bytes_cuts_where_one_backend_would() {
    let composite = Composite::new(state());
    composite.add_route(route("/b", &state())).unwrap();
    for (file, text) in [
        ("/a1", "needle---"),
        ("/a5", "needle---"),
        ("/b/f", "needle"),
    ] {
        composite.write_file(file, text).await.unwrap();
    }
    // The second line does not fit. The third would, but leaving a gap is not allowed.
    let query = GrepQuery::new("needle", VPath::root()).max_bytes(16);
    let grepped = composite.grep(query).await.unwrap();
    assert!(grepped.truncated);
    let files = texts(grepped.files.iter().map(|file| &file.path));
    assert_eq!(files, ["/a1"]);
}

#[tokio::test]
async fn a_long_search_keeps_its_routes() {
    let shared = Arc::new(OnceLock::<Composite>::new());
    let later = Arc::clone(&shared);
    let default = StateBackend::new();
    // With an ignore file above the route, the shared walk uses all listings.
    default.write_file("/.gitignore", "*.log\n").await.unwrap();
    let default = Intercepted::new(default, move |call| {
        if call.operation == Operation::Ls
            && let Some(composite) = later.get()
        {
            drop(composite.remove_route(&path("/b")));
        }
        Ok(())
    });
    let composite = Composite::new(Arc::new(default));
    composite.add_route(route("/b", &state())).unwrap();
    composite.write_file("/b/f", "needle").await.unwrap();
    composite.write_file("/b/f.log", "needle").await.unwrap();
    shared.set(composite.clone()).unwrap();
    // A name with a dot that spans routes makes the walk start at the root.
    let query = GlobQuery::new("{b/*,.c/*}", VPath::root());
    let globbed = composite.glob(query).await.unwrap();
    let files = texts(globbed.files.iter().map(|file| &file.path));
    assert_eq!(files, ["/b/f"]);
    assert!(composite.remove_route(&path("/b")).is_err());
}
