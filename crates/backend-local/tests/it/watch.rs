//! Watching a real directory, beyond what the conformance suite can do.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use backend_core::ops::{Change, ChangeKind, RenameOptions, WatchEvent, WatchQuery};
use backend_core::{Backend as _, BackendExt as _, VPath, WatchStream};
use backend_local::LocalBackend;
use futures::StreamExt as _;

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

async fn watch(backend: &LocalBackend, at: &str) -> WatchStream {
    backend.watch(WatchQuery::new(path(at))).await.unwrap()
}

async fn next(stream: &mut WatchStream) -> WatchEvent {
    stream.next().await.unwrap().unwrap()
}

async fn change(stream: &mut WatchStream) -> Change {
    match next(stream).await {
        WatchEvent::Change(change) => change,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn moves_are_told_as_moves() {
    let root = tempfile::tempdir().unwrap();
    let backend = LocalBackend::open(root.path()).unwrap();
    backend.write_file("d/a.txt", "a").await.unwrap();
    backend.write_file("b.txt", "b").await.unwrap();
    let mut stream = watch(&backend, "/").await;
    backend.move_to("d", "e").await.unwrap();
    assert_eq!(
        change(&mut stream).await,
        Change::renamed(path("/d"), path("/e"))
    );
    let replace = RenameOptions::default().overwrite(true);
    let (from, to) = (path("/e/a.txt"), path("/b.txt"));
    backend.rename(&from, &to, replace).await.unwrap();
    assert_eq!(change(&mut stream).await, Change::renamed(from, to));
    backend.write_file("b.txt", "c").await.unwrap();
    assert_eq!(change(&mut stream).await, Change::changed(path("/b.txt")));
}

#[tokio::test]
async fn the_end_of_the_root_ends_the_stream() {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path().join("root");
    std::fs::create_dir_all(root.join("d")).unwrap();
    let backend = LocalBackend::open(&root).unwrap();
    let mut stream = watch(&backend, "/").await;
    std::fs::remove_dir_all(&root).unwrap();
    assert_eq!(change(&mut stream).await, Change::deleted(path("/d")));
    assert_eq!(change(&mut stream).await, Change::deleted(path("/")));
    assert!(stream.next().await.is_none());
}

/// A directory that becomes a link to the outside is not followed there.
#[tokio::test]
async fn nothing_outside_is_told() {
    let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::create_dir(root.path().join("d")).unwrap();
    let backend = LocalBackend::open(root.path()).unwrap();
    let mut stream = watch(&backend, "/").await;
    for round in 0..50 {
        std::fs::remove_dir(root.path().join("d")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("d")).unwrap();
        let secret = outside.path().join(format!("secret{round}"));
        std::fs::create_dir(&secret).unwrap();
        std::fs::File::create(secret.join("inside")).unwrap();
        std::fs::remove_file(root.path().join("d")).unwrap();
        std::fs::create_dir(root.path().join("d")).unwrap();
    }
    std::fs::File::create(root.path().join("fence")).unwrap();
    loop {
        let told = change(&mut stream).await;
        if told.path == path("/fence") {
            break;
        }
        assert_eq!(told.path, path("/d"), "{told:?}");
    }
}

/// A reader that reads nothing until the end is told that changes were lost, and what
/// comes later is told again.
#[tokio::test]
async fn a_directory_of_100_000_files_is_deleted() {
    let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let root = root.unwrap();
    let many = root.path().join("many");
    std::fs::create_dir(&many).unwrap();
    for number in 0..100_000 {
        std::fs::File::create(many.join(number.to_string())).unwrap();
    }
    let backend = LocalBackend::open(root.path()).unwrap();
    let mut stream = watch(&backend, "/").await;
    backend.delete_tree("many").await.unwrap();
    backend.write_file("fence", "").await.unwrap();
    let mut overflows = 0;
    loop {
        match next(&mut stream).await {
            WatchEvent::Overflow => {
                overflows += 1;
                // The fence may be among what was lost.
                backend.delete_file("fence").await.unwrap();
                backend.write_file("fence", "").await.unwrap();
            }
            event if event == Change::created(path("/fence")).into() && overflows > 0 => break,
            _ => {}
        }
    }
    backend.write_file("later", "").await.unwrap();
    while change(&mut stream).await != Change::created(path("/later")) {}
}

/// A copy of the tree's names, kept up to date by changes alone.
#[derive(Default)]
struct Mirror(BTreeSet<VPath>);

impl Mirror {
    fn apply(&mut self, change: &Change) {
        let beneath = |path: &VPath, top: &VPath| path.starts_with(top);
        match &change.kind {
            ChangeKind::Created => {
                self.0.insert(change.path.clone());
            }
            ChangeKind::Changed => assert!(self.0.contains(&change.path), "{change:?}"),
            ChangeKind::Deleted => self.0.retain(|path| !beneath(path, &change.path)),
            ChangeKind::Renamed { from } => {
                self.0.retain(|path| !beneath(path, &change.path));
                let (moved, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.0)
                    .into_iter()
                    .partition(|path| beneath(path, from));
                assert!(moved.contains(from), "{change:?} of what is not known");
                let moved = moved.iter().map(|path| path.rebase(from, &change.path));
                self.0 = kept.into_iter().chain(moved.map(Result::unwrap)).collect();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the names beneath a directory.
fn names(directory: &Path, at: &VPath) -> BTreeSet<VPath> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let path = at.child(entry.file_name().to_str().unwrap()).unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(names(&entry.path(), &path));
        }
        found.insert(path);
    }
    found
}

/// Makes one change, which may fail.
fn change_something(root: &Path, random: &mut fastrand::Rng) {
    let mut name = || {
        let depth = random.usize(1..4);
        let names = (0..depth).map(|_| ["a", "b", "c"][random.usize(0..3)]);
        root.join(names.collect::<Vec<_>>().join("/"))
    };
    let (one, two) = (name(), name());
    let _ = match random.u32(0..10) {
        0..3 => std::fs::create_dir_all(&one),
        3..5 => std::fs::write(&one, "text"),
        5..8 => std::fs::rename(&one, &two),
        8 => std::fs::remove_dir_all(&one),
        _ => std::fs::remove_file(&one),
    };
}

/// Whatever happens, and however fast: the changes alone lead to the tree that is there.
#[tokio::test]
async fn changes_lead_to_the_tree() {
    for seed in 0..40 {
        let root = tempfile::tempdir().unwrap();
        let backend = LocalBackend::open(root.path()).unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..20 {
            change_something(root.path(), &mut random);
        }
        let mut stream = watch(&backend, "/").await;
        let mut mirror = Mirror(names(root.path(), &path("/")));
        for _ in 0..300 {
            change_something(root.path(), &mut random);
        }
        std::fs::File::create(root.path().join("fence")).unwrap();
        // A directory that was moved while it was looked at may be told a little later
        // than the last change.
        let expected = names(root.path(), &path("/"));
        let rest = async {
            while mirror.0 != expected {
                match next(&mut stream).await {
                    WatchEvent::Change(change) => mirror.apply(&change),
                    // The tree could not be followed, and is listed again.
                    _ => mirror.0.clone_from(&expected),
                }
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(30), rest).await;
        assert!(in_time.is_ok(), "seed {seed}: {:?} {expected:?}", mirror.0);
    }
}
