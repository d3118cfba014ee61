//! Tests of the rules for Rust source files.

use super::*;
use crate::tidy::findings::shown;
use crate::tidy::text_file;

const PATH: &str = "crates/a/src/lib.rs";

fn check_text(path: &str, text: &str) -> Vec<String> {
    shown(&check(&text_file(path, text)))
}

#[test]
fn a_documented_file_is_fine() {
    assert_eq!(check_text(PATH, "//! A.\n\nfn f() {}\n"), [""; 0]);
}

#[test]
fn module_doc_may_follow_inner_attributes() {
    for head in [
        "",
        "#![no_main]\n",
        "#![allow(\n    a[0],\n    b\n)]\n\n",
        "\n",
    ] {
        assert!(has_module_doc(&format!("{head}//! A.\n")), "{head:?}");
    }
    assert!(has_module_doc("#![doc = include_str!(\"../README.md\")]\n"));
    assert!(has_module_doc(
        "#![cfg_attr(feature = \"a\", doc = include_str!(\"../README.md\"))]\n"
    ));
    for text in [
        "",
        "fn f() {}\n",
        "/// A.\nfn f() {}\n//! Late.\n",
        "#![allow(\n//! A.\n",
    ] {
        assert!(!has_module_doc(text), "{text:?}");
    }
}

#[test]
fn module_doc_is_needed_in_sources_but_not_in_tests() {
    let message = ": error: does not begin with a `//!` comment";
    for path in [
        PATH,
        "crates/a/src/x/y.rs",
        "examples/examples/e.rs",
        "xtask/src/main.rs",
    ] {
        assert_eq!(
            check_text(path, "fn f() {}\n"),
            [format!("{path}{message}")]
        );
    }
    for path in "crates/a/tests/it.rs crates/a/benches/b.rs fuzz/fuzz_targets/f.rs".split(' ') {
        assert_eq!(check_text(path, "fn f() {}\n"), [""; 0], "{path}");
    }
}

#[test]
fn white_space_at_an_end_is_refused() {
    let expected = [
        format!("{PATH}:2: error: white space at the end of the line"),
        format!("{PATH}: error: no newline at the end of the file"),
    ];
    assert_eq!(check_text(PATH, "//! A.\nfn f() {} \nfn g() {}"), expected);
    assert_eq!(check_text(PATH, "//! A.\r\n").len(), 1);
}

#[test]
fn size_is_counted_up_to_the_test_module() {
    let sized = |n_lines: usize| format!("//! A.\n{}", "f();\n".repeat(n_lines - 1));
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "t();\n".repeat(900));
    assert_eq!(check_text(PATH, &(sized(500) + &tests)), [""; 0]);
    let warned = check_text(PATH, &(sized(501) + &tests));
    assert_eq!(
        warned,
        [format!(
            "{PATH}: warning: 501 lines before the tests, limit 500"
        )]
    );
    let failed = check_text(PATH, &(sized(801) + &tests));
    assert_eq!(
        failed,
        [format!(
            "{PATH}: error: 801 lines before the tests, limit 800"
        )]
    );
    assert_eq!(check_text("crates/a/tests/it.rs", &sized(900)), [""; 0]);
}

#[test]
fn a_declared_test_module_does_not_hide_the_code_below() {
    let text = format!("//! A.\n#[cfg(test)]\nmod tests;\n{}", "f();\n".repeat(900));
    assert_eq!(check_text(PATH, &text).len(), 1);
}

#[test]
fn an_ignored_test_needs_a_reason() {
    let text = "#[test]\n#[ignore]\nfn t() {}\n#[cfg_attr(unix, ignore)]\nfn u() {}\n";
    let found = check_text("crates/a/tests/it.rs", text);
    let expected = [2, 4]
        .map(|line| format!("crates/a/tests/it.rs:{line}: error: `#[ignore]` needs a reason"));
    assert_eq!(found, expected);
    assert_eq!(
        check_text("crates/a/tests/it.rs", "#[ignore = \"slow: 1 GB\"]\n"),
        [""; 0]
    );
}

#[test]
fn modules_are_where_their_names_say() {
    let text = "//! A.\n\n#[path = \"b.rs\"]\nmod a;\nconst A: &str = \"\n#[path]\";\n";
    for path in [PATH, "crates/a/tests/it/main.rs", "xtask/src/a.rs"] {
        let found = check_text(path, text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("{path}:3: error: `#[path]`")));
    }
    assert_eq!(check_text("fuzz/fuzz_targets/a.rs", text), [""; 0]);
}

#[test]
fn unfinished_code_is_refused_outside_tests() {
    for leftover in LEFTOVERS {
        let text = format!("//! A.\nfn f() {{\n    {leftover})\n}}\n");
        assert_eq!(
            check_text(PATH, &text),
            [format!("{PATH}:3: error: unfinished: `{leftover}`")]
        );
        assert_eq!(check_text("crates/a/src/x/tests.rs", &text), [""; 0]);
        let tested = format!("//! A.\n#[cfg(test)]\nmod tests {{\n{leftover}\n}}\n");
        assert_eq!(check_text(PATH, &tested), [""; 0]);
    }
}

#[test]
fn text_is_not_code() {
    let text = "//! A.\n\nconst A: &str = \"\n#[ignore]\nfn f() { todo!() }\n\";\n";
    assert_eq!(check_text(PATH, text), [""; 0]);
}
