//! `delete_file`, `move_file` and `copy_file`: results and texts, pinned.

use backend_core::BackendExt as _;
use backend_local::LocalBackend;
use futures::executor::block_on;
use serde_json::{Value, json};

use super::{CopyFileTool, DeleteFileTool, MoveFileTool, content, context, files, fixable, ok};
use crate::context::Context;

fn from_to(source: &str, destination: &str) -> Value {
    json!({"source": source, "destination": destination})
}

fn exists(context: &Context, path: &str) -> bool {
    block_on(context.backend.exists(path)).unwrap()
}

#[test]
fn deleting() {
    let context = files(&[("/d/a", b"x")]);
    let told = |path: &str| fixable::<DeleteFileTool>(&context, json!({ "path": path }));
    assert_eq!(told("/x"), "File not found: /x");
    assert_eq!(told("d/"), "Cannot delete directory with delete_file: d/");
    assert_eq!(told("/"), "Cannot delete directory with delete_file: /");
    assert_eq!(
        ok::<DeleteFileTool>(&context, json!({"path": "d/a"})),
        "Deleted d/a"
    );
    assert!(!exists(&context, "/d/a"));
}

#[test]
fn moving() {
    let context = files(&[("/d/a", b"x"), ("/b", b"y")]);
    let told =
        |source, destination| fixable::<MoveFileTool>(&context, from_to(source, destination));
    assert_eq!(told("/x", "/y"), "Source file not found: /x");
    assert_eq!(told("/d", "/e"), "Cannot move directory: /d");
    assert_eq!(told("/d/a", "/b"), "Destination already exists: /b");
    assert_eq!(told("/d/a", "/d"), "Destination already exists: /d");
    assert_eq!(told("/b", "b"), "Destination already exists: b");
    assert!(told("/d/a", "/b/c").starts_with("Cannot move '/d/a' to '/b/c': "));
    assert_eq!(
        ok::<MoveFileTool>(&context, from_to("/d/a", "n/e/w")),
        "Moved /d/a to n/e/w"
    );
    assert_eq!(content(&context, "/n/e/w"), "x");
    assert!(!exists(&context, "/d/a"));
    assert_eq!(content(&context, "/b"), "y");
}

#[test]
fn copying() {
    let context = files(&[("/d/a", b"x"), ("/b", b"y")]);
    let told =
        |source, destination| fixable::<CopyFileTool>(&context, from_to(source, destination));
    assert_eq!(told("/x", "/y"), "Source file not found: /x");
    assert_eq!(told("/d", "/e"), "Cannot copy directory: /d");
    assert_eq!(told("/d/a", "/b"), "Destination already exists: /b");
    assert_eq!(told("/b", "/b"), "Destination already exists: /b");
    assert_eq!(
        ok::<CopyFileTool>(&context, from_to("/d/a", "/n/c")),
        "Copied /d/a to /n/c"
    );
    assert_eq!(content(&context, "/n/c"), "x");
    assert_eq!(content(&context, "/d/a"), "x");
}

#[test]
fn a_link_is_deleted_and_moved_itself_but_copied_as_what_it_leads_to() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::create_dir(at("d")).unwrap();
    std::fs::write(at("d/target"), "x").unwrap();
    for link in ["one", "two", "three"] {
        std::os::unix::fs::symlink("d/target", at(link)).unwrap();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    let context = context(LocalBackend::builder(directory.path()).open().unwrap());
    ok::<DeleteFileTool>(&context, json!({"path": "/one"}));
    ok::<MoveFileTool>(&context, from_to("/two", "/moved"));
    ok::<CopyFileTool>(&context, from_to("/three", "/n/copied"));
    assert!(!at("one").is_symlink() && at("moved").is_symlink());
    assert!(!at("n/copied").is_symlink());
    assert_eq!(std::fs::read_to_string(at("n/copied")).unwrap(), "x");
    assert_eq!(std::fs::read_to_string(at("d/target")).unwrap(), "x");
}
