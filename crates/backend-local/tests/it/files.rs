//! Files on the disk: modes and owners, races, leftovers, special files, deep
//! trees, a full disk.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::sync::{Arc, Barrier};
use std::time::{Duration, SystemTime};

use backend_core::limits::{EDIT_BYTES, NAME_BYTES, TEMPORARY_PREFIX};
use backend_core::ops::*;
use backend_core::{Backend, BackendExt as _, Edit, ErrorKind};
use backend_local::LocalBackend;
use backend_testkit::fails;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::FutureExt as _;
use rustix::fs::{CWD, FileType, Mode};

use crate::support::disk::{BOTH, Mounted, at, directory, mode, names, open, open_by, set_mode};

async fn text(backend: &LocalBackend, path: &str) -> String {
    backend.read_to_string(path).await.unwrap()
}

/// Runs `work` in sixteen threads at the same time.
fn in_sixteen_threads<T: Send + 'static>(
    work: impl Fn(usize) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let barrier = Arc::new(Barrier::new(16));
    let threads: Vec<_> = (0..16)
        .map(|n| {
            let (work, barrier) = (work.clone(), Arc::clone(&barrier));
            std::thread::spawn(move || {
                barrier.wait();
                work(n)
            })
        })
        .collect();
    let results = threads.into_iter().map(|thread| thread.join().unwrap());
    results.collect()
}

/// A change on this thread is done at the first poll. Everything that could wait for more
/// than the local disk is done elsewhere, with the same result.
#[tokio::test]
async fn small_changes_are_made_on_this_thread_if_wanted() {
    let (_keep, root) = directory();
    let backend = LocalBackend::builder(&root)
        .write_inline(true)
        .open()
        .unwrap();
    fs::write(root.join("large"), vec![b'x'; 1 << 20]).unwrap();
    symlink("large", root.join("link")).unwrap();
    let small = at("small");
    let durable = WriteOptions::default().durable(true);
    let write = |path: &str, bytes: usize, options| {
        let (backend, path) = (backend.clone(), at(path));
        let content = Content::from(vec![b'y'; bytes]);
        async move { backend.write(&path, content, options).await }
    };
    // The kernel may drop what it has cached, but not every time.
    let at_once = (0..100).any(|_| {
        let written = write("small", 10, WriteOptions::default()).now_or_never();
        written.is_some_and(|written| written.is_ok())
    });
    assert!(at_once);
    let edited = (0..100).any(|n| {
        let (old, new) = if n % 2 == 0 {
            ("yyyyy", "z")
        } else {
            ("z", "yyyyy")
        };
        let edits = [Edit::new(old, new).all()];
        let edit = backend.edit(&small, &edits, EditOptions::default());
        edit.now_or_never().is_some_and(|edited| edited.is_ok())
    });
    assert!(edited);
    for (path, bytes, options) in [
        ("small", 1 << 20, WriteOptions::default()),
        ("small", 10, durable),
        ("large", 10, WriteOptions::default()),
        ("link", 10, WriteOptions::default()),
        ("new/small", 10, WriteOptions::default()),
    ] {
        let is_waited_for = is_waited_for(async || {
            let _ = fs::remove_dir_all(root.join("new"));
            fs::write(root.join("large"), vec![b'x'; 1 << 20]).unwrap();
            let is_waited_for = waits(write(path, bytes, options)).await;
            assert_eq!(fs::read(root.join(path)).unwrap().len(), bytes, "{path}");
            is_waited_for
        });
        assert!(is_waited_for.await, "{path} {bytes}");
    }
    // Without the option nothing is.
    let other = LocalBackend::open(&root).unwrap();
    let is_waited_for = is_waited_for(async || {
        waits(other.write(&small, "z".into(), WriteOptions::default())).await
    });
    assert!(is_waited_for.await);
}

/// Whether a call is ever waited for. Another thread may have done its work before this
/// one looks, but not every time.
async fn is_waited_for(call: impl AsyncFn() -> bool) -> bool {
    for _ in 0..100 {
        if call().await {
            return true;
        }
    }
    false
}

/// Runs a call, and returns whether it was not done at the first poll.
async fn waits<T>(call: impl Future<Output = backend_core::Result<T>>) -> bool {
    let mut call = std::pin::pin!(call);
    match call.as_mut().now_or_never() {
        Some(done) => {
            done.unwrap();
            false
        }
        None => {
            call.await.unwrap();
            true
        }
    }
}

