//! Moving and copying from one route to another: what is copied, what is refused,
//! and what remains after a failure half-way.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use backend_composite::{Composite, Route};
use backend_core::ErrorKind::{
    AlreadyExists, Conflict, InvalidInput, InvalidPath, IsALink, PermissionDenied, Unavailable,
    Unsupported,
};
use backend_core::ops::{Content, CopyOptions, Links, RenameOptions, WriteOptions, WriteOutcome};
use backend_core::{Backend, BackendExt as _, Error, Operation, Result, VPath};
use backend_local::LocalBackend;
use backend_state::StateBackend;
use backend_testkit::fake::{Call, Intercepted};
use backend_testkit::{fails, path};

/// Creates a composite with `one` at `/one` and `two` at `/two`.
fn compose(one: impl Backend, two: impl Backend) -> Composite {
    Composite::builder()
        .route(Route::new(path("/one"), Arc::new(one)))
        .route(Route::new(path("/two"), Arc::new(two)))
        .build()
        .unwrap()
}

fn two_states() -> Composite {
    compose(StateBackend::new(), StateBackend::new())
}

fn local(directory: &Path) -> LocalBackend {
    LocalBackend::builder(directory).open().unwrap()
}

async fn copy_all(composite: &Composite, from: &str, to: &str) -> Result<()> {
    let options = CopyOptions::default().recursive(true);
    composite.copy(&path(from), &path(to), options).await
}

async fn move_over(composite: &Composite, from: &str, to: &str) -> Result<()> {
    let options = RenameOptions::default().overwrite(true);
    composite.rename(&path(from), &path(to), options).await
}

async fn tree(composite: &Composite, start: &str) -> Vec<String> {
    let mut pending = vec![path(start)];
    let mut all = Vec::new();
    while let Some(directory) = pending.pop() {
        let listing = composite.list_dir(directory.as_str()).await.unwrap();
        for entry in listing.entries {
            if entry.is_dir() {
                all.push(format!("{}/", entry.path));
                pending.push(entry.path);
            } else {
                all.push(entry.path.to_string());
            }
        }
    }
    all.sort();
    all
}

fn large() -> Vec<u8> {
    (0..5_000_000_u32)
        .map(|number| (number % 251) as u8)
        .collect()
}

#[tokio::test]
async fn a_file_goes_in_pieces() {
    let (source, calls) = Intercepted::recording(StateBackend::new());
    let composite = compose(source, StateBackend::new());
    composite.write_file("/one/large", large()).await.unwrap();
    calls.taken();
    let to = "/two/deep/large";
    composite.move_to("/one/large", to).await.unwrap();
    let mut reads = calls.taken();
    reads.retain(|call| call.operation == Operation::Read);
    assert_eq!(reads.len(), 5, "a piece has a mebibyte");
    assert!(composite.read_bytes(to).await.unwrap() == large());
    assert!(!composite.exists("/one/large").await.unwrap());
}

#[tokio::test]
async fn a_tree_goes_with_all_it_holds() {
    let composite = two_states();
    for file in ["/one/t/a", "/one/t/.hidden/b", "/one/t/c/.gitignore"] {
        composite.write_file(file, file).await.unwrap();
    }
    let empty = path("/one/t/empty/inner");
    let created = composite.create_dir(&empty, Default::default()).await;
    created.unwrap();
    let before = tree(&composite, "/one").await;
    copy_all(&composite, "/one/t", "/two/new/t").await.unwrap();
    assert_eq!(tree(&composite, "/one").await, before);
    let copied = tree(&composite, "/two/new").await;
    assert_eq!(copied.len(), before.len());
    let hidden = composite.read_to_string("/two/new/t/.hidden/b").await;
    assert_eq!(hidden.unwrap(), "/one/t/.hidden/b");

    composite.move_to("/one/t", "/two/moved").await.unwrap();
    assert!(tree(&composite, "/one").await.is_empty());
    let inner = composite.metadata("/two/moved/empty/inner").await;
    assert!(inner.unwrap().is_dir());
    // A directory above a route is copied with the files of the route.
    copy_all(&composite, "/two", "/one/all").await.unwrap();
    let (all, two) = (tree(&composite, "/one/all"), tree(&composite, "/two"));
    assert_eq!(all.await.len(), two.await.len());
}

#[tokio::test]
async fn nothing_is_replaced_unless_told() {
    let composite = two_states();
    composite.write_file("/one/f", "new").await.unwrap();
    composite.write_file("/two/f", "old").await.unwrap();
    composite.write_file("/two/d/x", "old").await.unwrap();
    fails(AlreadyExists, composite.move_to("/one/f", "/two/f").await);
    fails(AlreadyExists, composite.copy_to("/one/f", "/two/f").await);
    let moved = move_over(&composite, "/one/f", "/two/d").await;
    fails(AlreadyExists, moved);
    assert_eq!(composite.read_to_string("/two/f").await.unwrap(), "old");
    move_over(&composite, "/one/f", "/two/f").await.unwrap();
    assert_eq!(composite.read_to_string("/two/f").await.unwrap(), "new");
    assert!(!composite.exists("/one/f").await.unwrap());
}

