//! The search tools on the in-memory backend.

use std::sync::Arc;

use backend_core::BackendExt as _;
use backend_state::StateBackend;
use serde_json::{Value, json};

use super::*;
use crate::options::Options;
use crate::reply::FailureClass;
use crate::test_run::Calls;
use crate::tool::Builtin;

struct Tree {
    backend: StateBackend,
    options: Options,
}

impl Tree {
    async fn new(files: &[(&str, &str)]) -> Self {
        let backend = StateBackend::new();
        for (path, text) in files {
            backend.write_file(path, *text).await.unwrap();
        }
        Self {
            backend,
            options: Options::default(),
        }
    }

    async fn error<T: Builtin>(&self, args: Value) -> String {
        let error = self.try_call::<T>(args).await.unwrap_err();
        assert_eq!(error.class(), FailureClass::Fixable, "{error}");
        error.to_string()
    }
}

impl Calls for Tree {
    fn context(&self) -> Context {
        let backend = Arc::new(self.backend.clone());
        Context::new(backend, Arc::new(self.options.clone()), Arc::default())
    }
}

async fn sample() -> Tree {
    Tree::new(&[
        ("/readme.md", "# Title\n\nNeedle one\n"),
        ("/src/main.rs", "fn main() {\n    needle();\n}\n"),
        ("/src/lib/deep.rs", "// needle\n// Needle\n// none\n"),
        ("/.hidden/secret.rs", "needle\n"),
        ("/.gitignore", "target\n"),
        ("/target/out.rs", "needle\n"),
        ("/image.bin", "\0needle\n"),
    ])
    .await
}

#[tokio::test]
async fn ls_shows_directories_first_with_sizes() {
    let tree = sample().await;
    assert_eq!(
        run!(tree.text::<LsTool>, {}),
        "Contents of .:\n  .hidden/\n  src/\n  target/\n  .gitignore (7 bytes)\n  \
         image.bin (8 bytes)\n  readme.md (20 bytes)"
    );
    let reply = run!(tree.call::<LsTool>, {"path": "/src"});
    assert_eq!(
        reply.text,
        "Contents of /src:\n  lib/\n  main.rs (28 bytes)"
    );
    assert_eq!(
        reply.structured.unwrap(),
        json!({
            "entries": [
                {"name": "lib", "kind": "directory", "link": false},
                {"name": "main.rs", "kind": "file", "size": 28, "link": false},
            ],
            "total": 2,
            "truncated": false,
        })
    );
    let file = run!(tree.text::<LsTool>, {"path": "readme.md"});
    assert_eq!(file, "Contents of readme.md:\n  readme.md (20 bytes)");
}

#[tokio::test]
async fn ls_tells_empty_from_missing() {
    let tree = Tree::new(&[]).await;
    let empty = run!(tree.text::<LsTool>, {"path": ""});
    assert_eq!(empty, "Directory '.' is empty");
    let missing = run!(tree.error::<LsTool>, {"path": "nowhere"});
    assert!(missing.contains("no such file or directory"), "{missing}");
    let above = run!(tree.error::<LsTool>, {"path": "../.."});
    assert!(!above.is_empty());
}

#[tokio::test]
async fn ls_stops_at_its_limits_and_says_so() {
    let mut tree = Tree::new(&[("/a", "x"), ("/b", ""), ("/c", "")]).await;
    tree.options.limits.ls_entries = 2;
    let reply = run!(tree.call::<LsTool>, {});
    assert!(
        reply.text.ends_with(
            "  a (1 byte)\n  b (0 bytes)\n  ... and 1 more; use glob with a pattern to find them"
        ),
        "{}",
        reply.text
    );
    assert_eq!(reply.structured.unwrap()["truncated"], json!(true));
    tree.options.limits.reply_bytes = CLOSING_BYTES + 30;
    let text = run!(tree.text::<LsTool>, {});
    assert!(text.contains("  ... and 2 more"), "{text}");
    assert!(text.len() <= tree.options.limits.reply_bytes);
}

