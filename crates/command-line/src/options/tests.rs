//! Tests of parsing options.

use super::*;
use crate::word;

fn read(short: &'static str, long: &'static str, line: &str) -> String {
    let words: Vec<Word> = line.split(' ').map(Word::text).collect();
    let row = |short, long| Row::new("p", short, long);
    let parsed = parse(&row(short, long), &words);
    let options = parsed.options.iter().map(|given| match &given.value {
        Some(value) => format!("{}={}", given.name, value.shown()),
        None => given.name.clone(),
    });
    let operands = parsed.operands.iter().map(|at| words[*at].shown());
    let unknown = parsed.unknown.iter().map(|text| format!("?{text}"));
    options
        .chain(["|".to_owned()])
        .chain(operands)
        .chain(unknown)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn options_are_read_as_getopt_does() {
    for (short, long, line, expected) in [
        ("ix!", "exec!", "p -ix id a", "i x=id | a"),
        ("ix!", "exec!", "p -ixid a", "i x=id | a"),
        ("ix!", "exec!", "p a -x id", "x=id | a"),
        ("ix!", "exec!", "p -- -x id", "| -x id"),
        ("ix!", "exec! edit", "p --ex id", "exec=id |"),
        ("ix!", "exec! edit", "p --ex=id b", "exec=id | b"),
        ("i", "edit", "p --exec=id b", "| b ?--exec=id"),
        ("i", "edit", "p -iq b", "i | b ?-iq"),
        ("+n:", "", "p -n 5 q -n 6", "n=5 | q -n 6"),
        ("+n:#", "", "p -5 q", "| q"),
        ("+n:#", "", "p --5 q", "| q"),
        ("O?!n", "pager?!", "p -nO a", "n O | a"),
        (
            "O?!n",
            "pager?!",
            "p -Ols a --pager=x --pager y",
            "O=ls pager=x pager | a y",
        ),
        ("a\\#\\@:", "", "p -a# -@ 1 -# b -9", "a # @=1 # | b ?-9"),
        ("=cf>I!", "", "p cfI a z b", "c f=a I=z | b"),
        ("=cf>I!", "", "p -cfI a z b", "c f=I | a z b"),
        (
            "a",
            "upload-pack! update up",
            "p --upl x",
            "upload-pack=x |",
        ),
        ("a", "upload-pack! update", "p --up x", "upload-pack=x |"),
        ("a", "upgrade update", "p --up x", "| x ?--up"),
        ("a", "upgrade update up", "p --up x", "up | x"),
    ] {
        assert_eq!(read(short, long, line), expected, "{line}");
    }
}

#[test]
fn computed_values_are_values_and_computed_names_are_not_known() {
    let word = |text| {
        let scanned = word::scan(text, word::Mode::Word).unwrap();
        word::expand(&scanned, &crate::budget::StepBudget::new(None))
            .words
            .remove(0)
    };
    let row = Row::new("p", "ax!", "exec!");
    let parsed = parse(&row, &[word("p"), word("--exec=$x"), word("-x$y")]);
    assert_eq!(parsed.options.len(), 2);
    for given in &parsed.options {
        assert!(given.value.as_ref().is_some_and(Word::is_computed));
    }
    let parsed = parse(&row, &[word("p"), word("-$x"), word("--$x"), word("-a$x")]);
    assert_eq!(parsed.unknown.len(), 3);
    let more = [word("p"), word("--oth"), word("--"), word("-x"), word("id")];
    let parsed = parse_with(&row, &["other"], &more);
    assert!(parsed.has(&["x"]), "'--' may be the value of an option");
    assert!(
        parse_with(&row, &["other"], &[word("p"), word("--no-other")])
            .unknown
            .is_empty()
    );
    assert_eq!(
        parse_with(&row, &["other"], &[word("p"), word("--new")])
            .unknown
            .len(),
        1
    );
}
