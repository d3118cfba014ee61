//! Tests of exact replacement: each rule by example, and the invariants of an edit.

use proptest::prelude::*;

use crate::text::{Applied, Edit, EditError, Similarity, apply, line_of};

fn one(content: &str, old: &str, new: &str) -> Result<Applied, EditError> {
    apply(content, &[Edit::new(old, new)])
}

#[test]
fn edits_apply_in_order_to_each_others_result() {
    let done = apply(
        "a b a",
        &[
            Edit::new("b", "c"),
            Edit::new("c", "d a"),
            Edit::new("a", "x").all(),
        ],
    );
    let want = Applied {
        text: "x d x x".into(),
        replacements: vec![1, 1, 3],
        first_line: 1,
    };
    assert_eq!(done, Ok(want));
}

#[test]
fn malformed_edits_are_refused() {
    assert_eq!(apply("a", &[]), Err(EditError::NoEdits));
    let empty = |index, of| Err(EditError::EmptyOld { index, of });
    let no_change = |index, of| Err(EditError::NoChange { index, of });
    assert_eq!(one("a", "", "b"), empty(0, 1));
    assert_eq!(one("a", "a", "a"), no_change(0, 1));
    let second = |edit| apply("a", &[Edit::new("a", "b"), edit]);
    assert_eq!(second(Edit::new("", "b")), empty(1, 2));
    assert_eq!(second(Edit::new("b", "b").all()), no_change(1, 2));
}

#[test]
fn one_failure_fails_all() {
    let edits = [
        Edit::new("a", "b"),
        Edit::new("nowhere", "x"),
        Edit::new("", ""),
    ];
    let error = EditError::NoMatch {
        index: 1,
        of: 3,
        candidates: vec![],
    };
    assert_eq!(apply("a", &edits), Err(error));
}

#[test]
fn several_occurrences_are_ambiguous() {
    // (content, old, count, lines)
    let cases: &[(&str, &str, usize, &[u64])] = &[
        ("a\nb\na\n", "a", 2, &[1, 3]),
        ("x x x\n\nx", "x", 4, &[1, 3]),
        ("xy xy", "xy", 2, &[1]),
        ("aaa", "aa", 2, &[1]),
        ("a\na\na", "a\na", 2, &[1, 2]),
        ("a\na\na\na\na\na\na\n", "a", 7, &[1, 2, 3, 4, 5]),
        ("ab\r\nab\r\n", "b\n", 2, &[1, 2]),
    ];
    for &(content, old, count, lines) in cases {
        let want = EditError::MultipleMatches {
            index: 0,
            of: 1,
            count,
            lines: lines.to_vec(),
        };
        assert_eq!(
            one(content, old, "new"),
            Err(want),
            "{old:?} in {content:?}"
        );
    }
}

#[test]
fn all_occurrences_can_be_replaced() {
    for (text, old, new, result, count) in [
        ("aaa\naa", "aa", "b", "ba\nb", 2),
        ("one two", "two", "", "one ", 1),
    ] {
        let want = Applied {
            text: result.into(),
            replacements: vec![count],
            first_line: 1,
        };
        assert_eq!(apply(text, &[Edit::new(old, new).all()]), Ok(want));
    }
}

