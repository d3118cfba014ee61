//! Tests of the kept outputs on top of a backend: the whole conformance suite, and the
//! directory itself.

use std::sync::Arc;

use backend_core::ops::{GlobQuery, GrepQuery, LsOptions, StatOptions};
use backend_core::{Backend, BackendExt as _, ErrorKind, VPath};
use backend_state::StateBackend;
use backend_testkit::{ClockFixture, fails};
use console_tools::{Conversation, OUTPUTS, OutputOverlay};

backend_testkit::conformance! {
    mod overlay;
    fixture = async || ClockFixture::new(|clock| {
        let inner = StateBackend::builder().clock(clock).build();
        Arc::new(laid_over(&inner))
    });
    // As many as the bare backend skips.
    skipped = 210;
}

fn laid_over(inner: &StateBackend) -> OutputOverlay {
    Conversation::default().with_outputs(Arc::new(inner.clone()))
}

#[tokio::test]
async fn an_empty_directory_is_there_and_shows_nowhere_else() {
    let inner = StateBackend::new();
    inner.write_file("/a.txt", "text\n").await.unwrap();
    let backend = laid_over(&inner);
    let outputs = VPath::parse(OUTPUTS).unwrap();
    let stat = backend
        .stat(&outputs, StatOptions::default())
        .await
        .unwrap();
    assert!(stat.is_dir());
    let listing = backend.ls(&outputs, LsOptions::default()).await.unwrap();
    assert!(listing.entries.is_empty());
    let root = backend
        .ls(&VPath::root(), LsOptions::default())
        .await
        .unwrap();
    assert_eq!(root.total, 1);
    let above = outputs.parent().unwrap();
    let above = backend.stat(&above, StatOptions::default()).await;
    fails(ErrorKind::NotFound, above);
    let all = GlobQuery::new("**", VPath::root()).hidden(true);
    assert_eq!(backend.glob(all).await.unwrap().files.len(), 1);
    let all = GrepQuery::new("text", VPath::root()).hidden(true);
    assert_eq!(backend.grep(all).await.unwrap().matches, 1);
}

#[tokio::test]
async fn nothing_in_the_directory_can_be_changed() {
    let inner = StateBackend::new();
    inner.write_file("/a.txt", "text").await.unwrap();
    let backend = laid_over(&inner);
    let file = format!("{OUTPUTS}/1.txt");
    let refused = [
        backend.write_file(&file, "x").await.map(drop),
        backend.replace_text(&file, "a", "b").await.map(drop),
        backend.delete_file(&file).await,
        backend.delete_tree(OUTPUTS).await,
        backend.move_to("/a.txt", &file).await,
        backend.move_to(&file, "/b.txt").await,
        backend.copy_to("/a.txt", &file).await,
        backend.copy_to(&file, "/b.txt").await,
    ];
    for (at, result) in refused.into_iter().enumerate() {
        let error = result.expect_err("kept outputs can only be read");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{at}: {error}");
    }
    let path = VPath::parse(&file).unwrap();
    let created = backend.create_dir(&path, Default::default()).await;
    fails(ErrorKind::PermissionDenied, created);
    assert_eq!(inner.read_to_string("/a.txt").await.unwrap(), "text");
    let root = inner
        .ls(&VPath::root(), LsOptions::default())
        .await
        .unwrap();
    assert_eq!(root.total, 1);
}

#[tokio::test]
async fn a_file_of_the_backend_beneath_it_is_covered() {
    let inner = StateBackend::new();
    let file = format!("{OUTPUTS}/1.txt");
    inner.write_file(&file, "of the backend").await.unwrap();
    let backend = laid_over(&inner);
    let read = backend.read_to_string(&file).await;
    fails(ErrorKind::NotFound, read);
    // A name with only the same prefix belongs to the backend.
    let beside = format!("{OUTPUTS}2/1.txt");
    backend.write_file(&beside, "beside").await.unwrap();
    assert_eq!(inner.read_to_string(&beside).await.unwrap(), "beside");
}
