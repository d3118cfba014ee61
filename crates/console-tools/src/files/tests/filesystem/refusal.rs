//! Refusals by mounts and users, in the library's words, pinned.

use permissions::{Op, Refusal};
use serde_json::{Value, json};

use super::{
    CopyFileTool, DeleteFileTool, EditFileTool, ListFilesTool, MoveFileTool, ReadFileTool,
    WriteFileTool, declining, failed, fixable, mounted, ok,
};
use crate::reply::FailureClass;
use crate::tool::Builtin;

fn refused<T: Builtin>(arguments: Value) -> String {
    failed::<T>(&mounted(), arguments, FailureClass::Refused)
}

fn from_to(source: &str, destination: &str) -> Value {
    json!({"source": source, "destination": destination})
}

#[test]
fn outside_names_what_can_be_read_and_echoes_the_spelling() {
    let told = refused::<ReadFileTool>(json!({"path": " secret\\s.md"}));
    assert_eq!(
        told,
        "Cannot access ' secret\\s.md': path is outside sandbox.\nReadable paths: /docs, /user"
    );
    let told = refused::<CopyFileTool>(from_to("secret//s.md", "/user/s.md"));
    assert_eq!(
        told,
        "Cannot access 'secret//s.md': path is outside sandbox.\nReadable paths: /docs, /user"
    );
    let told = refused::<WriteFileTool>(json!({"path": "x", "content": ""}));
    assert_eq!(
        told,
        "Cannot access 'x': path is outside sandbox.\nReadable paths: /docs, /user"
    );
}

#[test]
fn what_is_no_path_is_outside() {
    for path in ["~/x", "C:\\x", "/docs/../../etc", "a\0"] {
        let told = fixable::<ReadFileTool>(&mounted(), json!({ "path": path }));
        let shown = path.replace('\0', "\\0");
        assert_eq!(
            told,
            format!(
                "Cannot access '{shown}': path is outside sandbox.\nReadable paths: /docs, /user"
            )
        );
    }
}

#[test]
fn what_is_too_long_is_told_so() {
    let name = "n".repeat(256);
    let path = format!("/user/{name}");
    let start = "Cannot use this path: the name 'nnnn";
    let end = "' has 256 bytes, more than the 255 a name can have; shorten it";
    let context = mounted();
    for told in [
        fixable::<ReadFileTool>(&context, json!({ "path": path })),
        fixable::<WriteFileTool>(&context, json!({"path": path, "content": ""})),
        fixable::<EditFileTool>(
            &context,
            json!({"path": path, "old_text": "a", "new_text": "b"}),
        ),
        fixable::<DeleteFileTool>(&context, json!({ "path": path })),
        fixable::<MoveFileTool>(&context, from_to("/user/b.md", &path)),
        fixable::<CopyFileTool>(&context, from_to(&path, "/user/c.md")),
        fixable::<ListFilesTool>(&context, json!({ "path": path })),
    ] {
        assert!(told.starts_with(start) && told.ends_with(end), "{told}");
    }
    let deep = "/user".to_owned() + &"/d".repeat(255);
    let long = "/user".to_owned() + &format!("/{}", "n".repeat(250)).repeat(17);
    for (path, end) in [
        (
            deep,
            "' is 256 levels deep, more than the 255 a path can have; nest less",
        ),
        (
            long,
            "' has 4272 bytes, more than the 4095 a path can have; shorten it",
        ),
    ] {
        let told = fixable::<ReadFileTool>(&context, json!({ "path": path }));
        assert!(told.starts_with("Cannot use this path: "), "{told}");
        assert!(told.ends_with(end) && told.len() < 400, "{told}");
    }
    // A name of the maximum length is merely not found.
    let path = format!("/user/{}.md", "n".repeat(252));
    let told = fixable::<ReadFileTool>(&context, json!({ "path": path }));
    assert!(told.starts_with("File not found"), "{told}");
}

#[test]
fn read_only_names_what_can_be_written() {
    let text =
        |path: &str| format!("Cannot write to '{path}': path is read-only.\nWritable paths: /user");
    let path = "docs/./a.md";
    assert_eq!(
        refused::<WriteFileTool>(json!({"path": path, "content": ""})),
        text(path)
    );
    assert_eq!(
        refused::<EditFileTool>(json!({"path": path, "old_text": "about", "new_text": "b"})),
        text(path)
    );
    assert_eq!(
        refused::<DeleteFileTool>(json!({ "path": path })),
        text(path)
    );
    assert_eq!(
        refused::<MoveFileTool>(from_to("/docs/a.md", "/user/a.md")),
        text("/docs/a.md")
    );
    assert_eq!(
        refused::<CopyFileTool>(from_to("/user/b.md", "docs//b.md")),
        text("docs//b.md")
    );
}

#[test]
fn suffixes_and_sizes() {
    assert_eq!(
        refused::<ReadFileTool>(json!({"path": "docs/a.bin"})),
        "Cannot access 'docs/a.bin': suffix '.bin' not allowed.\nAllowed suffixes: .md, .txt"
    );
    assert_eq!(
        fixable::<ReadFileTool>(&mounted(), json!({"path": "docs/big.md"})),
        "Cannot read 'docs/big.md': file too large (2,001 bytes).\nMaximum allowed: 2,000 bytes"
    );
}

#[test]
fn a_no_is_told_with_its_note() {
    let said = |refusal: Refusal| {
        let context = declining(Some(refusal));
        let told = failed::<ReadFileTool>(
            &context,
            json!({"path": "/docs/a.md"}),
            FailureClass::Refused,
        );
        // The question is asked only once.
        ok::<ReadFileTool>(&context, json!({"path": "/docs/a.md"}));
        told
    };
    assert_eq!(
        said(Refusal::declined("read /docs/a.md", "not today")),
        "Approval denied for read_file: not today"
    );
    assert_eq!(
        said(Refusal::declined("read /docs/a.md", "")),
        "Approval denied for read_file: no reason given"
    );
    assert_eq!(
        said(Refusal::rule(
            Op::Read,
            "/docs/a.md",
            "Protect sensitive files"
        )),
        "Blocked read_file: Protect sensitive files"
    );
    assert_eq!(
        said(Refusal::rule(Op::Read, "/docs/a.md", "")),
        "Blocked read_file: blocked by policy"
    );
}

#[test]
fn what_is_allowed_works_behind_mounts() {
    let context = mounted();
    ok::<WriteFileTool>(&context, json!({"path": "user/n.md", "content": "one two"}));
    ok::<EditFileTool>(
        &context,
        json!({"path": "user/n.md", "old_text": "two", "new_text": "2"}),
    );
    ok::<CopyFileTool>(&context, from_to("docs/a.md", "user/a.md"));
    ok::<MoveFileTool>(&context, from_to("user/n.md", "user/m.md"));
    ok::<DeleteFileTool>(&context, json!({"path": "user/b.md"}));
    assert_eq!(
        ok::<ListFilesTool>(&context, json!({"path": "/user"})),
        r#"["/user/.hidden","/user/a.md","/user/m.md"]"#
    );
}
