//! Tests of the rule about circles of files.

use super::*;
use crate::tidy::findings::shown;
use crate::tidy::text_file;

/// Returns the circles of a crate of these files, as `a.rs -> b.rs (B) -> a.rs (A)`.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let found = circles(files, &|_, _| false);
    let shown = found.into_iter().map(|circle| {
        let (_, circle) = circle.message.split_once(": ").unwrap();
        circle.to_owned()
    });
    shown.collect()
}

#[test]
fn a_circle_is_spelled_with_the_used_names() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::{C, self as other, B};"),
        ("b.rs", "fn f() -> super::a::A { todo!() }"),
    ];
    assert_eq!(found(&files), ["a.rs -> b.rs (C) -> a.rs (A)"]);
    let one_way = [files[0], files[1], ("b.rs", "struct B;")];
    assert_eq!(found(&one_way), [""; 0]);
    assert!(circles(&files, &|from, to| (from, to) == ("b.rs", "a.rs")).is_empty());
}

#[test]
fn the_shortest_circle_of_a_group_is_shown() {
    let files = [
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use crate::c::C;"),
        ("c.rs", "use crate::a::A; use crate::d;"),
        ("d.rs", "use crate::c;"),
        ("e.rs", "use crate::a::A;"),
    ];
    let circles = circles(&files, &|_, _| false);
    let messages: Vec<_> = circles.iter().map(|circle| &circle.message).collect();
    assert_eq!(
        messages,
        ["circle of 4 files: c.rs -> d.rs (d) -> c.rs (c)"]
    );
    assert_eq!(circles[0].first, "c.rs");
}

#[test]
fn a_parent_and_its_child_may_use_each_other() {
    let pair = [
        ("a.rs", "mod b; pub use b::B;"),
        ("a/b.rs", "use super::A;"),
    ];
    assert_eq!(found(&pair), [""; 0]);
    let nephew = [
        ("a.rs", "mod b; use self::b::B;"),
        ("a/b.rs", "mod c; use c::C;"),
        ("a/b/c.rs", "use super::super::A;"),
    ];
    let circle = "a.rs -> a/b.rs (B) -> a/b/c.rs (C) -> a.rs (A)";
    assert_eq!(found(&nephew), [circle]);
}

#[test]
fn a_re_export_counts_for_the_file_that_defines_the_item() {
    let files = [
        (
            "lib.rs",
            "mod a; mod b; pub use crate::a::A; pub use b::B as Both; pub use other::O;",
        ),
        ("a.rs", "use crate::Both;"),
        ("b.rs", "use crate::O;"),
    ];
    assert_eq!(found(&files), [""; 0]);
    let back = [files[0], files[1], ("b.rs", "use crate::A;")];
    assert_eq!(found(&back), ["a.rs -> b.rs (B) -> a.rs (A)"]);
}

#[test]
fn a_name_that_leads_back_to_itself_ends() {
    let files = [("a.rs", "use crate::b::X;"), ("b.rs", "use crate::a::X;")];
    assert_eq!(found(&files), ["a.rs -> b.rs (X) -> a.rs (X)"]);
}

#[test]
fn a_macro_is_used_where_it_is_defined() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "macro_rules! m { () => {} }\nuse crate::b::B;"),
        ("b.rs", "fn f() { crate::m!() }"),
    ];
    assert_eq!(found(&files), ["a.rs -> b.rs (B) -> a.rs (m)"]);
}

#[test]
fn modules_inside_a_file_belong_to_it() {
    let files = [
        (
            "a.rs",
            "pub mod inner { use super::super::b::B; pub struct I; }",
        ),
        ("b.rs", "use crate::a::inner::I;"),
    ];
    assert_eq!(found(&files), ["a.rs -> b.rs (B) -> a.rs (I)"]);
}

#[test]
fn only_code_outside_tests_counts() {
    let used = ("a.rs", "use crate::b::B;");
    for text in [
        "/// [`A`](crate::a::A)\nfn f() -> &'static str { \"crate::a::A\" }",
        "// crate::a::A",
        "pub(in crate::a) struct B;",
        "#[cfg(test)]\nmod tests { use crate::a::A; }",
        "#[cfg(all(test, unix))]\n#[allow(unused)]\npub(crate) fn f(a: crate::a::A) {}",
        "struct B { #[cfg(test)] a: crate::a::A, b: u8 }",
        "impl B { fn f() -> impl Sized + use<> { std::a::A } }",
        "macro_rules! b { () => { $crate::a::A } }",
    ] {
        assert_eq!(found(&[used, ("b.rs", text)]), [""; 0], "{text}");
    }
    for text in [
        "#[cfg(any(test, unix))]\nfn f(a: crate::a::A) {}",
        "#[cfg(test)]\nfn f<A, B>(a: A) {}\nfn g() { vec![crate::a::A] }",
        "struct B { #[cfg(test)] a: u8, b: crate::a::A }",
    ] {
        assert_eq!(found(&[used, ("b.rs", text)]).len(), 1, "{text}");
    }
    let declared = [
        used,
        ("b.rs", "#[cfg(test)]\nmod support;"),
        ("b/support.rs", "use crate::a::A;"),
        ("a/c.rs", "use crate::b::support;"),
    ];
    assert_eq!(found(&declared), [""; 0]);
}

#[test]
fn findings_name_the_file_and_what_is_allowed_is_none() {
    let circle = |source: &str| {
        [
            text_file(&format!("{source}/a.rs"), "use crate::b::B;"),
            text_file(&format!("{source}/b.rs"), "use crate::a::A;"),
        ]
    };
    for source in ["crates/x/src", "xtask/src"] {
        let expected = format!("{source}/a.rs: error: circle of 2 files: a.rs -> b.rs (B)");
        let found = shown(&check(&circle(source)));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with(&expected), "{found:?}");
    }
    for source in ["crates/x/tests/it", "crates/x/src/bin", "fuzz/src"] {
        assert_eq!(check(&circle(source)), [], "{source}");
    }
    let (a, b, _) = ALLOWED[0];
    let names = [a, b].map(|path| {
        let (_, name) = source(path).unwrap();
        format!("use crate::{}::X;", name.trim_end_matches(".rs"))
    });
    assert_eq!(
        check(&[text_file(a, &names[1]), text_file(b, &names[0])]),
        []
    );
}