/// Fails the calls of one operation after the first few.
fn failing(inner: StateBackend, operation: Operation, after: usize) -> Intercepted<StateBackend> {
    let seen = AtomicUsize::new(0);
    Intercepted::new(inner, move |call: &Call| {
        let hit = call.operation == operation;
        if hit && seen.fetch_add(1, Ordering::Relaxed) >= after {
            Err(Error::unavailable("pulled the plug"))
        } else {
            Ok(())
        }
    })
}

#[tokio::test]
async fn a_source_that_fails_half_way_leaves_no_half_file() {
    let store = StateBackend::new();
    store.write_file("/large", large()).await.unwrap();
    let source = failing(store.clone(), Operation::Read, 3);
    let composite = compose(source, StateBackend::new());
    let moved = composite.move_to("/one/large", "/two/large").await;
    let error = fails(Unavailable, moved);
    assert_eq!(error.operation(), Some(Operation::Rename));
    assert!(error.message().contains("route '/one'"), "{error}");
    assert!(error.message().contains("pulled the plug"), "{error}");
    assert!(tree(&composite, "/two").await.is_empty());
    assert!(store.read_bytes("/large").await.unwrap() == large());
}

#[tokio::test]
async fn a_destination_that_fails_leaves_the_source() {
    let two = StateBackend::new();
    let destination = failing(two.clone(), Operation::Write, 1);
    let composite = compose(StateBackend::new(), destination);
    for file in ["/one/t/a", "/one/t/b", "/one/t/c"] {
        composite.write_file(file, "x").await.unwrap();
    }
    let before = tree(&composite, "/one").await;
    let error = fails(Unavailable, composite.move_to("/one/t", "/two/t").await);
    assert!(error.message().contains("route '/two'"), "{error}");
    assert_eq!(tree(&composite, "/one").await, before);
}

#[tokio::test]
async fn a_source_that_stays_takes_its_copy_back() {
    let store = StateBackend::new();
    store.write_file("/f", "x").await.unwrap();
    let source = failing(store.clone(), Operation::Delete, 0);
    let composite = compose(source, StateBackend::new());
    fails(Unavailable, composite.move_to("/one/f", "/two/f").await);
    assert!(store.exists("/f").await.unwrap());
    assert!(tree(&composite, "/two").await.is_empty());
}

#[tokio::test]
async fn a_source_that_changes_meanwhile_stays() {
    for (source, changed) in [("/f", "/f"), ("/t", "/t/new")] {
        let store = StateBackend::new();
        store.write_file("/f", "before").await.unwrap();
        store.write_file("/t/f", "before").await.unwrap();
        let writer = store.clone();
        let two = Intercepted::new(StateBackend::new(), move |call: &Call| {
            if call.operation == Operation::Write {
                futures::executor::block_on(writer.write_file(changed, "after"))?;
            }
            Ok(())
        });
        let composite = compose(store.clone(), two);
        let from = format!("/one{source}");
        fails(Conflict, composite.move_to(&from, "/two/x").await);
        assert_eq!(store.read_to_string(changed).await.unwrap(), "after");
    }
}

#[tokio::test]
async fn one_place_under_two_names_loses_nothing() {
    // Clones share one store, but the composite cannot know that.
    let store = StateBackend::new();
    let composite = compose(store.clone(), store.clone());
    composite.write_file("/one/f", "kept").await.unwrap();
    fails(Conflict, move_over(&composite, "/one/f", "/two/f").await);
    assert_eq!(store.read_to_string("/f").await.unwrap(), "kept");
    fails(AlreadyExists, composite.move_to("/one/f", "/two/f").await);

    // It recognizes the same backend, and leaves the move to it.
    let shared = Arc::new(StateBackend::new());
    let composite = Composite::new(Arc::<StateBackend>::clone(&shared));
    let again = Route::new(path("/again"), shared);
    composite.add_route(again).unwrap();
    composite.write_file("/t/f", "kept").await.unwrap();
    let moved = move_over(&composite, "/t/f", "/again/t/f").await;
    let copied = copy_all(&composite, "/t", "/again/t/in").await;
    for onto_itself in [moved, copied] {
        fails(InvalidInput, onto_itself);
    }
    composite.move_to("/again/t/f", "/g").await.unwrap();
    assert_eq!(composite.read_to_string("/again/g").await.unwrap(), "kept");
}

