//! Tests of the hints that a failed edit gives.

use crate::text::{Candidate, Edit, EditError, Similarity, apply};

/// Returns the candidates for an edit of `old`, which must not be found.
fn hints(content: &str, old: &str) -> Vec<Candidate> {
    match apply(content, &[Edit::new(old, "new")]) {
        Err(EditError::NoMatch {
            index: 0,
            of: 1,
            candidates,
        }) => candidates,
        other => panic!("{old:?} in {content:?}: {other:?}"),
    }
}

/// Returns the same without the text of the candidates.
fn places(content: &str, old: &str) -> Vec<(u64, Similarity)> {
    hints(content, old)
        .into_iter()
        .map(|hint| (hint.line, hint.why))
        .collect()
}

#[test]
fn hints_say_how_a_place_differs() {
    use Similarity::{Case, Close, Quotes, Whitespace};
    type Places = &'static [(u64, Similarity)];
    // (content, old, candidates)
    let cases: &[(&str, &str, Places)] = &[
        ("x\n\tif a  {\n", "if a {", &[(2, Whitespace)]),
        (
            "x\nfn f() {\n\tg();\n}\n",
            "fn f() {\n    g();\n}",
            &[(2, Whitespace)],
        ),
        (
            "x\nfn f() {\n\tg();\n}\n",
            "\n\n  fn f() {\n g();",
            &[(2, Whitespace)],
        ),
        ("a();\r\nb();\nc();\n", "a();\nb();", &[(1, Whitespace)]),
        ("one two\nthree", "two \n three", &[(1, Whitespace)]),
        ("let Total = 1;\n", "let total = 1;", &[(1, Case)]),
        ("let  Total = 1;\n", "let total = 1;", &[(1, Case)]),
        ("LÄNGE\n", "länge", &[(1, Case)]),
        ("say \"hi\" - it's\n", "say “hi” — it’s", &[(1, Quotes)]),
        ("say “Hi”\n", "say \"hi\"", &[(1, Quotes)]),
        ("a\u{A0}b\n", "a b", &[(1, Quotes)]),
        ("ab\n", "\u{A0}\nab", &[(1, Quotes)]),
        ("ab cd\n", "\u{A0}ab cd", &[(1, Quotes)]),
        // Best first, then in file order.
        (
            "A B\n\na  b\nA B\na   b",
            "a b",
            &[(3, Whitespace), (5, Whitespace), (1, Case)],
        ),
        (
            "b  a\n\n\nb  a, b  a\n",
            "b a",
            &[(1, Whitespace), (4, Whitespace)],
        ),
        // If no place contains it, lines like its first one.
        (
            "x\nlet total = sum(a);\n",
            "\nlet total = sum(b);\nnext",
            &[(2, Close)],
        ),
        (
            "abcdef\nabcxef\nabcdxx\nabcdex\n",
            "abcdeg",
            &[(1, Close), (4, Close), (3, Close)],
        ),
        ("abab\nababax\n", "ababab", &[(2, Close), (1, Close)]),
        ("}\n}\n", "}\nelse", &[]),
        ("completely different\n", "nothing like it", &[]),
        ("a\nb\n", "\n \n\t\n", &[]),
        ("", "gone", &[]),
        ("ab\n", "ab\n\n\nab ab", &[]),
    ];
    for &(content, old, want) in cases {
        assert_eq!(places(content, old), want, "{old:?} in {content:?}");
    }
}

#[test]
fn white_space_within_a_word_is_white_space() {
    let content = "\npub fn add(a: i32, b: i32) {\n";
    let expected = [(2, Similarity::Whitespace)];
    assert_eq!(places(content, "pub fn add(a:i32,"), expected);
    assert_eq!(places(content, "pub fn add( a: i32, b: i32 )"), expected);
}

#[test]
fn what_was_not_compared_is_not_claimed() {
    let long = "x".repeat(300);
    let close = [(1, Similarity::Close)];
    // Equal in the compared part, different after it.
    assert_eq!(places(&format!("{long}a\n"), &format!("{long}b")), close);
    assert_eq!(places(&format!("{long}a\nb"), &format!("{long}\nb")), close);
    // All of the text was compared; only the surrounding line is long.
    let inside = format!("a  b {long}\n");
    assert_eq!(places(&inside, "a b"), [(1, Similarity::Whitespace)]);
    // Indentation is not compared.
    let indented = format!("{}a  b\n", " ".repeat(1_000));
    assert_eq!(places(&indented, "a b"), [(1, Similarity::Whitespace)]);
}

#[test]
fn candidates_show_the_line_cut_to_a_width() {
    let shown = |content: &str, old: &str| hints(content, old).remove(0).text;
    assert_eq!(shown("  a  b \r\nc\n", "a b"), "  a  b ");
    let wide = format!("a  b{}é", "x".repeat(195));
    assert_eq!(shown(&wide, "a b"), wide[..199]);
}

#[test]
fn hints_stop_at_the_bounds() {
    let mut many = "\n".repeat(199_999);
    many.push_str("a  b\n");
    assert_eq!(places(&many, "a b"), [(200_000, Similarity::Whitespace)]);
    many.insert(0, '\n');
    assert_eq!(places(&many, "a b"), []);
    let mut wide = format!("{}\n", "-".repeat(300)).repeat(60_000);
    wide.push_str("a  b\n");
    assert_eq!(places(&wide, "a b"), []);
    // Text longer than the bounds is examined only in part, and nothing more is claimed.
    let old = format!("a b\n{}", "\n".repeat(250_000));
    assert_eq!(places("a  b\n", &old), [(1, Similarity::Close)]);
}

#[test]
fn hostile_text_is_no_trouble() {
    let content = "a".repeat(2_000_000);
    let mut old = "a".repeat(100_000);
    old.push('b');
    assert_eq!(places(&content, &old), [(1, Similarity::Close)]);
    let rows = "aaaa\n".repeat(160_000);
    let mut old = " aaaa\n".repeat(50_000);
    old.push('A');
    let want = [1, 50_002, 100_003].map(|line| (line, Similarity::Case));
    assert_eq!(places(&rows, &old), want);
}