#[tokio::test]
async fn a_name_cannot_make_a_line_of_its_own() {
    let tree = Tree::new(&[("/a\nContents of b:\x1b[2J", "x\n")]).await;
    for text in [
        run!(tree.text::<LsTool>, {}),
        run!(tree.text::<GlobTool>, {"pattern": "*"}),
        run!(tree.text::<GrepTool>, {"pattern": "x"}),
        run!(tree.text::<GrepTool>, {"pattern": "x", "output_mode": "content"}),
    ] {
        assert!(text.contains("a\u{240a}Contents"), "{text}");
        assert!(!text.contains('\x1b'));
    }
}

#[tokio::test]
async fn glob_shows_paths_as_they_were_asked_for() {
    let tree = sample().await;
    let relative = run!(tree.text::<GlobTool>, {"pattern": "*.rs"});
    assert_eq!(
        relative,
        "Found 2 files matching '*.rs':\n  src/lib/deep.rs\n  src/main.rs"
    );
    let absolute = run!(tree.text::<GlobTool>, {"pattern": "*.rs", "path": "/src"});
    assert_eq!(
        absolute,
        "Found 2 files matching '*.rs':\n  /src/lib/deep.rs\n  /src/main.rs"
    );
    let reply = run!(tree.call::<GlobTool>, {"pattern": "src/*.rs"});
    assert_eq!(
        reply.structured.unwrap(),
        json!({"files": ["src/main.rs"], "total": 1, "truncated": false, "total_is_minimum": false})
    );
    let newest = run!(tree.text::<GlobTool>, {"pattern": "*.{rs,md}", "order": "newest"});
    assert!(newest.contains("src/lib/deep.rs"), "{newest}");
}

#[tokio::test]
async fn glob_says_what_it_passed_over() {
    let tree = sample().await;
    let nothing = run!(tree.text::<GlobTool>, {"pattern": "*.py"});
    assert_eq!(
        nothing,
        "No files matching '*.py' in .\nNot searched: 2 hidden entries (hidden=true includes \
         them), 1 ignored entry (ignored=true includes them)."
    );
    let hidden = run!(tree.text::<GlobTool>, {"pattern": "secret*", "hidden": true});
    assert!(hidden.ends_with(".hidden/secret.rs"), "{hidden}");
    let ignored = run!(tree.text::<GlobTool>, {"pattern": "out*", "ignored": true});
    assert!(ignored.ends_with("target/out.rs"), "{ignored}");
}

#[tokio::test]
async fn generated_directories_are_searched_where_they_are_named() {
    let files = [
        ("/a.js", "needle\n"),
        ("/build/sub/a.js", "needle\n"),
        ("/node_modules/m/dist/a.js", "needle\n"),
    ];
    let mut tree = Tree::new(&files).await;
    let warning = "\nNot searched: 2 generated directories: build, node_modules (ignored=true or \
                   naming one includes them).";
    let all = "  a.js\n  build/sub/a.js\n  node_modules/m/dist/a.js";
    let deep = "  node_modules/m/dist/a.js";
    for (more, found) in [
        (json!({}), format!("  a.js{warning}")),
        (json!({"ignored": true}), all.to_owned()),
        (json!({"path": "node_modules/m"}), deep.to_owned()),
        (json!({"path": "/node_modules"}), deep.replace("  ", "  /")),
    ] {
        let mut args = more.clone();
        args["pattern"] = json!("*.js");
        let text = tree.text::<GlobTool>(args).await;
        assert_eq!(text.split_once('\n').unwrap().1, found, "glob {more}");
        let mut args = more.clone();
        args["pattern"] = json!("needle");
        let text = tree.text::<GrepTool>(args).await;
        assert_eq!(text.split_once('\n').unwrap().1, found, "grep {more}");
    }
    let text = run!(tree.text::<GlobTool>, {"pattern": "node_modules/**/*.js"});
    assert_eq!(text.split_once('\n').unwrap().1, deep);
    let named = json!({"pattern": "needle", "glob_pattern": "**/node_modules/**"});
    let text = tree.text::<GrepTool>(named).await;
    assert!(
        text.contains(deep) && text.contains("1 generated directory"),
        "{text}"
    );
    for (mode, first) in [
        ("content", "Matches for 'needle':\na.js\n  1: needle"),
        ("count", "Found 1 match for 'needle' in 1 file"),
    ] {
        assert_eq!(
            run!(tree.text::<GrepTool>, {"pattern": "needle", "output_mode": mode}),
            format!("{first}{warning}")
        );
    }
    let nothing = run!(tree.text::<GrepTool>, {"pattern": "nothing"});
    assert_eq!(nothing, format!("No matches for 'nothing'{warning}"));
    tree.options.skip_generated = false;
    let text = run!(tree.text::<GlobTool>, {"pattern": "*.js"});
    assert_eq!(text.split_once('\n').unwrap().1, all);
}