#[test]
fn line_ends_are_bridged_only_in_a_crlf_file() {
    // (content, old, new, result)
    let cases: &[(&str, &str, &str, Option<&str>)] = &[
        ("a\r\nb\r\nc", "a\nb", "x\ny\nz", Some("x\r\ny\r\nz\r\nc")),
        ("a\r\nb\r\n", "a\nb\r\n", "x\r\ny\n", Some("x\r\ny\r\n")),
        ("a\r\nb", "a\nb", "", Some("")),
        // Found as given: the new text is inserted as given.
        ("a\r\nb\r\n", "a", "x\ny", Some("x\ny\r\nb\r\n")),
        ("a\r\nb\r\n", "a\r\nb", "x\ny", Some("x\ny\r\n")),
        ("a\r\nb", "\nb", "\nc\n", Some("a\r\nc\n")),
        // With one bare line end, the file is not a CRLF file.
        ("a\r\nb\nc\r\n", "a\nb", "x", None),
        ("\na\r\nb\r\n", "a\nb", "x", None),
        ("a b", "a\nb", "x", None),
        ("a\r\nb\r\n", "a\n\nb", "x", None),
        ("a\nb\n", "a\r\nb", "x", None),
    ];
    for &(content, old, new, want) in cases {
        let got = one(content, old, new);
        match want {
            Some(text) => assert_eq!(got.unwrap().text, text, "{old:?} in {content:?}"),
            None => assert!(matches!(got, Err(EditError::NoMatch { .. })), "{got:?}"),
        }
    }
    let all = apply("a\r\nb\r\na\r\nb", &[Edit::new("a\nb", "c").all()]).unwrap();
    assert_eq!((all.text.as_str(), all.replacements), ("c\r\nc", vec![2]));
    let same = one("a\r\nb", "a\nb", "a\r\nb");
    assert_eq!(same, Err(EditError::NoChange { index: 0, of: 1 }));
    // Only text that could be found that way is checked that way.
    let not_found = EditError::NoMatch {
        index: 0,
        of: 1,
        candidates: vec![],
    };
    assert_eq!(one("x\r\n", "a\r\nb", "a\nb"), Err(not_found.clone()));
    assert_eq!(one("x", "a\nb", "a\r\nb"), Err(not_found));
}

#[test]
fn the_first_line_follows_the_first_edit() {
    type Pairs = &'static [(&'static str, &'static str)];
    // (content, edits, line of the first edit's first replacement in the result)
    let cases: &[(&str, Pairs, u64)] = &[
        ("a\nb\nc", &[("b", "x")], 2),
        ("a\nb\nc", &[("c", "")], 3),
        ("a\nb\nc", &[("b", "x\ny"), ("c", "z\nz")], 2),
        ("a\nb\nc", &[("c", "x"), ("a", "1\n2\n3")], 5),
        ("a\nb\nc", &[("c", "x"), ("a\n", "")], 2),
        ("a\nb\nc", &[("c", "x"), ("a\nb\nx", "one")], 1),
        ("a\nb\nc", &[("c", "x"), ("b\nx", "1\n2\n3")], 2),
        ("a\nb\nc", &[("b", "x"), ("x", "\ny")], 2),
    ];
    for &(content, edits, line) in cases {
        let edits = edits.iter().map(|&(old, new)| Edit::new(old, new));
        let edits: Vec<Edit> = edits.collect();
        let done = apply(content, &edits).unwrap();
        assert_eq!(done.first_line, line, "{edits:?}");
    }
    let all = [Edit::new("c", "x"), Edit::new("-", "\n").all()];
    assert_eq!(apply("a-b-c-d", &all).unwrap().first_line, 3);
    let first_of_all = apply("0\na\na", &[Edit::new("a", "b").all()]).unwrap();
    assert_eq!(first_of_all.first_line, 2);
}

#[test]
fn line_of_counts_line_ends_before_the_byte() {
    let text = "é\nb\n";
    let want = [1, 1, 1, 2, 2, 3, 3, 3];
    for (byte, line) in want.into_iter().enumerate() {
        assert_eq!(line_of(text, byte), line, "byte {byte}");
    }
    assert_eq!(line_of("", 0), 1);
}

