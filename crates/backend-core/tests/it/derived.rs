//! Derived operations and convenience methods over a backend that fails.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backend_core::derived::{
    copy_by_read, edit_by_write, edit_bytes, glob_by_walk, grep_by_read, rename_by_copy,
    resolve_without_links, text_by_read,
};
use backend_core::limits::{EDIT_ATTEMPTS, EDIT_BYTES, EDITS, IGNORE_FILE_BYTES};
use backend_core::ops::{
    CopyOptions, EditOptions, GlobQuery, GrepQuery, RenameOptions, TextOptions,
};
use backend_core::search::Exclude;
use backend_core::{Backend, BackendExt as _, Edit, Error, ErrorKind, Operation, VPath};
use backend_state::StateBackend;
use backend_testkit::fake::Intercepted;
use backend_testkit::{block_on, fails, path};

async fn store(files: &[(&str, &str)]) -> StateBackend {
    let backend = StateBackend::new();
    for (path, content) in files {
        backend.write_file(path, *content).await.unwrap();
    }
    backend
}

/// Wraps `inner` so that `operation` at `at` fails with `kind`.
fn failing(
    inner: StateBackend,
    operation: Operation,
    at: &'static str,
    kind: ErrorKind,
) -> Intercepted<StateBackend> {
    Intercepted::new(inner, move |call| {
        if call.operation == operation && call.path.as_str() == at {
            return Err(Error::new(kind, "on purpose"));
        }
        Ok(())
    })
}

#[test]
fn a_search_passes_over_what_cannot_be_opened() {
    block_on(async {
        let files = [
            ("/a/x", "n"),
            ("/b/x", "n"),
            ("/c", "n"),
            ("/b/.ignore", "y"),
        ];
        for error in [ErrorKind::PermissionDenied, ErrorKind::NotFound] {
            let backend = failing(store(&files).await, Operation::Ls, "/b", error);
            let found = glob_by_walk(&backend, GlobQuery::new("**", VPath::root())).await;
            let found = found.unwrap();
            assert_eq!((found.files.len(), found.skipped.unreadable), (2, 1));
            let backend = failing(store(&files).await, Operation::Read, "/b/x", error);
            let found = grep_by_read(&backend, GrepQuery::new("n", VPath::root())).await;
            let found = found.unwrap();
            assert_eq!((found.matches, found.skipped.unreadable), (2, 1));
            let backend = failing(store(&files).await, Operation::Read, "/b/.ignore", error);
            let found = glob_by_walk(&backend, GlobQuery::new("**", VPath::root())).await;
            assert_eq!(found.unwrap().skipped.unreadable, 1);
        }
    });
}

#[test]
fn a_search_ends_when_the_backend_is_gone() {
    block_on(async {
        let files = [("/b/x", "n"), ("/b/.ignore", "y")];
        for (operation, at) in [
            (Operation::Stat, "/"),
            (Operation::Ls, "/"),
            (Operation::Ls, "/b"),
            (Operation::Read, "/b/.ignore"),
        ] {
            let gone = ErrorKind::Unavailable;
            let backend = failing(store(&files).await, operation, at, gone);
            let error = glob_by_walk(&backend, GlobQuery::new("**", VPath::root())).await;
            let error = fails(gone, error);
            assert_eq!(error.operation(), Some(Operation::Glob));
        }
        let gone = ErrorKind::Unavailable;
        let backend = failing(store(&files).await, Operation::Read, "/b/x", gone);
        let found = grep_by_read(&backend, GrepQuery::new("n", VPath::root())).await;
        fails(gone, found);
    });
}

#[test]
fn a_named_file_that_is_excluded_is_not_read() {
    block_on(async {
        let gone = ErrorKind::Unavailable;
        let backend = failing(store(&[("/a", "n")]).await, Operation::Read, "/a", gone);
        let exclude = Exclude::hide(["/a"]).unwrap();
        let query = GrepQuery::new("n", path("/a")).exclude(exclude);
        assert_eq!(grep_by_read(&backend, query).await.unwrap().matches, 0);
    });
}

#[test]
fn an_ignore_file_that_is_too_large_is_not_honoured() {
    block_on(async {
        let rules = format!("x\n{}", "#\n".repeat(IGNORE_FILE_BYTES / 2));
        let backend = store(&[("/d/.gitignore", &rules), ("/d/x", "")]).await;
        for found in [
            glob_by_walk(&backend, GlobQuery::new("**", VPath::root())).await,
            backend.glob(GlobQuery::new("**", VPath::root())).await,
        ] {
            let found = found.unwrap();
            assert_eq!((found.files.len(), found.skipped.unreadable), (1, 1));
        }
    });
}