#[tokio::test]
async fn only_generated_directories_that_were_skipped_are_named() {
    let files = [
        ("/a.js", "needle\n"),
        ("/.venv/v.py", "needle\n"),
        ("/build/b.js", "needle\n"),
        ("/dist/d.js", "needle\n"),
        ("/src/build/c.js", "needle\n"),
        ("/src/main.js", "needle\n"),
    ];
    let tree = Tree::new(&files).await;
    let how = " (ignored=true or naming one includes them).";
    for (glob, skipped) in [
        (json!({"pattern": "src/**"}), "1 generated directory: build"),
        (
            json!({"pattern": "/src/**"}),
            "1 generated directory: build",
        ),
        (
            json!({"path": "src", "pattern": "*"}),
            "1 generated directory: build",
        ),
        (
            json!({"pattern": "s*/**"}),
            "1 generated directory such as node_modules",
        ),
        (
            json!({"pattern": "*.js"}),
            "3 generated directories, among them build, dist",
        ),
        (
            json!({"pattern": "*.js", "hidden": true}),
            "4 generated directories, among them .venv, build, dist",
        ),
        (
            json!({"pattern": "{dist/**,*.js}"}),
            "2 generated directories, among them build",
        ),
    ] {
        let text = tree.text::<GlobTool>(glob.clone()).await;
        let last = text.lines().last().unwrap();
        assert_eq!(last, format!("Not searched: {skipped}{how}"), "{glob}");
    }
    for (grep, skipped) in [
        (json!({}), "3 generated directories, among them build, dist"),
        (
            json!({"ignore_hidden": false}),
            "4 generated directories, among them .venv, build, dist",
        ),
        (
            json!({"glob_pattern": "src/**"}),
            "1 generated directory: build",
        ),
        // The search ended at its limit, perhaps before it met the directories.
        (
            json!({"output_mode": "content", "max_results": 1}),
            "3 generated directories such as node_modules",
        ),
    ] {
        let mut args = grep.clone();
        args["pattern"] = json!("needle");
        let text = tree.text::<GrepTool>(args).await;
        let last = text.lines().last().unwrap();
        assert_eq!(last, format!("Not searched: {skipped}{how}"), "{grep}");
    }
}

