//! Tests of scanning and expanding words.

use super::*;
use crate::error::ParseError;

fn read(text: &str) -> Result<Vec<String>, ParseError> {
    let scanned = scan(text, Mode::Word)?;
    Ok(expand(&scanned, &StepBudget::new(None))
        .words
        .iter()
        .map(Word::shown)
        .collect())
}

fn one(text: &str) -> Word {
    let scanned = scan(text, Mode::Word).unwrap();
    expand(&scanned, &StepBudget::new(None))
        .words
        .into_iter()
        .next()
        .unwrap()
}

#[test]
fn quotes_are_removed() {
    for (text, literal) in [
        ("rm", "rm"),
        ("r\\m", "rm"),
        ("r''m", "rm"),
        ("\"r\"'m'", "rm"),
        ("$'\\x72m'", "rm"),
        ("$'\\162m'", "rm"),
        ("$'\\u0072m'", "rm"),
        ("\"a\\\"b\\$c\\d\"", "a\"b$c\\d"),
        ("''", ""),
        ("a\r", "a\r"),
        ("$", "$"),
        ("'*'", "*"),
        ("a~", "a~"),
        ("$\"a b\"", "a b"),
    ] {
        assert_eq!(one(text).literal(), Some(literal), "{text}");
    }
}

#[test]
fn expansions_are_not_known() {
    let texts = "$x ${x} a$(id) `id` \"$x\" $((1+2)) ${x:-$(id)} $'\\c1' $'a\\0b' a$PWD ~+/x ~-/x";
    for text in texts.split(' ') {
        assert!(one(text).is_computed(), "{text}");
        assert_eq!(one(text).literal(), None, "{text}");
    }
    for text in ["~", "~/x", "$HOME/x", "\"${HOME}\"", "~root"] {
        assert_eq!(one(text).parts().first(), Some(&WordPart::Home), "{text}");
    }
    for text in ["$PWD", "${PWD}/x", "\"$(pwd)/x\"", "`pwd`"] {
        assert_eq!(one(text).parts().first(), Some(&WordPart::Here), "{text}");
        assert!(!one(text).is_unknown(), "{text}");
    }
    for text in ["*", "a?", "[ab]c", "a*b"] {
        assert!(one(text).is_glob(), "{text}");
    }
    assert_eq!(one("[").literal(), Some("["));
}

#[test]
fn substitutions_are_cut_out() {
    for (text, program) in [
        ("$(id)", "id"),
        ("\"$(echo \")\")\"", "echo \")\""),
        ("$(echo $(id))", "echo $(id)"),
        ("`id -u`", "id -u"),
        ("${x:-$(id)}", "id"),
        ("$(( $(id) + 1 ))", "id"),
        ("\"$(cat <<'E'\nit's )\nE\n)\"", "cat <<'E'\nit's )\nE\n"),
        ("$(true # '\n)", "true # '\n"),
    ] {
        let scanned = scan(text, Mode::Word).unwrap();
        assert_eq!(scanned.programs, [program], "{text}");
    }
}

#[test]
fn what_is_read_in_two_ways_is_refused() {
    for text in [
        "$'a\\'b'",
        "a b",
        "a;b",
        "$[1]",
        "$((a) )",
        "$((echo) ; (id))",
        "${x:-'}'}",
        "${x@P}",
        "`a \\`b\\``",
        "'a",
        "\"a",
        "a\\",
        "$(id",
        "${x",
        "$((a\n))",
        "$((`id`))",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn braces_expand_within_bounds() {
    assert_eq!(read("a{b,c}d").unwrap(), ["abd", "acd"]);
    assert_eq!(read("{-rf,/}").unwrap(), ["-rf", "/"]);
    assert_eq!(read("{1..3}").unwrap(), ["1", "2", "3"]);
    assert_eq!(read("{a,b{1,2}}").unwrap(), ["a", "b1", "b2"]);
    assert_eq!(read("{}").unwrap(), ["{}"]);
    assert_eq!(read("{a}").unwrap(), ["{a}"]);
    assert_eq!(read("'{a,b}'").unwrap(), ["{a,b}"]);
    assert_eq!(read("{a},b}").unwrap(), ["a}", "b"]);
    assert_eq!(read("x{},b}").unwrap(), ["x}", "xb"]);
    assert_eq!(read("{,a}").unwrap(), ["a"]);
    assert_eq!(read("{,}").unwrap(), [""; 0]);
    assert_eq!(read("{'',a}").unwrap(), ["", "a"]);
    for text in [
        "{1..99999999999999999999}",
        "{1..1000000}",
        "{01..05}",
        &"{a,b}".repeat(20),
        &"{a,".repeat(40),
    ] {
        let words = read(text).unwrap();
        assert!(words.len() <= 256, "{text}");
    }
    assert!(one("{1..1000000}").is_computed());
}

#[test]
fn calculations_that_set_variables_are_found() {
    let sets = |text: &str| scan(text, Mode::Word).unwrap().sets;
    for text in [
        "$((x=1))",
        "$((x >>= 1))",
        "$((x<<=1))",
        "$((x>>=1))",
        "$((1 >= x--))",
        "${y:x=1}",
        "${y[x=1]}",
    ] {
        assert!(sets(text).contains(&"x".to_owned()), "{text}");
    }
    for text in ["$((x==1))", "$((x >= 1))", "$((x<=1 || x!=2))", "${y:x}"] {
        assert_eq!(sets(text), [""; 0], "{text}");
    }
}
