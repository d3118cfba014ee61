//! Deleting, copying and moving trees, and files with more than one name.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use backend_core::limits::PATH_DEPTH;
use backend_core::ops::*;
use backend_core::{Backend, BackendExt as _, ErrorKind};
use backend_local::{LocalBackend, NameSpace};
use backend_testkit::fails;
use rustix::fs::{Mode, OFlags};

use crate::support::disk::{Mounted, at, directory, mode, names, open, set_mode};

/// Creates nested directories, deeper than a path can express.
fn nest(root: &Path, name: &str, levels: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut here: OwnedFd = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        rustix::fs::mkdirat(&here, name, Mode::from_raw_mode(0o755)).unwrap();
        rustix::fs::openat(
            &here,
            "f",
            OFlags::CREATE | OFlags::WRONLY,
            Mode::from_raw_mode(0o644),
        )
        .unwrap();
        here = rustix::fs::openat(&here, name, flags, Mode::empty()).unwrap();
    }
}

#[tokio::test]
async fn a_tree_deeper_than_paths_is_deleted_and_not_copied() {
    let (_keep, root) = directory();
    nest(&root, "deep", 1_000);
    let backend = open(&root);
    let recursive = CopyOptions::default().recursive(true);
    let copied = backend.copy(&at("deep"), &at("copy"), recursive).await;
    fails(ErrorKind::InvalidPath, copied);
    fails(
        ErrorKind::InvalidPath,
        backend.move_to("deep", "deeper").await,
    );
    let deepest = at(&"deep/".repeat(PATH_DEPTH));
    let listing = backend.ls(&deepest, LsOptions::default()).await.unwrap();
    assert_eq!((listing.total, listing.skipped.unreadable), (0, 2));
    backend.delete_tree("deep").await.unwrap();
    assert_eq!(names(&root), ["f"]);
}

#[tokio::test]
async fn a_tree_is_copied_with_links_and_raw_names() {
    let (_keep, root) = directory();
    nest(&root, "t", 40);
    symlink("../gone", root.join("t/link")).unwrap();
    let backend = open(&root);
    let recursive = CopyOptions::default().recursive(true);
    backend
        .copy(&at("t"), &at("x/copy"), recursive)
        .await
        .unwrap();
    assert_eq!(
        fs::read_link(root.join("x/copy/link")).unwrap(),
        Path::new("../gone")
    );
    let deepest = format!("x/copy/{}f", "t/".repeat(38));
    assert!(backend.exists(&deepest).await.unwrap());
    // Inside itself through a link, which a comparison of paths does not show.
    symlink("t", root.join("alias")).unwrap();
    for to in ["alias/new", "alias/t/new/deep"] {
        let copied = backend.copy(&at("t"), &at(to), recursive).await;
        fails(ErrorKind::InvalidInput, copied);
        let moved = backend
            .rename(&at("t"), &at(to), RenameOptions::default())
            .await;
        fails(ErrorKind::InvalidInput, moved);
    }
    assert_eq!(names(&root.join("t")), ["f", "link", "t"]);
}

#[tokio::test]
async fn one_file_by_two_names() {
    let (_keep, root) = directory();
    fs::create_dir(root.join("d")).unwrap();
    fs::write(root.join("d/one"), "x").unwrap();
    fs::hard_link(root.join("d/one"), root.join("d/two")).unwrap();
    symlink("d", root.join("alias")).unwrap();
    let backend = open(&root);
    let overwrite = RenameOptions::default().overwrite(true);
    let same = backend
        .rename(&at("d/one"), &at("alias/one"), overwrite)
        .await;
    fails(ErrorKind::InvalidInput, same);
    let copy = CopyOptions::default().overwrite(true);
    let same = backend.copy(&at("d/one"), &at("alias/one"), copy).await;
    fails(ErrorKind::InvalidInput, same);
    backend
        .rename(&at("d/one"), &at("d/two"), overwrite)
        .await
        .unwrap();
    assert_eq!(names(&root.join("d")), ["two"]);
    assert_eq!(backend.read_to_string("d/two").await.unwrap(), "x");
}