#[tokio::test]
async fn a_read_only_backend_changes_nothing() {
    let (_keep, root) = directory();
    fs::write(root.join("file"), "old").unwrap();
    let stale = root.join(format!("{TEMPORARY_PREFIX}1"));
    let old = fs::File::create(&stale).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(7200))
        .unwrap();
    let backend = LocalBackend::builder(&root).read_only(true).open().unwrap();
    assert!(!backend.info().capabilities.writable);
    let stream = futures::stream::iter([Ok(Bytes::from("new"))]).boxed();
    for refused in [
        backend.write_file("file", "new").await.map(drop),
        backend
            .write_file("a/b", Content::Stream(stream))
            .await
            .map(drop),
        backend.replace_text("file", "old", "new").await.map(drop),
        backend
            .create_dir(&at("dir"), CreateDirOptions::default())
            .await,
        backend.delete_file("file").await,
        backend.delete_tree("/").await,
        backend.move_to("file", "moved").await,
        backend.copy_to("missing", "missing/copy").await,
    ] {
        fails(ErrorKind::PermissionDenied, refused);
    }
    assert_eq!(backend.read_to_string("file").await.unwrap(), "old");
    assert_eq!(backend.list_dir("/").await.unwrap().total, 1);
    assert_eq!(names(&root).len(), 2);
}

#[tokio::test]
async fn permission_bits_are_kept_and_copied() {
    let (_keep, root) = directory();
    let backend = open(&root);
    backend.write_file("script", "old").await.unwrap();
    assert_eq!(mode(&root.join("script")) & 0o600, 0o600);
    set_mode(&root.join("script"), 0o4751);
    backend.write_file("script", "new old").await.unwrap();
    assert_eq!(mode(&root.join("script")), 0o751);
    set_mode(&root.join("script"), 0o640);
    backend
        .replace_text("script", "new", "newer")
        .await
        .unwrap();
    assert_eq!(mode(&root.join("script")), 0o640);
    let durable = WriteOptions::default().durable(true);
    for name in ["script", "x/y/z"] {
        let path = at(name);
        let write = backend.write(&path, "safe".into(), durable);
        write.await.unwrap();
    }
    assert_eq!(text(&backend, "x/y/z").await, "safe");
    assert_eq!(mode(&root.join("script")), 0o640);
    fs::create_dir(root.join("dir")).unwrap();
    fs::write(root.join("dir/file"), "x").unwrap();
    set_mode(&root.join("dir/file"), 0o604);
    set_mode(&root.join("dir"), 0o511);
    let recursive = CopyOptions::default().recursive(true);
    backend
        .copy(&at("dir"), &at("copy"), recursive)
        .await
        .unwrap();
    assert_eq!(mode(&root.join("copy")), 0o511);
    assert_eq!(mode(&root.join("copy/file")), 0o604);
    backend.copy_to("script", "script2").await.unwrap();
    assert_eq!(mode(&root.join("script2")), 0o640);
}

#[test]
fn of_sixteen_threads_one_creates() {
    for resolution in BOTH {
        let (_keep, root) = directory();
        let backend = open_by(&root, resolution);
        let results = in_sixteen_threads(move |n| {
            let write = backend.write_new_file("a/b/file", format!("{n}"));
            futures::executor::block_on(write)
        });
        let winners: Vec<_> = (0..16).filter(|n| results[*n].is_ok()).collect();
        assert_eq!(winners.len(), 1);
        for error in results.into_iter().filter_map(Result::err) {
            assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        }
        let content = fs::read_to_string(root.join("a/b/file")).unwrap();
        assert_eq!(content, winners[0].to_string());
        assert_eq!(names(&root.join("a/b")), ["file"]);
        assert_eq!(names(&root), ["a"]);
    }
}

#[test]
fn sixteen_edits_of_one_file_all_apply() {
    let (_keep, root) = directory();
    let lines: String = (0..16).map(|n| format!("line {n};\n")).collect();
    fs::write(root.join("file"), lines).unwrap();
    symlink("file", root.join("link")).unwrap();
    let backend = open(&root);
    let edits = in_sixteen_threads(move |n| {
        let path = if n % 2 == 0 { "file" } else { "link" };
        let (old, new) = (format!("line {n};"), format!("edited {n};"));
        futures::executor::block_on(backend.replace_text(path, &old, &new))
    });
    for edit in edits {
        edit.unwrap();
    }
    let expected: String = (0..16).map(|n| format!("edited {n};\n")).collect();
    assert_eq!(fs::read_to_string(root.join("file")).unwrap(), expected);
    assert_eq!(names(&root), ["file", "link"]);
}

#[tokio::test]
async fn stale_temporaries_go_and_fresh_ones_stay_unseen() {
    let (_keep, root) = directory();
    let path = |name: &str| root.join(format!("{TEMPORARY_PREFIX}{name}"));
    let stale = fs::File::create(path("stale")).unwrap();
    stale
        .set_modified(SystemTime::now() - Duration::from_secs(3700))
        .unwrap();
    fs::File::create(path("fresh")).unwrap();
    fs::write(root.join("shown"), "x").unwrap();
    let listing = open(&root).list_dir("/").await.unwrap();
    assert_eq!((listing.total, listing.entries[0].name()), (1, "shown"));
    assert!(!path("stale").exists() && path("fresh").exists());
}

