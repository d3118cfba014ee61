//! The reader of stored files: everything that a stopped session holds, and nothing else.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use backend_core::ops::GrepQuery;
use backend_core::{Backend as _, BackendExt as _, ErrorKind, VPath};
use futures_util::TryStreamExt as _;
use sessions::{StoredFiles, StoredSessions, TreeOptions};

use super::id;

/// Stores files of a session as an engine would, without one.
fn store(root: &Path, name: &str, files: &[(&str, &str)]) {
    for (path, content) in files {
        let path = root.join(name).join("workspace").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

async fn open(root: &Path, name: &str) -> StoredFiles {
    let stored = StoredSessions::open(root).unwrap();
    stored.files(&id(name)).await.unwrap()
}

#[tokio::test]
async fn it_lists_reads_and_searches_without_starting_anything() {
    let root = tempfile::tempdir().unwrap();
    store(root.path(), "alice", &[("src/main.rs", "fn main() {}\n")]);
    let stored = StoredSessions::open(root.path()).unwrap();
    assert_eq!(stored.list().await.unwrap()[0].id, id("alice"));
    assert_eq!(stored.bytes(&id("alice")).await.unwrap(), 13);
    assert_eq!(stored.total_bytes().await.unwrap(), 13);
    let files = stored.files(&id("alice")).await.unwrap();
    assert!(files.as_sandbox().is_none());
    let listing = files.list_dir("src").await.unwrap();
    assert_eq!(listing.entries[0].name(), "main.rs");
    assert_eq!(
        files.read_to_string("src/main.rs").await.unwrap(),
        "fn main() {}\n"
    );
    let query = GrepQuery::new("main", VPath::root());
    assert_eq!(files.grep(query).await.unwrap().files.len(), 1);
    let error = files.write_file("src/main.rs", "").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}

#[tokio::test]
async fn what_is_not_stored_is_not_found() {
    let root = tempfile::tempdir().unwrap();
    let stored = StoredSessions::open(root.path()).unwrap();
    let error = stored.files(&id("nobody")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = stored.bytes(&id("nobody")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = StoredSessions::open(root.path().join("missing")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    // Host paths are not for users.
    let shown = error.chain().to_string();
    assert!(!shown.contains(root.path().to_str().unwrap()), "{shown}");
}

#[tokio::test]
async fn no_link_leads_to_another_session_or_out() {
    let root = tempfile::tempdir().unwrap();
    store(root.path(), "alice", &[("own", "mine")]);
    store(root.path(), "bob", &[("secret", "bob's")]);
    let files = root.path().join("alice/workspace");
    symlink("../../bob/workspace/secret", files.join("relative")).unwrap();
    symlink(
        root.path().join("bob/workspace/secret"),
        files.join("absolute"),
    )
    .unwrap();
    symlink("../../bob/workspace", files.join("directory")).unwrap();
    symlink("own", files.join("inside")).unwrap();
    let alice = open(root.path(), "alice").await;
    for path in ["relative", "absolute", "directory/secret"] {
        let error = alice.read_to_string(path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{path}");
    }
    assert_eq!(alice.read_to_string("inside").await.unwrap(), "mine");
    let entries = unpack(&alice).await;
    let entries: Vec<_> = entries
        .iter()
        .map(|(path, text)| (&**path, &**text))
        .collect();
    assert_eq!(entries, [("inside", "mine"), ("own", "mine")]);
}

#[tokio::test]
async fn a_tree_has_a_depth_and_a_number_of_entries() {
    let root = tempfile::tempdir().unwrap();
    let stored = [
        ("a/b/c/deep", ""),
        ("a/one", ""),
        ("a-z", ""),
        ("top\n", ""),
    ];
    store(root.path(), "alice", &stored);
    let files = open(root.path(), "alice").await;
    symlink(".", root.path().join("alice/workspace/a/loop")).unwrap();

    let whole = files.tree(TreeOptions::default()).await.unwrap();
    let text = "a/\n  b/\n    c/\n      deep\n  loop/\n  one\na-z\ntop\\n\n";
    assert_eq!(whole.to_string(), text);
    assert!(!whole.truncated);

    let shallow = files.tree(TreeOptions::default().depth(1)).await.unwrap();
    assert_eq!(shallow.to_string(), "a/\na-z\ntop\\n\n… and more\n");
    let few = files.tree(TreeOptions::default().entries(4)).await.unwrap();
    assert_eq!((few.entries.len(), few.truncated), (4, true));
    assert!(
        few.to_string().starts_with("a/\n  b/\na-z\n"),
        "level by level: {few}"
    );
    let inner = TreeOptions::default().path(VPath::parse("/a/b").unwrap());
    assert_eq!(files.tree(inner).await.unwrap().to_string(), "c/\n  deep\n");
    for nothing in [
        TreeOptions::default().depth(0),
        TreeOptions::default().entries(0),
    ] {
        let error = files.tree(nothing).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    let missing = TreeOptions::default().path(VPath::parse("/missing").unwrap());
    let error = files.tree(missing).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// Returns the files of an archive, with their texts.
async fn unpack(files: &StoredFiles) -> Vec<(String, String)> {
    let packed: Vec<_> = files.archive().try_collect().await.unwrap();
    let packed: Vec<u8> = packed.iter().flatten().copied().collect();
    assert_eq!(packed.len() % 512, 0);
    let mut archive = tar::Archive::new(&packed[..]);
    let mut unpacked = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.header().entry_type().is_file() {
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            unpacked.push((path, text));
        }
    }
    unpacked
}

#[tokio::test]
async fn an_archive_holds_every_file() {
    let root = tempfile::tempdir().unwrap();
    let long = format!("{}/{}/file", "d".repeat(120), "e".repeat(120));
    let large = "0123456789".repeat(250_000);
    let stored = [
        ("a/empty", ""),
        ("a/large", large.as_str()),
        (long.as_str(), "long"),
        ("block", &large[..512]),
    ];
    store(root.path(), "alice", &stored);
    let files = open(root.path(), "alice").await;
    let unpacked = unpack(&files).await;
    let unpacked: Vec<_> = unpacked
        .iter()
        .map(|(path, text)| (&**path, &**text))
        .collect();
    assert!(unpacked == stored, "another archive than what was stored");
}

#[tokio::test]
async fn an_empty_session_is_an_empty_archive() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("alice/workspace")).unwrap();
    let files = open(root.path(), "alice").await;
    assert!(unpack(&files).await.is_empty());
}

#[tokio::test]
async fn nothing_in_an_archive_runs_as_its_owner() {
    let root = tempfile::tempdir().unwrap();
    store(root.path(), "alice", &[("tool", "#!/bin/sh\n")]);
    let tool = root.path().join("alice/workspace/tool");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o6755)).unwrap();
    let files = open(root.path(), "alice").await;
    let packed: Vec<_> = files.archive().try_collect().await.unwrap();
    let packed: Vec<u8> = packed.iter().flatten().copied().collect();
    let mut archive = tar::Archive::new(&packed[..]);
    let entry = archive.entries().unwrap().next().unwrap().unwrap();
    assert_eq!(entry.header().mode().unwrap(), 0o755);
}