#[tokio::test]
async fn what_cannot_leave_is_not_copied_first() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("f"), "x").unwrap();
    let read_only = LocalBackend::builder(directory.path()).read_only(true);
    let (two, calls) = Intercepted::recording(StateBackend::new());
    let composite = compose(read_only.open().unwrap(), two);
    let moved = composite.move_to("/one/f", "/two/f").await;
    fails(PermissionDenied, moved);
    let calls = calls.taken();
    assert!(calls.iter().all(|call| call.operation != Operation::Write));
    composite.copy_to("/one/f", "/two/f").await.unwrap();
    assert_eq!(composite.read_to_string("/two/f").await.unwrap(), "x");
    let moved = composite.move_to("/two/f", "/one/g").await;
    fails(PermissionDenied, moved);
    assert!(composite.exists("/two/f").await.unwrap());
}

#[tokio::test]
async fn links_and_special_files_do_not_go_along() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::fs::create_dir_all(root.join("t/inner")).unwrap();
    std::fs::write(root.join("t/inner/f"), "x").unwrap();
    std::os::unix::fs::symlink("inner/f", root.join("t/link")).unwrap();
    std::os::unix::fs::symlink("gone", root.join("dangling")).unwrap();
    let (two, calls) = Intercepted::recording(StateBackend::new());
    let composite = compose(local(root), two);
    for from in ["/one/t", "/one/t/link", "/one/dangling"] {
        let error = fails(Unsupported, copy_all(&composite, from, "/two/t").await);
        assert!(error.message().contains("symbolic link"), "{error}");
        fails(Unsupported, composite.move_to(from, "/two/t").await);
    }
    std::fs::remove_file(root.join("t/link")).unwrap();
    let mut fifo = std::process::Command::new("mkfifo");
    let made = fifo.arg(root.join("t/pipe")).status();
    assert!(made.unwrap().success());
    for from in ["/one/t", "/one/t/pipe"] {
        fails(InvalidInput, copy_all(&composite, from, "/two/t").await);
    }
    std::fs::remove_file(root.join("t/pipe")).unwrap();
    let raw = std::ffi::OsStr::from_bytes(b"raw\xff");
    std::fs::write(root.join("t/inner").join(raw), "").unwrap();
    fails(InvalidInput, composite.move_to("/one/t", "/two/t").await);
    let changes = [Operation::Write, Operation::CreateDir];
    let calls = calls.taken();
    assert!(calls.iter().all(|call| !changes.contains(&call.operation)));
    assert!(root.join("t/inner/f").exists());
}

#[tokio::test]
async fn links_above_are_followed_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::fs::create_dir(root.join("real")).unwrap();
    std::fs::write(root.join("real/f"), "x").unwrap();
    std::os::unix::fs::symlink("real", root.join("way")).unwrap();
    std::os::unix::fs::symlink("real/f", root.join("in-the-way")).unwrap();
    let composite = compose(local(root), StateBackend::new());
    composite.write_file("/two/g", "y").await.unwrap();
    let refuse = RenameOptions::default().links(Links::Refuse);
    for (from, to) in [("/one/way/f", "/two/f"), ("/two/g", "/one/way/g")] {
        let moved = composite.rename(&path(from), &path(to), refuse).await;
        fails(IsALink, moved);
        composite.move_to(from, to).await.unwrap();
    }
    assert_eq!(composite.read_to_string("/two/f").await.unwrap(), "x");
    assert_eq!(std::fs::read_to_string(root.join("real/g")).unwrap(), "y");
    let taken = move_over(&composite, "/two/f", "/one/in-the-way").await;
    fails(AlreadyExists, taken);
}

/// A store that records whether writes were durable.
#[derive(Debug)]
struct Noting {
    store: StateBackend,
    durable: Arc<AtomicBool>,
}

#[async_trait]
impl Backend for Noting {
    backend_core::delegate! {
        |self| self.store => info, working_dir, as_sandbox, resolve, stat, ls, read, read_text,
        edit, create_dir, delete, rename, copy, glob, grep, watch
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        self.durable.store(options.durable, Ordering::Relaxed);
        self.store.write(path, content, options).await
    }
}

#[tokio::test]
async fn a_move_is_durable_before_the_source_goes() {
    let durable = Arc::new(AtomicBool::new(false));
    let two = Noting {
        store: StateBackend::new(),
        durable: Arc::clone(&durable),
    };
    let composite = compose(StateBackend::new(), two);
    composite.write_file("/one/f", "x").await.unwrap();
    composite.copy_to("/one/f", "/two/copy").await.unwrap();
    assert!(!durable.load(Ordering::Relaxed));
    composite.move_to("/one/f", "/two/moved").await.unwrap();
    assert!(durable.load(Ordering::Relaxed));
}

#[tokio::test]
async fn nothing_inside_loses_its_path() {
    let composite = two_states();
    let deep = format!("/one/{}f", "d/".repeat(150));
    composite.write_file(&deep, "x").await.unwrap();
    let to = format!("/two/{}e", "e/".repeat(120));
    fails(InvalidPath, composite.move_to("/one/d", &to).await);
    fails(InvalidPath, copy_all(&composite, "/one/d", &to).await);
    assert!(tree(&composite, "/two").await.is_empty());
    assert_eq!(composite.read_to_string(&deep).await.unwrap(), "x");
}