/// Tests that need root for setup: another file system.
mod needs_root {
    use super::*;

    /// A working directory on a separate file system, such as a container's
    /// volume, behaves like any other, even after its path leads elsewhere.
    #[tokio::test]
    #[ignore = "needs root: cargo xtask test-all --only root"]
    async fn works_in_a_directory_that_is_mounted() {
        let (_keep, root) = directory();
        let place = root.join("a/desk");
        fs::create_dir_all(&place).unwrap();
        fs::write(root.join("outside"), "outside").unwrap();
        let mut mounted = Mounted::at(&place, "rw");
        let backend = LocalBackend::builder(&root).working_dir(at("/a/desk"));
        let backend = backend.open().unwrap();
        backend.write_file("d/file", "content").await.unwrap();
        for link in ["../../outside", "d/file"] {
            let name = link.replace('/', "-");
            std::os::unix::fs::symlink(link, place.join(&name)).unwrap();
            let expected = link.rsplit('/').next().unwrap().replace("file", "content");
            assert_eq!(backend.read_to_string(&name).await.unwrap(), expected);
            let refuse = ReadOptions::default().links(Links::Refuse);
            let refused = backend
                .read(&at("/a/desk").child(&name).unwrap(), refuse)
                .await;
            fails(ErrorKind::IsALink, refused);
        }
        assert_eq!(
            backend.read_to_string("/a/desk/d/file").await.unwrap(),
            "content"
        );
        let here = backend.metadata("").await.unwrap();
        assert_eq!(here.kind, FileKind::Directory);
        fails(ErrorKind::NotFound, backend.read_to_string("d/none").await);
        fs::rename(root.join("a"), root.join("b")).unwrap();
        mounted.0 = root.join("b/desk");
        fs::create_dir_all(place.join("d")).unwrap();
        fs::write(place.join("d/file"), "other").unwrap();
        assert_eq!(backend.read_to_string("d/file").await.unwrap(), "other");
        assert_eq!(
            backend.read_to_string("/b/desk/d/file").await.unwrap(),
            "content"
        );
    }

    #[tokio::test]
    #[ignore = "needs root: cargo xtask test-all --only root"]
    async fn moves_from_one_file_system_to_another() {
        let (_keep, root) = directory();
        let other = tempfile::tempdir().unwrap();
        let _mounted = Mounted::at(other.path(), "rw");
        let device = |path: &Path| fs::metadata(path).unwrap().dev();
        assert_ne!(device(&root), device(other.path()));
        let allowed = vec![other.path().to_owned()];
        let backend = LocalBackend::builder(&root).names(NameSpace::Host { allowed });
        let backend = backend.open().unwrap();
        let to = |name: &str| format!("{}/{name}", other.path().to_str().unwrap());
        fs::create_dir_all(root.join("tree/a")).unwrap();
        fs::write(root.join("tree/a/file"), "x").unwrap();
        fs::write(root.join("file"), "y").unwrap();
        set_mode(&root.join("file"), 0o640);
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let file = fs::File::options().write(true).open(root.join("file"));
        file.unwrap().set_modified(time).unwrap();
        backend.move_to("tree", &to("new/tree")).await.unwrap();
        backend.move_to("file", &to("file")).await.unwrap();
        assert_eq!(names(&root), [""; 0]);
        assert_eq!(
            backend
                .read_to_string(&to("new/tree/a/file"))
                .await
                .unwrap(),
            "x"
        );
        assert_eq!(mode(Path::new(&to("file"))), 0o640);
        let moved = backend.metadata(&to("file")).await.unwrap();
        assert_eq!(moved.modified, Some(time));
        fs::write(root.join("file"), "z").unwrap();
        let taken = backend.move_to("file", &to("file")).await;
        fails(ErrorKind::AlreadyExists, taken);
        assert_eq!(names(&root), ["file"]);
    }
}