#[tokio::test]
async fn glob_stops_at_its_limits_and_counts_the_rest() {
    let names: Vec<String> = (0..7).map(|n| format!("/f{n}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let mut tree = Tree::new(&files).await;
    tree.options.limits.glob_files = 3;
    let reply = run!(tree.call::<GlobTool>, {"pattern": "f*"});
    assert_eq!(
        reply.text,
        "Found 7 files matching 'f*':\n  f0\n  f1\n  f2\n  ... and 4 more; narrow the pattern \
         or the path to see them"
    );
    assert_eq!(reply.structured.unwrap()["truncated"], json!(true));
    let bad = run!(tree.error::<GlobTool>, {"pattern": "a[b"});
    assert!(bad.contains("a[b"), "{bad}");
    let file = run!(tree.error::<GlobTool>, {"pattern": "*", "path": "f1"});
    assert!(file.contains("not a directory"), "{file}");
}

#[tokio::test]
async fn grep_lists_files() {
    let tree = sample().await;
    let reply = run!(tree.call::<GrepTool>, {"pattern": "needle"});
    assert_eq!(
        reply.text,
        "Files containing 'needle':\n  src/lib/deep.rs\n  src/main.rs"
    );
    let structured = reply.structured.unwrap();
    assert_eq!(
        structured["files"][0],
        json!({"path": "src/lib/deep.rs", "matches": 1})
    );
    let mut tree = tree;
    tree.options.default_ignore_hidden = false;
    let all = run!(tree.text::<GrepTool>, {"pattern": "needle", "ignored": true});
    assert!(
        all.contains(".hidden/secret.rs") && all.contains("target/out.rs"),
        "{all}"
    );
    assert!(
        !run!(tree.text::<GrepTool>, {"pattern": "needle", "ignore_hidden": true})
            .contains(".hidden")
    );
    let capped = run!(tree.text::<GrepTool>, {"pattern": "needle", "max_results": 1});
    assert!(capped.ends_with("\n  ... and 2 more files"), "{capped}");
}

#[tokio::test]
async fn grep_shows_lines_grouped_by_file() {
    let tree = sample().await;
    let args = json!({"pattern": "needle", "output_mode": "content", "case": "insensitive"});
    let reply = tree.call::<GrepTool>(args).await;
    assert_eq!(
        reply.text,
        "Matches for 'needle':\nreadme.md\n  3: Needle one\nsrc/lib/deep.rs\n  1: // needle\n  \
         2: // Needle\nsrc/main.rs\n  2:     needle();"
    );
    let structured = reply.structured.unwrap();
    assert_eq!(structured["matches"], json!(4));
    let line = json!({"number": 3, "text": "Needle one", "matches": true});
    assert_eq!(structured["files"][0]["lines"], json!([line]));
    let args =
        json!({"pattern": "needle", "output_mode": "content", "path": "src/main.rs", "context": 1});
    assert_eq!(
        tree.text::<GrepTool>(args).await,
        "Matches for 'needle':\nsrc/main.rs\n  1- fn main() {\n  2:     needle();\n  3- }"
    );
}

#[tokio::test]
async fn grep_marks_where_lines_are_missing() {
    let tree = Tree::new(&[("/a", "x\n1\n2\n3\nx\n")]).await;
    let args = json!({"pattern": "x", "output_mode": "content", "after": 1, "context": 0});
    let with_context = tree.text::<GrepTool>(args).await;
    assert_eq!(
        with_context,
        "Matches for 'x':\na\n  1: x\n  2- 1\n  --\n  5: x"
    );
    let without = run!(tree.text::<GrepTool>, {"pattern": "x", "output_mode": "content"});
    assert_eq!(without, "Matches for 'x':\na\n  1: x\n  5: x");
    let args = json!({"pattern": "x\n1", "output_mode": "content", "multi_line": true});
    let spanning = tree.text::<GrepTool>(args).await;
    assert_eq!(spanning, "Matches for 'x\u{240a}1':\na\n  1: x\n  2: 1");
}

#[tokio::test]
async fn grep_counts() {
    let tree = sample().await;
    let args = json!({"pattern": "needle", "output_mode": "count", "case": "smart"});
    let reply = tree.call::<GrepTool>(args).await;
    assert_eq!(reply.text, "Found 4 matches for 'needle' in 3 files");
    let args = json!({"pattern": "Needle", "output_mode": "count", "case": "smart"});
    let text = tree.text::<GrepTool>(args).await;
    assert_eq!(text, "Found 2 matches for 'Needle' in 2 files");
    let args = json!({"pattern": "needle()", "output_mode": "count", "literal": true, "glob_pattern": "*.rs"});
    let text = tree.text::<GrepTool>(args).await;
    assert_eq!(text, "Found 1 match for 'needle()' in 1 file");
}

#[tokio::test]
async fn grep_says_what_it_passed_over() {
    let tree = sample().await;
    for mode in ["files_with_matches", "content", "count"] {
        assert_eq!(
            run!(tree.text::<GrepTool>, {"pattern": "no such text", "output_mode": mode}),
            "No matches for 'no such text'\nNot searched: 2 hidden entries (ignore_hidden=false \
             includes them), 1 ignored entry (ignored=true includes them), 1 binary entry."
        );
    }
}

#[tokio::test]
async fn grep_stops_at_its_maximum_and_counts_the_rest() {
    let many = "x\n".repeat(300);
    let tree = Tree::new(&[("/a", many.as_str()), ("/b", "x\n")]).await;
    let args = json!({"pattern": "x", "output_mode": "content", "max_results": 3});
    let reply = tree.call::<GrepTool>(args).await;
    assert_eq!(
        reply.text,
        "Matches for 'x':\na\n  1: x\n  2: x\n  3: x\n  ... and 298 more matches"
    );
    let structured = reply.structured.unwrap();
    assert_eq!(
        (&structured["matches"], &structured["truncated"]),
        (&json!(301), &json!(true))
    );
    let text = run!(tree.text::<GrepTool>, {"pattern": "x", "output_mode": "content"});
    assert!(
        text.ends_with("  50: x\n  ... and 251 more matches"),
        "{text}"
    );
}

#[tokio::test]
async fn many_matches_in_one_file_hide_no_other_file() {
    let many = "x\n".repeat(backend_core::limits::GREP_MATCHES + 1);
    let tree = Tree::new(&[("/a", many.as_str()), ("/b", "x\n")]).await;
    let text = run!(tree.text::<GrepTool>, {"pattern": "x"});
    assert_eq!(text, "Files containing 'x':\n  a\n  b");
    let more = "x\n".repeat(200_000);
    let tree = Tree::new(&[("/a", more.as_str()), ("/b", "x\n")]).await;
    let text = run!(tree.text::<GrepTool>, {"pattern": "x"});
    assert!(
        text.contains("the search ended after 200000 matches"),
        "{text}"
    );
    let text = run!(tree.text::<GrepTool>, {"pattern": "x", "output_mode": "count"});
    assert_eq!(text, "Found 200000+ matches for 'x' in 1+ files");
}

#[tokio::test]
async fn grep_shows_long_lines_around_the_match() {
    let line = format!("{}needle{}\n", "a".repeat(5_000), "b".repeat(5_000));
    let tree = Tree::new(&[("/long", line.as_str())]).await;
    let text = run!(tree.text::<GrepTool>, {"pattern": "needle", "output_mode": "content"});
    let shown = text.lines().last().unwrap();
    assert!(
        shown.contains("needle") && shown.chars().count() < 120,
        "{shown}"
    );
    // A reply stays within its limit however much matches.
    let many = line.repeat(200);
    let mut tree = Tree::new(&[("/long", many.as_str())]).await;
    tree.options.limits.grep_line_chars = 10_000;
    tree.options.limits.reply_bytes = 50_000;
    let args = json!({"pattern": "needle", "output_mode": "content", "max_results": 100});
    let reply = tree.call::<GrepTool>(args).await;
    assert!(reply.text.len() <= 50_000, "{}", reply.text.len());
    assert!(
        reply.text.ends_with("  ... and 196 more matches"),
        "{}",
        &reply.text[49_000..]
    );
}

#[tokio::test]
async fn wrong_numbers_name_their_field() {
    let tree = sample().await;
    for (field, value) in [
        ("max_results", 0),
        ("max_results", -1),
        ("max_results", 1_001),
        ("before", -1),
        ("after", 101),
        ("context", i64::MAX),
    ] {
        let mut args = json!({"pattern": "x", "output_mode": "content"});
        args[field] = json!(value);
        let error = tree.error::<GrepTool>(args).await;
        assert!(
            error.starts_with(&format!("{field} must be from")),
            "{error}"
        );
    }
    let bad = run!(tree.error::<GrepTool>, {"pattern": "(unclosed"});
    assert!(bad.contains("unclosed"), "{bad}");
    let missing = run!(tree.error::<GrepTool>, {"pattern": "x", "path": "nowhere"});
    assert!(missing.contains("no such file"), "{missing}");
}

#[test]
fn unknown_fields_are_refused_and_schemas_say_so() {
    let unknown =
        serde_json::from_value::<crate::args::search::GrepArgs>(json!({"pattern": "x", "pat": 1}));
    assert!(unknown.unwrap_err().to_string().contains("pat"));
    let schema = schemars::schema_for!(crate::args::search::GrepArgs).to_value();
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["required"], json!(["pattern"]));
    for (name, property) in schema["properties"].as_object().unwrap() {
        assert!(property["description"].is_string(), "{name}");
    }
    for output in [
        LsTool::output_schema(),
        GlobTool::output_schema(),
        GrepTool::output_schema(),
    ] {
        assert_eq!(output.unwrap()["type"], json!("object"));
    }
}