#[test]
fn errors_say_what_to_do() {
    let message = |content: &str, edits: &[Edit]| apply(content, edits).unwrap_err().to_string();
    let single = |content: &str, old: &str, new: &str| message(content, &[Edit::new(old, new)]);
    assert_eq!(message("a", &[]), "there are no edits; give at least one");
    assert_eq!(
        single("a", "", "b"),
        "the text to replace is empty; copy it from the file"
    );
    assert_eq!(
        single("a", "a", "a"),
        "the new text is the same as the text to replace; change it or leave the edit out"
    );
    assert_eq!(
        single("a", "zzz", "b"),
        "the text to replace was not found; read the file again and copy the text exactly"
    );
    assert_eq!(
        single("a b a", "a", "b"),
        "the text to replace occurs 2 times, on line 1; \
         add lines around it to name one place, or replace all"
    );
    assert_eq!(
        single(&"a\n".repeat(5), "a", "b"),
        "the text to replace occurs 5 times, on lines 1, 2, 3, 4, 5; \
         add lines around it to name one place, or replace all"
    );
    assert_eq!(
        single(&"a\n".repeat(9), "a", "b"),
        "the text to replace occurs 9 times, first on lines 1, 2, 3, 4, 5; \
         add lines around it to name one place, or replace all"
    );
    assert_eq!(
        message(
            "One  \u{1B}[31mtwo\none  \u{1B}[31mtwo",
            &[Edit::new("O", "o"), Edit::new("one \u{1B}[31mtwo", "")]
        ),
        "edit 2: the text to replace was not found; \
         nearest: line 1 (differs in white space): \"one  \\u{1b}[31mtwo\"; \
         line 2 (differs in white space): \"one  \\u{1b}[31mtwo\"; \
         read the file again and copy the text exactly"
    );
    assert_eq!(
        message("a\u{A0}b", &[Edit::new("a b", ""), Edit::new("", "")]),
        "edit 1: the text to replace was not found; nearest: line 1 \
         (differs in typographic quotes, dashes or spaces): \"a\\u{a0}b\"; \
         read the file again and copy the text exactly"
    );
    assert_eq!(
        Similarity::Case.to_string(),
        "differs in upper and lower case"
    );
    assert_eq!(Similarity::Close.to_string(), "similar");
}

/// Counts the occurrences of `old`, including overlapping ones.
fn occurrences(content: &str, old: &str) -> usize {
    content
        .char_indices()
        .filter(|&(at, _)| content[at..].starts_with(old))
        .count()
}

/// Text of few characters, so that parts of it repeat and overlap.
fn text() -> impl Strategy<Value = String> {
    let pieces = vec!["a", "b", "B", " ", "é", "”", "\"", "\n", "\r\n", "\r"];
    prop::collection::vec(prop::sample::select(pieces), 0..30).prop_map(|pieces| pieces.concat())
}

