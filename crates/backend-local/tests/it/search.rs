//! Searching through the public API: its effect on the caller's runtime.

use std::fs;
use std::io::Write as _;
use std::time::Duration;

use backend_core::Backend as _;
use backend_core::ops::{GlobQuery, GrepQuery};
use backend_local::LocalBackend;

/// Enough text that no machine searches it between two polls.
fn large_file(directory: &std::path::Path) {
    let line = "the quick brown fox jumps over the lazy dog\n".repeat(1000);
    let mut file = fs::File::create(directory.join("large.txt")).unwrap();
    for _ in 0..1500 {
        file.write_all(line.as_bytes()).unwrap();
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_long_grep_delays_nothing() {
    let directory = tempfile::tempdir().unwrap();
    large_file(directory.path());
    let backend = LocalBackend::builder(directory.path()).open().unwrap();
    let query = GrepQuery::new(r"\w{3} \w{5} \w{5} .{20,24}\d$", backend.working_dir());
    let mut grep = backend.grep(query);
    let mut timer = tokio::time::interval(Duration::from_millis(1));
    let mut ticks = 0;
    // The only thread can serve the timer only while it does not search.
    let found = loop {
        tokio::select! {
            biased;
            found = &mut grep => break found.unwrap(),
            _ = timer.tick() => ticks += 1,
        }
    };
    assert_eq!(found.matches, 0);
    assert!(ticks > 2, "the timer fired {ticks} times");
}

#[test]
fn no_runtime_is_needed() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.txt"), "here\n").unwrap();
    let backend = LocalBackend::builder(directory.path()).open().unwrap();
    let start = backend.working_dir();
    let globbed = futures::executor::block_on(backend.glob(GlobQuery::new("*", start.clone())));
    assert_eq!(globbed.unwrap().files.len(), 1);
    let found = futures::executor::block_on(backend.grep(GrepQuery::new("here", start)));
    assert_eq!(found.unwrap().matches, 1);
}

#[tokio::test]
async fn the_builder_decides_what_searches_see() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [
        (".hidden", "x"),
        ("ignored", "x"),
        (".gitignore", "ignored\n"),
    ] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let names = async |hidden, ignored| {
        let backend = LocalBackend::builder(directory.path())
            .search_hidden(hidden)
            .search_ignored(ignored)
            .open()
            .unwrap();
        let query = GlobQuery::new("**", backend.working_dir());
        let found = backend.glob(query).await.unwrap();
        let names = found.files.iter().map(|file| file.name().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(false, false).await, "");
    assert_eq!(names(true, false).await, ".gitignore .hidden");
    assert_eq!(names(false, true).await, "ignored");
    assert_eq!(names(true, true).await, ".gitignore .hidden ignored");
}

#[tokio::test]
async fn the_builder_decides_about_generated_directories() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("node_modules/m")).unwrap();
    fs::write(directory.path().join("node_modules/m/a"), "x").unwrap();
    for (generated, files, skipped) in [(false, 0, 1), (true, 1, 0)] {
        let backend = LocalBackend::builder(directory.path())
            .search_generated(generated)
            .open()
            .unwrap();
        let query = GlobQuery::new("**", backend.working_dir());
        let found = backend.glob(query).await.unwrap();
        assert_eq!(
            (found.files.len(), found.skipped.generated),
            (files, skipped)
        );
        let query = GrepQuery::new("x", backend.working_dir());
        let found = backend.grep(query).await.unwrap();
        assert_eq!((found.matches, found.skipped.generated), (files, skipped));
    }
}