#[tokio::test]
async fn a_stream_that_is_dropped_or_fails_leaves_nothing() {
    let (_keep, root) = directory();
    let backend = open(&root);
    let large = Bytes::from(vec![b'x'; 1024 * 1024]);
    for ending in ["dropped", "failing"] {
        let (reached, half_way) = futures::channel::oneshot::channel();
        let rest = futures::stream::once(async move {
            let _ = reached.send(());
            match ending {
                "failing" => Err(backend_core::Error::unavailable("gone")),
                _ => futures::future::pending().await,
            }
        });
        let content = futures::stream::iter([Ok(large.clone())])
            .chain(rest)
            .boxed();
        let write = backend.write_file("new/dir/file", Content::Stream(content));
        let write = std::pin::pin!(write);
        match futures::future::select(write, half_way).await {
            futures::future::Either::Left((result, _)) => {
                fails(ErrorKind::Unavailable, result);
            }
            futures::future::Either::Right((_, write)) => {
                let left = names(&root);
                assert!(left[0].starts_with(TEMPORARY_PREFIX), "{left:?}");
                assert!(write.now_or_never().is_none_or(|result| result.is_err()));
            }
        }
    }
    // The pinned future above has been dropped by now.
    assert_eq!(names(&root), [""; 0]);
}

#[tokio::test]
async fn special_files_are_told_and_nobody_waits_for_them() {
    for resolution in BOTH {
        let (_keep, root) = directory();
        rustix::fs::mkfifoat(CWD, root.join("fifo"), Mode::from_raw_mode(0o600)).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        let mut special = vec!["fifo", "socket"];
        let zero = rustix::fs::makedev(1, 5);
        let made = rustix::fs::mknodat(
            CWD,
            root.join("zero"),
            FileType::CharacterDevice,
            Mode::from_raw_mode(0o600),
            zero,
        );
        match made {
            Ok(()) => special.push("zero"),
            Err(_) => println!("skipped: devices cannot be made"),
        }
        symlink("fifo", root.join("link")).unwrap();
        let backend = open_by(&root, resolution);
        for name in special.iter().chain(&["link"]) {
            assert_eq!(backend.metadata(name).await.unwrap().kind, FileKind::Other);
            let list = backend.list_dir(name).await.unwrap();
            assert_eq!((list.total, list.entries[0].kind), (1, FileKind::Other));
            assert!(backend.exists(name).await.unwrap());
            assert!(!backend.is_file(name).await.unwrap());
            let unchanged = WriteMode::IfUnchanged(ContentHash::of(b""));
            let unchanged = WriteOptions::default().mode(unchanged);
            for refused in [
                backend.read_bytes(name).await.map(drop),
                backend
                    .read_text(&at(name), TextOptions::default())
                    .await
                    .map(drop),
                backend.write_file(name, "x").await.map(drop),
                backend
                    .write(&at(name), "x".into(), unchanged)
                    .await
                    .map(drop),
                backend.replace_text(name, "a", "b").await.map(drop),
                backend.grep(GrepQuery::new("x", at(name))).await.map(drop),
            ] {
                fails(ErrorKind::InvalidInput, refused);
            }
            let new = backend.write_new_file(name, "x").await;
            fails(ErrorKind::AlreadyExists, new);
        }
        for name in special {
            fails(ErrorKind::InvalidInput, backend.copy_to(name, "copy").await);
            fs::create_dir_all(root.join("tree/a")).unwrap();
            fs::write(root.join("tree/a/file"), "x").unwrap();
            backend
                .move_to(name, &format!("tree/a/{name}"))
                .await
                .unwrap();
            let recursive = CopyOptions::default().recursive(true);
            let copied = backend.copy(&at("tree"), &at("new/copy"), recursive).await;
            fails(ErrorKind::InvalidInput, copied);
            assert!(!root.join("new").exists(), "something was copied");
            backend.delete_tree("tree").await.unwrap();
        }
        assert_eq!(names(&root), ["link"]);
    }
}

#[tokio::test]
async fn the_longest_name_can_be_written_moved_and_copied() {
    let (_keep, root) = directory();
    let backend = open(&root);
    let (one, two) = ("é".repeat(127) + "x", "n".repeat(NAME_BYTES));
    backend.write_file(&one, "x").await.unwrap();
    backend.write_file(&one, "xy").await.unwrap();
    backend.replace_text(&one, "y", "z").await.unwrap();
    backend.copy_to(&one, &two).await.unwrap();
    backend.move_to(&two, &format!("d/{two}")).await.unwrap();
    assert_eq!(text(&backend, &format!("d/{two}")).await, "xz");
}