/// Another writer changes the file before each of our writes.
#[test]
fn an_edit_starts_over_a_few_times_and_then_conflicts() {
    block_on(async {
        let writes = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&writes);
        let conflicting = Intercepted::new(store(&[("/f", "a")]).await, move |call| {
            if call.operation == Operation::Write {
                count.fetch_add(1, Ordering::Relaxed);
                return Err(Error::conflict());
            }
            Ok(())
        });
        let edits = [Edit::new("a", "b")];
        let edited = edit_by_write(&conflicting, &path("/f"), &edits, EditOptions::default()).await;
        let error = fails(ErrorKind::Conflict, edited);
        assert_eq!(error.operation(), Some(Operation::Edit));
        assert_eq!(writes.load(Ordering::Relaxed), EDIT_ATTEMPTS);

        let once = Intercepted::failing_once(store(&[("/f", "a")]).await, 1, Error::conflict);
        let edited = edit_by_write(&once, &path("/f"), &edits, EditOptions::default()).await;
        assert_eq!(edited.unwrap().replacements, [1]);
        assert_eq!(once.inner().read_to_string("/f").await.unwrap(), "b");
    });
}

#[test]
fn an_edit_has_limits() {
    let options = EditOptions::default();
    let many = vec![Edit::new("a", "b"); EDITS + 1];
    fails(ErrorKind::TooLarge, edit_bytes(b"a", &many, &options));
    let large = vec![b'a'; EDIT_BYTES as usize + 1];
    let one = [Edit::new("a", "b")];
    fails(ErrorKind::TooLarge, edit_bytes(&large, &one, &options));
    fails(ErrorKind::NotText, edit_bytes(b"\xff", &one, &options));
}

#[test]
fn what_fails_on_the_way_fails_the_copy() {
    block_on(async {
        let files = [("/d/a", "x"), ("/d/b", "y")];
        let gone = ErrorKind::Unavailable;
        let backend = failing(store(&files).await, Operation::Read, "/d/b", gone);
        let (from, to) = (path("/d"), path("/e"));
        let all = CopyOptions::default().recursive(true);
        let error = copy_by_read(&backend, &from, &to, all).await.unwrap_err();
        assert_eq!((error.kind(), error.path()), (gone, Some(&from)));
        let moved = rename_by_copy(&backend, &from, &path("/g"), RenameOptions::default()).await;
        fails(gone, moved);
        assert!(
            backend.inner().exists("/d/a").await.unwrap(),
            "the source is gone"
        );
        let backend = failing(store(&files).await, Operation::Stat, "/e", gone);
        fails(gone, copy_by_read(&backend, &from, &to, all).await);
        fails(gone, resolve_without_links(&backend, &to).await);
        let backend = failing(store(&files).await, Operation::Read, "/d/a", gone);
        let window = text_by_read(&backend, &path("/d/a"), TextOptions::default()).await;
        assert_eq!(window.unwrap_err().operation(), Some(Operation::ReadText));
    });
}

#[test]
fn exists_tells_denied_from_gone() {
    block_on(async {
        let denied = ErrorKind::PermissionDenied;
        let backend = failing(store(&[("/a", "x")]).await, Operation::Stat, "/a", denied);
        assert!(!backend.exists("/a").await.unwrap());
        let gone = ErrorKind::Unavailable;
        let backend = failing(store(&[("/a", "x")]).await, Operation::Stat, "/a", gone);
        fails(gone, backend.exists("/a").await);
    });
}

#[test]
fn conveniences_do_what_they_say() {
    block_on(async {
        let backend: Arc<dyn Backend> = Arc::new(store(&[("/d/a", "one two")]).await);
        assert!(backend.as_sandbox().is_none());
        assert_eq!(backend.metadata("d/a").await.unwrap().size, Some(7));
        let new = backend.write_new_file("d/a", "x").await;
        fails(ErrorKind::AlreadyExists, new);
        assert!(
            backend
                .write_new_file("d/b", b"\xff")
                .await
                .unwrap()
                .created
        );
        let text = backend.read_to_string("d/b").await.unwrap_err();
        assert_eq!(
            (text.kind(), text.path()),
            (ErrorKind::NotText, Some(&path("/d/b")))
        );
        assert_eq!(backend.read_bytes("d/b").await.unwrap(), &b"\xff"[..]);
        assert_eq!(backend.find_files("b").await.unwrap().files.len(), 1);
        assert_eq!(backend.search_text("two").await.unwrap().matches, 1);
        backend.move_to("d/b", "c").await.unwrap();
        backend.copy_to("c", "e").await.unwrap();
        backend.delete_tree("d").await.unwrap();
        backend.delete_file("c").await.unwrap();
        let left = backend.list_dir("").await.unwrap();
        assert_eq!((left.total, left.entries[0].name()), (1, "e"));
        fails(ErrorKind::InvalidPath, backend.path("~/x"));
    });
}
