//! `list_files`: results and texts, pinned.

use std::sync::Arc;

use serde_json::json;

use super::{ListFilesTool, call, files, fixable, ok};
use crate::context::Context;
use crate::options::Options;

fn tree() -> Context {
    files(&[
        ("/b.md", b""),
        ("/a/x.md", b""),
        ("/a/sub/y.md", b""),
        ("/a/sub/.z", b""),
        ("/a-b/n.txt", b""),
        ("/.gitignore", b"*.txt\n"),
        ("/.git/config", b""),
    ])
}

#[test]
fn everything_is_listed_in_order() {
    let context = tree();
    assert_eq!(
        ok::<ListFilesTool>(&context, json!({})),
        r#"["/.gitignore","/a-b/n.txt","/a/sub/.z","/a/sub/y.md","/a/x.md","/b.md"]"#
    );
    let reply = call::<ListFilesTool>(&context, json!({"path": "a"}));
    assert_eq!(reply.text, r#"["/a/sub/.z","/a/sub/y.md","/a/x.md"]"#);
    assert_eq!(
        reply.structured,
        Some(json!({"files": ["/a/sub/.z", "/a/sub/y.md", "/a/x.md"], "truncated": false}))
    );
}

#[test]
fn a_pattern_starts_at_the_path() {
    let context = tree();
    for (path, pattern, found) in [
        ("/", "*.md", r#"["/b.md"]"#),
        (".", "**/*.md", r#"["/a/sub/y.md","/a/x.md","/b.md"]"#),
        ("", "a/*", r#"["/a/x.md"]"#),
        ("/a", "*.md", r#"["/a/x.md"]"#),
        ("/a/", "sub\\*", r#"["/a/sub/.z","/a/sub/y.md"]"#),
        ("/a", "", r#"["/a/sub/.z","/a/sub/y.md","/a/x.md"]"#),
        ("/a", "{x,y}.md", "[]"),
        ("/", ".git/*", r#"["/.git/config"]"#),
        ("/none", "*", "[]"),
        ("/b.md", "*", "[]"),
        ("/a", "[!y]*", r#"["/a/x.md"]"#),
    ] {
        let text = ok::<ListFilesTool>(&context, json!({"path": path, "pattern": pattern}));
        assert_eq!(text, found, "{path} {pattern}");
    }
}

#[test]
fn a_bad_pattern_is_said() {
    let context = tree();
    let told = |pattern: &str| fixable::<ListFilesTool>(&context, json!({ "pattern": pattern }));
    assert_eq!(told("a\0"), "pattern must not contain null bytes");
    assert_eq!(
        told("/a/*"),
        "pattern must be relative (must not start with '/' or '~')"
    );
    assert_eq!(told("c:\\x"), "pattern must not be a Windows drive path");
    assert_eq!(told("../*"), "pattern must not contain '..' path segments");
    assert!(told("[z-a]").starts_with("pattern: "), "{}", told("[z-a]"));
    assert!(told(&"*".repeat(20_000)).starts_with("pattern: the pattern has "));
}

#[test]
fn a_long_list_is_cut_and_says_so() {
    let names: Vec<_> = (0..50).map(|n| format!("/d/file{n:02}")).collect();
    let entries: Vec<_> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    let mut context = files(&entries);
    let mut options = Options::default();
    options.limits.reply_bytes = 300;
    context.options = Arc::new(options);
    let reply = call::<ListFilesTool>(&context, json!({}));
    assert!(reply.text.len() <= 300, "{} bytes", reply.text.len());
    let (list, note) = reply.text.split_once('\n').unwrap();
    let list: Vec<String> = serde_json::from_str(list).unwrap();
    assert_eq!(list, names[..list.len()]);
    assert_eq!(
        note,
        "Only the first 15 files are shown; give a deeper path or a narrower pattern."
    );
    assert_eq!(reply.structured.unwrap()["truncated"], true);
}