/// A text and something to search for: mostly a part of it.
fn text_and_part() -> impl Strategy<Value = (String, String)> {
    (text(), any::<prop::sample::Index>(), 0_usize..6, text()).prop_map(
        |(content, at, length, other)| {
            let start = content.floor_char_boundary(at.index(content.len() + 1));
            let part: String = content[start..].chars().take(length).collect();
            let part = if part.is_empty() { other } else { part };
            (content, part)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn an_edit_replaces_exactly_what_is_unique((content, old) in text_and_part(), new in text()) {
        let got = one(&content, &old, &new);
        match (occurrences(&content, &old), &got) {
            _ if old.is_empty() => prop_assert_eq!(got, Err(EditError::EmptyOld { index: 0, of: 1 })),
            _ if old == new => prop_assert_eq!(got, Err(EditError::NoChange { index: 0, of: 1 })),
            (1, Ok(done)) => {
                prop_assert_eq!(&done.text, &content.replacen(&old, &new, 1));
                prop_assert_eq!(&done.replacements, &[1]);
                prop_assert_eq!(done.first_line, line_of(&content, content.find(&old).unwrap()));
            }
            (0, Ok(_) | Err(EditError::NoChange { .. })) => prop_assert!(old.contains('\n')),
            (0, Err(error)) => {
                let is_miss = matches!(error, EditError::NoMatch { .. });
                prop_assert!(is_miss || content.contains("\r\n"), "{error:?}");
            }
            (times, Err(EditError::MultipleMatches { count, lines, .. })) => {
                prop_assert!(times > 1);
                prop_assert_eq!(*count, content.matches(&old).count().max(2));
                let mut starts: Vec<u64> = content
                    .char_indices()
                    .filter(|&(at, _)| content[at..].starts_with(&old))
                    .map(|(at, _)| line_of(&content, at))
                    .collect();
                starts.dedup();
                starts.truncate(5);
                prop_assert_eq!(lines, &starts);
            }
            (times, _) => prop_assert!(false, "{times} occurrences gave {got:?}"),
        }
    }

    #[test]
    fn an_edit_can_be_taken_back((content, old) in text_and_part(), new in text()) {
        let Ok(done) = one(&content, &old, &new) else { return Ok(()) };
        let is_exact = occurrences(&content, &old) == 1;
        if is_exact && !new.is_empty() && occurrences(&done.text, &new) == 1 {
            prop_assert_eq!(one(&done.text, &new, &old).unwrap().text, content);
        }
    }

    #[test]
    fn all_equals_what_the_standard_library_does(
        (content, old) in text_and_part(),
        new in text(),
    ) {
        let got = apply(&content, &[Edit::new(&*old, &*new).all()]);
        if !old.is_empty() && old != new && content.contains(&old) {
            let done = got.unwrap();
            prop_assert_eq!(done.text, content.replace(&old, &new));
            prop_assert_eq!(done.replacements, [content.matches(&old).count()]);
        }
    }

    #[test]
    fn a_list_is_its_edits_one_by_one(
        content in text(),
        edits in prop::collection::vec(("[abB\n]{0,2}", "[abB\n]{0,3}", any::<bool>()), 1..4),
    ) {
        let edits: Vec<Edit> = edits
            .into_iter()
            .map(|(old, new, replace_all)| Edit { old, new, replace_all })
            .collect();
        let mut want = Ok(content.clone());
        for edit in &edits {
            want = want.and_then(|text| apply(&text, std::slice::from_ref(edit)))
                .map(|done| done.text);
        }
        prop_assert_eq!(apply(&content, &edits).ok().map(|done| done.text), want.ok());
    }

    #[test]
    fn a_lf_edit_of_a_crlf_file_is_the_edit_of_its_lf_twin(
        content in "([ab é]|\n){0,20}",
        old in "[ab]\n[ab]{0,1}",
        new in "([ab]|\n){0,4}",
    ) {
        let twin = one(&content, &old, &new).map(|done| done.text.replace('\n', "\r\n"));
        let got = one(&content.replace('\n', "\r\n"), &old, &new).map(|done| done.text);
        prop_assert_eq!(got.ok(), twin.ok());
    }

    #[test]
    fn hints_point_into_the_text((content, old) in text_and_part(), noise in text()) {
        let old = format!("{old}{noise}");
        if let Err(EditError::NoMatch { candidates, .. }) = one(&content, &old, "new") {
            prop_assert!(candidates.len() <= 3);
            let order = candidates.iter().map(|hint| hint.why);
            prop_assert!(order.is_sorted());
            for hint in candidates {
                let line = content.split('\n').nth(usize::try_from(hint.line - 1).unwrap());
                prop_assert!(line.unwrap().starts_with(&hint.text));
                prop_assert!(!hint.to_string().contains(char::is_control));
            }
        }
    }
}

#[test]
fn a_text_does_not_grow_without_bound() {
    let text = "a".repeat(1 << 20);
    let wide = Edit::new("a", "b".repeat(1 << 20)).all();
    let Err(EditError::TooLarge { bytes, .. }) = apply(&text, &[wide]) else {
        panic!("a terabyte");
    };
    assert_eq!(bytes, 1 << 40);
    let growing = vec![Edit::new("a", "a".repeat(1_000)).all(); 5];
    let error = apply("a", &growing).unwrap_err();
    let message = "edit 3: the text would have 1000000000 bytes, more than the 67108864";
    assert!(error.to_string().starts_with(message), "{error}");
    let kind = crate::Error::from(error).kind();
    assert_eq!(kind, crate::ErrorKind::TooLarge);
}
