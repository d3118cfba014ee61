//! Finds local files in the arguments of `curl`.

use crate::options;
use crate::tables;
use crate::word::{Atom, Word};

/// Placeholder for the expansion of one of `curl`'s own globs.
const GROUP: char = '\u{1}';

/// Returns the files that `curl` reads through URLs, forms and cookies. The others are
/// found through the table and the words. Facts are from curl(1).
pub(crate) fn files(words: &[Word]) -> Vec<Word> {
    let Some(row) = tables::program("curl") else {
        return Vec::new();
    };
    let parsed = options::parse(row, words);
    let value = |name: &[&str]| {
        let values = parsed.given(name).filter_map(|given| given.value.as_ref());
        values.filter_map(Word::literal).last().map(str::to_owned)
    };
    let guessed = value(&["proto-default"]).is_some_and(|it| it.eq_ignore_ascii_case("file"));
    let mut files = Vec::new();
    let urls = parsed
        .given(&["url"])
        .filter_map(|given| given.value.as_ref());
    for url in parsed.operands(words).chain(urls).filter_map(Word::literal) {
        files.extend(of_address(url, guessed));
    }
    for given in parsed.given(&["b", "cookie"]) {
        // A value with `=` holds the cookies themselves.
        let file = given.value.clone();
        files.extend(file.filter(|value| !value.shown().contains('=')));
    }
    for given in parsed.given(&["F", "form"]) {
        let form = given.value.as_ref().and_then(Word::literal);
        files.extend(form.into_iter().flat_map(of_form));
    }
    files
}

/// Returns the path of a `file:` URL, or if `guessed`, of one without a scheme.
fn of_address(url: &str, guessed: bool) -> Option<Word> {
    let rest = match url.get(..5) {
        Some(scheme) if scheme.eq_ignore_ascii_case("file:") => url.get(5..)?,
        _ if guessed && !url.contains("://") => url,
        _ => return None,
    };
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    // Skip the host before the path.
    let path = rest.get(rest.find('/')?..)?;
    let path = path.split(['?', '#']).next()?;
    let mut text = String::new();
    let mut group = false;
    for c in path.chars() {
        match c {
            '{' | '[' => {
                group = true;
                text.push(GROUP);
            }
            '}' | ']' => group = false,
            c if !group => text.push(c),
            _ => {}
        }
    }
    let atom = |c: char| match c {
        GROUP => Atom::Open('*'),
        c => Atom::Lit(c),
    };
    let atoms: Vec<Atom> = unescaped(&text).chars().map(atom).collect();
    Some(Word::from_atoms(&atoms))
}

/// Decodes percent escapes such as `%75`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let hex = rest.get(1..3).filter(|_| c == '%');
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let taken = match byte {
            Some(byte) => {
                bytes.push(byte);
                3
            }
            None => {
                bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
                c.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the files of `name=@file;type=x`, `name=<file` or `name=@"a","b"`.
fn of_form(form: &str) -> Vec<Word> {
    let value = form.split_once('=').map_or(form, |(_, value)| value);
    let Some(files) = value.strip_prefix(['@', '<']) else {
        return Vec::new();
    };
    let files = files
        .split([';', ','])
        .map(|file| file.trim().trim_matches('"'));
    let files = files.map(|file| file.replace("\\\"", "\"").replace("\\\\", "\\"));
    files
        .filter(|file| !file.is_empty())
        .map(|file| Word::text(&file))
        .collect()
}
