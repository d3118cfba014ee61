//! Opens configurations with directories that are missing, are not directories, or
//! overlap.
use std::os::unix::fs::symlink;
use std::path::Path;

use backend_core::ErrorKind::{ApprovalRequired, Config, PermissionDenied};
use backend_core::{BackendExt as _, Error};
use backend_mounts::{Mode, Mount, MountConfig, MountTree, Opener};
use backend_testkit::fails;
use tempfile::TempDir;

/// Creates a directory that contains the directories `a` and `b` and the file `file`.
fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("a")).unwrap();
    std::fs::create_dir(place.path().join("b")).unwrap();
    std::fs::write(place.path().join("file"), "x").unwrap();
    place
}

fn open(place: &Path, toml: &str) -> Result<MountTree, Error> {
    Opener::from_toml(toml)?.base(place).open()
}

/// Returns the error message for an invalid configuration.
fn wrong(place: &Path, toml: &str) -> String {
    let error = fails(Config, open(place, toml));
    error.to_string()
}

#[test]
fn what_is_to_be_written_is_created() {
    let place = place();
    open(place.path(), "[paths.out]\nroot = 'new/deep'\nmode = 'rw'").unwrap();
    assert!(place.path().join("new/deep").is_dir());
}

#[test]
fn what_is_only_read_must_be_there() {
    let place = place();
    let text = "[paths.docs]\nroot = 'dcos'";
    let error = wrong(place.path(), text);
    assert!(
        error.contains("'/docs'") && error.contains("dcos"),
        "{error}"
    );
    assert!(!place.path().join("dcos").exists());
    let opener = Opener::from_toml(text).unwrap().base(place.path());
    opener.create_missing(true).open().unwrap();
    assert!(place.path().join("dcos").is_dir());
}

#[test]
fn a_file_is_no_directory() {
    let place = place();
    let error = wrong(place.path(), "root = 'file'");
    assert!(error.contains("not a directory"), "{error}");
    let error = wrong(place.path(), "root = 'file/beneath'");
    assert!(error.contains("Not a directory"), "{error}");
}

#[test]
fn directories_that_overlap_are_refused_by_whatever_name() {
    let place = place();
    symlink(place.path().join("a"), place.path().join("link")).unwrap();
    std::fs::create_dir(place.path().join("a/inner")).unwrap();
    for (one, two) in [
        ("a", "a"),
        ("a", "b/../a"),
        ("a", "a/inner"),
        ("a/inner", "a"),
        ("a", "link"),
        ("a", "link/inner"),
        ("link/new", "a"),
        ("a", "link/new/deeper"),
        (".", "b"),
    ] {
        let text = format!(
            "[paths.one]\nroot = '{one}'\nmode = 'rw'\n[paths.two]\nroot = '{two}'\nmode = 'rw'"
        );
        let error = wrong(place.path(), &text);
        assert!(
            error.contains("'/one'") && error.contains("'/two'"),
            "{one} {two}: {error}"
        );
    }
    assert!(!place.path().join("a/new").exists(), "nothing was created");
    let text = "[paths.one]\nroot = 'a'\n[paths.two]\nroot = 'b'";
    open(place.path(), text).unwrap();
    let text = "[paths.one]\nroot = 'new'\nmode = 'rw'\n[paths.two]\nroot = 'newer'\nmode = 'rw'";
    open(place.path(), text).unwrap();
}

#[test]
fn a_link_to_a_directory_is_that_directory() {
    let place = place();
    symlink("a", place.path().join("link")).unwrap();
    let tree = open(place.path(), "root = 'link'").unwrap();
    let host = place.path().canonicalize().unwrap().join("a");
    assert_eq!(tree.config().mounts[0].host_path, host);
    symlink("nowhere", place.path().join("broken")).unwrap();
    wrong(place.path(), "root = 'broken'");
    assert!(!place.path().join("nowhere").exists());
}

#[test]
fn texts_that_are_wrong_say_where() {
    let place = place();
    for (text, hint) in [
        ("", "no mounts"),
        ("[paths]", "no mount"),
        ("[paths.docs]\nrot = 'a'", "line 2"),
        ("[paths.docs]\nroot = 'a'\nmode = 'rx'", "line 3"),
        ("[paths.docs]\nroot = ''", "empty host path"),
        ("[paths.'a/b']\nroot = 'a'", "a/b"),
        ("[paths.'..']\nroot = 'a'", "'..'"),
        ("root = 'a'\n[paths.docs]\nroot = 'b'", "exactly one"),
        ("[paths.docs]\nroot = 'missing/../a'", "'..'"),
        (
            "[[mounts]]\nhost_path = 'a'\nmount_point = '/x'\n[[mounts]]\nhost_path = 'b'\nmount_point = '/x/'",
            "two mounts have the mount point '/x'",
        ),
    ] {
        let error = wrong(place.path(), text);
        assert!(error.contains(hint), "{text}: {error}");
    }
}

#[test]
fn a_file_of_mounts_is_where_its_paths_start() {
    let place = place();
    let file = place.path().join("mounts.toml");
    std::fs::write(&file, "[paths.docs]\nroot = 'a'").unwrap();
    let tree = Opener::from_file(&file).unwrap().open().unwrap();
    let host = place.path().canonicalize().unwrap().join("a");
    assert_eq!(tree.config().mounts[0].host_path, host);
    std::fs::write(&file, "[paths.docs]\nrot = 'a'").unwrap();
    let error = fails(Config, Opener::from_file(&file));
    let text = error.to_string();
    assert!(
        text.contains("mounts.toml") && text.contains("line 2"),
        "{text}"
    );
    fails(Config, Opener::from_file(place.path().join("none.toml")));
}

#[tokio::test]
async fn the_default_is_one_directory_with_the_defaults_of_a_mount() {
    let place = place();
    std::fs::write(place.path().join("a/file.txt"), "hello\n").unwrap();
    let tree = MountTree::create_default(place.path().join("a"), Mode::Ro).unwrap();
    let files = tree.guard().build();
    assert_eq!(
        files.read_to_string("/data/file.txt").await.unwrap(),
        "hello\n"
    );
    fails(PermissionDenied, files.write_file("/data/new", "x").await);

    let tree = MountTree::create_default(place.path().join("new"), Mode::Rw).unwrap();
    let files = tree.guard().build();
    fails(ApprovalRequired, files.write_file("/data/new", "x").await);
}

#[tokio::test]
async fn what_is_read_only_is_so_without_a_guard_too() {
    let place = place();
    let config = MountConfig::new(vec![Mount::new(place.path().join("a"), "/a").unwrap()]);
    let tree = Opener::new(config).open().unwrap();
    fails(
        PermissionDenied,
        tree.unguarded().write_file("/a/new", "x").await,
    );
}
