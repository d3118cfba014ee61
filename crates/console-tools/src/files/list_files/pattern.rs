//! Translates patterns of Python's `pathlib` into the workspace's glob dialect.
//!
//! Three things differ: a pattern of one component matches in that directory only and
//! not at any depth, there are no braces, and an unclosed `[` is a literal `[`.

/// Matches everything beneath a directory.
const ALL: &str = "**/*";

/// Normalizes a pattern of the model: slashes, no surrounding white space, and
/// relative.
///
/// # Errors
///
/// Returns what is wrong with the pattern.
pub(super) fn check(typed: &str) -> Result<String, &'static str> {
    let text = typed.replace('\\', "/");
    let text = text.trim();
    if text.contains('\0') {
        return Err("pattern must not contain null bytes");
    }
    if text.starts_with(['/', '~']) {
        return Err("pattern must be relative (must not start with '/' or '~')");
    }
    if text.chars().nth(1) == Some(':') {
        return Err("pattern must not be a Windows drive path");
    }
    if text.split('/').any(|name| name == "..") {
        return Err("pattern must not contain '..' path segments");
    }
    match text {
        "" => Ok(ALL.to_owned()),
        text => Ok(text.to_owned()),
    }
}

/// Returns a pattern from the root for `pattern` beneath each of `directories`.
pub(super) fn beneath<'a>(directories: impl IntoIterator<Item = &'a str>, pattern: &str) -> String {
    let pattern = translate(pattern);
    let one = |directory: &str| {
        let directory = literal(directory.trim_end_matches('/'));
        format!("{directory}/{pattern}")
    };
    let all: Vec<_> = directories.into_iter().map(one).collect();
    match all.as_slice() {
        [only] => only.clone(),
        all => format!("{{{}}}", all.join(",")),
    }
}

pub(super) fn is_all(pattern: &str) -> bool {
    matches!(pattern, ALL | "**")
}

fn is_special(c: char) -> bool {
    matches!(
        c,
        '*' | '?' | '[' | ']' | '{' | '}' | ',' | '\\' | '!' | '^'
    )
}

/// Escapes a text so that it matches itself.
fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push_literal(&mut out, c));
    out
}

fn push_literal(out: &mut String, c: char) {
    if is_special(c) {
        out.push('\\');
    }
    out.push(c);
}

fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '*' | '?' => out.push(c),
            '[' => match class(rest) {
                Some((members, after)) => {
                    let (mark, members) = match members.strip_prefix('!') {
                        Some(members) => ("!", members),
                        None => ("", members),
                    };
                    out.push_str(&format!("[{mark}{}]", literal(members)));
                    rest = after;
                }
                None => push_literal(&mut out, c),
            },
            c => push_literal(&mut out, c),
        }
    }
    out
}

/// Splits `rest`, the text after a `[`, into the members of the class and the text
/// after its `]`. The first member may be a `]`, and none may be a `/`.
fn class(rest: &str) -> Option<(&str, &str)> {
    let negated = usize::from(rest.starts_with('!'));
    let first = rest.get(negated..)?.chars().next()?;
    let skip = negated + first.len_utf8();
    let end = skip + rest.get(skip..)?.find(']')?;
    let members = rest.get(..end)?;
    (first != '/' && !members.contains('/')).then_some((members, rest.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use backend_core::VPath;
    use backend_core::search::Glob;
    use proptest::prelude::*;

    use super::*;

    fn matches(directory: &str, pattern: &str, path: &str) -> bool {
        let glob = Glob::new(&beneath([directory], pattern)).unwrap();
        glob.matches(&VPath::root(), &VPath::parse(path).unwrap())
    }

    #[test]
    fn patterns_mean_what_pathlib_means() {
        for (directory, pattern, yes, no) in [
            ("/d", "*.md", "/d/a.md", "/d/sub/a.md"),
            ("/d", "**/*", "/d/.x/y", "/e/y"),
            ("/d", "**", "/d/x/y", "/e/y"),
            ("/d", "sub/?.md", "/d/sub/é.md", "/d/sub/ab.md"),
            ("/", "*.md", "/a.md", "/d/a.md"),
            ("/d", "[ab].md", "/d/a.md", "/d/c.md"),
            ("/d", "[!ab].md", "/d/c.md", "/d/a.md"),
            ("/d", "[]a].md", "/d/].md", "/d/b.md"),
            ("/d", "[!]].md", "/d/a.md", "/d/].md"),
            ("/d", "[^a]", "/d/^", "/d/b"),
            ("/d", "[a-c]", "/d/b", "/d/-"),
            ("/d", "[a", "/d/[a", "/d/a"),
            ("/d", "[a/b]", "/d/[a/b]", "/d/a"),
            ("/d", "{a,b}", "/d/{a,b}", "/d/a"),
            ("/d", "a,b", "/d/a,b", "/d/a"),
            ("/d", "a!^]", "/d/a!^]", "/d/a"),
            ("/{x,y}*[z]\\", "*", "/{x,y}*[z]\\/a", "/x/a"),
        ] {
            assert!(matches(directory, pattern, yes), "{pattern} {yes}");
            assert!(!matches(directory, pattern, no), "{pattern} {no}");
        }
    }

    #[test]
    fn several_directories_are_one_pattern() {
        let glob = Glob::new(&beneath(["/a,b", "/c{d}", "/"], "*.md")).unwrap();
        let found = |path: &str| glob.matches(&VPath::root(), &VPath::parse(path).unwrap());
        assert!(found("/a,b/x.md") && found("/c{d}/x.md") && found("/x.md"));
        assert!(!found("/a,b/s/x.md") && !found("/e/x.md") && !found("/a/x.md"));
    }

    #[test]
    fn what_is_typed_is_tidied_or_refused() {
        for (typed, meant) in [
            ("", "**/*"),
            ("  ", "**/*"),
            (" *.md ", "*.md"),
            ("a\\*.md", "a/*.md"),
            ("a..b/...", "a..b/..."),
        ] {
            assert_eq!(check(typed).as_deref(), Ok(meant), "{typed:?}");
        }
        let relative = "pattern must be relative (must not start with '/' or '~')";
        for (typed, told) in [
            ("a\0", "pattern must not contain null bytes"),
            ("/x", relative),
            (" ~x", relative),
            ("\\x", relative),
            ("C:/x", "pattern must not be a Windows drive path"),
            ("a/../b", "pattern must not contain '..' path segments"),
            ("..\\b", "pattern must not contain '..' path segments"),
        ] {
            assert_eq!(check(typed), Err(told), "{typed:?}");
        }
    }

    proptest! {
        #[test]
        fn a_directory_matches_only_itself(name in "[a*?\\[\\]{},!^\\\\-]{1,8}", other in "[a-c]{1,4}") {
            let glob = Glob::new(&beneath([format!("/{name}").as_str()], "f")).unwrap();
            let at = |name: &str| VPath::root().child(name).unwrap().child("f").unwrap();
            prop_assert!(glob.matches(&VPath::root(), &at(&name)));
            prop_assert_eq!(glob.matches(&VPath::root(), &at(&other)), name == other);
        }

        #[test]
        fn no_pattern_panics(typed in any::<String>()) {
            if let Ok(pattern) = check(&typed) {
                let _ = Glob::new(&beneath(["/d", "/e"], &pattern));
            }
        }
    }
}