#[tokio::test]
async fn a_size_that_is_not_told_is_found_out() {
    let backend = LocalBackend::builder("/proc/self").read_only(true);
    let backend = backend.open().unwrap();
    let (path, options) = (at("status"), ReadOptions::default());
    let status = backend.read(&path, options).await.unwrap();
    assert!(status.data.starts_with(b"Name:"));
    assert_eq!(status.size, status.data.len() as u64);
    let part = backend.read(&path, options.range(0..4)).await.unwrap();
    assert_eq!(&part.data[..], b"Name");
    let large = backend.read(&path, options.max_bytes(10)).await;
    fails(ErrorKind::TooLarge, large);
    let window = backend.read_text(&path, TextOptions::default()).await;
    assert!(window.unwrap().text().starts_with("Name:"));
}

#[tokio::test]
async fn a_size_that_nobody_can_hold_is_not_believed() {
    let (_keep, root) = directory();
    let file = fs::File::create(root.join("sparse")).unwrap();
    file.set_len(1 << 43).unwrap();
    let backend = open(&root);
    let read = backend.read_bytes("sparse").await;
    fails(ErrorKind::TooLarge, read);
    let tail = ReadOptions::default().range((1 << 43) - 3..);
    let tail = backend.read(&at("sparse"), tail).await.unwrap();
    assert_eq!((tail.data.len(), tail.size), (3, 1 << 43));
    let edited = fails(
        ErrorKind::TooLarge,
        backend.replace_text("sparse", "a", "b").await,
    );
    assert!(edited.message().contains(&EDIT_BYTES.to_string()));
    // No memory is allocated before there are bytes to put into it.
    let whole = ReadOptions::default().max_bytes(u64::MAX);
    assert!(backend.read(&at("sparse"), whole).now_or_never().is_none());
}

#[tokio::test]
async fn a_file_over_the_limit_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let backend = LocalBackend::builder(directory.path())
        .max_file_bytes(10)
        .open()
        .unwrap();
    backend.write_file("file", "0123456789").await.unwrap();
    let larger = backend.write_file("file", "0123456789a").await;
    fails(ErrorKind::TooLarge, larger);
    let edited = backend.replace_text("file", "9", "90").await;
    fails(ErrorKind::TooLarge, edited);
    let pieces = futures::stream::iter(["012345", "67890"].map(|piece| Ok(piece.into())));
    let path = backend.path("new/streamed").unwrap();
    let pieces = Content::Stream(pieces.boxed());
    let streamed = backend.write(&path, pieces, WriteOptions::default()).await;
    fails(ErrorKind::TooLarge, streamed);
    let file = fs::read(directory.path().join("file")).unwrap();
    assert_eq!(file, b"0123456789");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

/// Tests that need root for setup: file systems, and files of other users.
mod needs_root {
    use super::*;

    #[tokio::test]
    #[ignore = "needs root: cargo xtask test-all --only root"]
    async fn the_owner_is_kept_where_that_is_permitted() {
        let (_keep, root) = directory();
        fs::write(root.join("file"), "old").unwrap();
        std::os::unix::fs::chown(root.join("file"), Some(1234), Some(4321)).unwrap();
        let backend = open(&root);
        backend.write_file("file", "new").await.unwrap();
        backend.replace_text("file", "new", "newer").await.unwrap();
        let found = fs::metadata(root.join("file")).unwrap();
        assert_eq!((found.uid(), found.gid()), (1234, 4321));
    }

    #[tokio::test]
    #[ignore = "needs root: cargo xtask test-all --only root"]
    async fn a_full_disk_loses_nothing() {
        let (_keep, root) = directory();
        let _small = Mounted::at(&root, "size=256k");
        let backend = open(&root);
        backend.write_file("file", "old content\n").await.unwrap();
        let large = vec![b'x'; 1024 * 1024];
        let pieces = large
            .chunks(10_000)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)));
        let stream = futures::stream::iter(pieces.collect::<Vec<_>>()).boxed();
        fs::write(root.join("half"), vec![b'y'; 150 * 1024]).unwrap();
        for refused in [
            backend.write_file("file", large.clone()).await.map(drop),
            backend
                .write_file("new/dir/file", large.clone())
                .await
                .map(drop),
            backend
                .write_file("file", Content::Stream(stream))
                .await
                .map(drop),
            backend
                .replace_text("file", "old", &"z".repeat(200 * 1024))
                .await
                .map(drop),
            backend.copy_to("half", "copy").await,
        ] {
            fails(ErrorKind::TooLarge, refused);
        }
        assert_eq!(names(&root), ["file", "half"]);
        assert_eq!(text(&backend, "file").await, "old content\n");
    }
}
