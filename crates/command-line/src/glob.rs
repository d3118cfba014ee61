//! Shell globs, and the names they could expand to.

/// Returns whether `glob`, as a shell reads it, could expand to `sample`.
///
/// Both are split at slashes and must have the same number of components. A leading dot
/// is matched only by a dot. A bracket that starts no valid bracket expression stands
/// for itself.
///
/// ```
/// use command_line::glob::glob_could_name;
///
/// assert!(glob_could_name("/project/*.pem", "/project/server.pem"));
/// assert!(glob_could_name("/project/.e*", "/project/.env"));
/// assert!(!glob_could_name("/project/*", "/project/.env"));
/// assert!(!glob_could_name("/project/*", "/project/a/b"));
/// ```
pub fn glob_could_name(glob: &str, sample: &str) -> bool {
    let mut globs = glob.split('/');
    let mut names = sample.split('/');
    loop {
        match (globs.next(), names.next()) {
            (None, None) => return true,
            (Some(glob), Some(name)) if name_matches(glob, name) => {}
            _ => return false,
        }
    }
}

/// Matches any one character, even a leading dot. Replaces brackets that are not evaluated.
pub(crate) const ANY: &str = "[:]";

/// Escapes `text` so that it stands for itself in a glob.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '*' | '?' | '[' => out.extend(['[', c, ']']),
            c => out.push(c),
        }
    }
    out
}

/// The interpretation of a bracket expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BracketKind {
    /// A plain one: it matches the listed characters and ranges, or all others.
    Exact,
    /// Taken to match any one character.
    Any,
    /// Shells disagree where it ends: taken to match one character and any text.
    Loose,
}

/// Reads the bracket expression at the start of a component. Returns its length in
/// characters and its interpretation. `symbol` returns the character at an index and
/// whether it is quoted, or `None` at the end of the component.
///
/// A leading `]` stands for itself, and so does one that is quoted or within
/// `[:alpha:]`. `dash` and `bash` read `[^a]` differently.
pub fn bracket(symbol: impl Fn(usize) -> Option<(char, bool)>) -> Option<(usize, BracketKind)> {
    let is = |at: usize, c: char| symbol(at) == Some((c, false));
    if !is(0, '[') {
        return None;
    }
    let body = 1 + usize::from(is(1, '!'));
    let mut plain = !is(1, '^') && !is(body, ']');
    let mut agreed = plain;
    let mut at = body;
    let mut first = None;
    while let Some((c, quoted)) = symbol(at) {
        if c == ']' && !quoted && at > body {
            first = Some(at);
            break;
        }
        if quoted {
            (plain, agreed) = (false, false);
        } else if c == '[' && [':', '.', '='].iter().any(|mark| is(at + 1, *mark)) {
            plain = false;
            match named_class(&symbol, at) {
                Some(len) => {
                    at += len;
                    continue;
                }
                None => agreed = false,
            }
        }
        at += 1;
    }
    let first = first?;
    if agreed {
        let reading = if plain {
            BracketKind::Exact
        } else {
            BracketKind::Any
        };
        return Some((first + 1, reading));
    }
    let rest = (first + 1..).map_while(|at| Some((at, symbol(at)?)));
    let last = rest.filter(|(_, symbol)| *symbol == (']', false)).last();
    Some(match last {
        Some((last, _)) => (last + 1, BracketKind::Loose),
        None => (first + 1, BracketKind::Any),
    })
}

/// Returns the length of the `[:name:]` at `at`, if every shell knows it.
fn named_class(symbol: &impl Fn(usize) -> Option<(char, bool)>, at: usize) -> Option<usize> {
    const CLASSES: &[&str] = &[
        "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
        "upper", "xdigit",
    ];
    let is = |at: usize, text: &str| {
        let mut known = text.chars().enumerate();
        known.all(|(number, c)| symbol(at + number) == Some((c, false)))
    };
    let name = CLASSES.iter().find(|name| is(at + 2, name))?;
    let end = at + 2 + name.len();
    (is(at, "[:") && is(end, ":]")).then_some(name.len() + 4)
}

/// One step of a glob.
pub(crate) enum Step<'a> {
    Star,
    Any,
    Class(&'a [char]),
    Char(char),
}

/// Parses one component into steps.
pub(crate) fn steps(glob: &[char]) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let mut at = 0;
    // After a bracket that is not closed, no later one is either.
    let mut closed = true;
    while let Some(c) = glob.get(at) {
        let rest = glob.get(at..).unwrap_or_default();
        let found = match c {
            '[' if closed => bracket(|at| Some((*rest.get(at)?, false))),
            _ => None,
        };
        closed &= *c != '[' || found.is_some();
        at += found.map_or(1, |(len, _)| len);
        match (c, found) {
            ('*', _) => steps.push(Step::Star),
            ('?', _) | (_, Some((_, BracketKind::Any))) => steps.push(Step::Any),
            (_, Some((len, BracketKind::Exact))) => {
                let class = rest.get(1..len - 1).unwrap_or_default();
                // `ANY`, and one that was cut short, are not evaluated.
                steps.push(if class.contains(&':') {
                    Step::Any
                } else {
                    Step::Class(class)
                });
            }
            (_, Some((_, BracketKind::Loose))) => steps.extend([Step::Any, Step::Star]),
            (c, None) => steps.push(Step::Char(*c)),
        }
    }
    steps
}

/// Returns whether a glob of one component could match `name`.
pub fn name_matches(glob: &str, name: &str) -> bool {
    let hidden = name.starts_with('.') && !glob.starts_with(['.', '[']);
    !hidden && name_or_dot_matches(glob, name)
}

/// Like [`name_matches`], but a wildcard also matches a leading dot, as for `find`.
pub fn name_or_dot_matches(glob: &str, name: &str) -> bool {
    let glob: Vec<char> = glob.chars().collect();
    let steps = steps(&glob);
    // `reached[n]`: the steps so far match the first `n` characters of the name.
    let name: Vec<char> = name.chars().collect();
    let mut reached = vec![false; name.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for step in &steps {
        let mut next = vec![false; name.len() + 1];
        let mut before = false;
        for (at, slot) in next.iter_mut().enumerate() {
            let here = reached.get(at).copied().unwrap_or_default();
            *slot = match step {
                Step::Star => {
                    before |= here;
                    before
                }
                one => {
                    let last = std::mem::replace(&mut before, here);
                    let c = at.checked_sub(1).and_then(|at| name.get(at));
                    last && c.is_some_and(|c| one.matches(*c))
                }
            };
        }
        reached = next;
    }
    reached.last().copied().unwrap_or_default()
}

impl Step<'_> {
    /// Whether the step matches this one character.
    pub(crate) fn matches(&self, c: char) -> bool {
        let class = match self {
            Step::Star | Step::Any => return true,
            Step::Char(known) => return *known == c,
            Step::Class(class) => class,
        };
        let negated = class.first() == Some(&'!');
        let class = class.get(usize::from(negated)..).unwrap_or_default();
        let mut inside = false;
        let mut at = 0;
        while let Some(low) = class.get(at) {
            let high = class
                .get(at + 2)
                .filter(|_| class.get(at + 1) == Some(&'-'));
            inside |= (*low..=*high.unwrap_or(low)).contains(&c);
            at += if high.is_some() { 3 } else { 1 };
        }
        inside != negated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_and_dots() {
        for (glob, name, could) in [
            ("/w/*", "/w/a", true),
            ("/w/*", "/w/.env", false),
            ("/w/.*", "/w/.env", true),
            ("/w/[.]env", "/w/.env", true),
            ("/w/?env", "/w/.env", false),
            ("/w/.e[a-n]v", "/w/.env", true),
            ("/w/.e[!n]v", "/w/.env", false),
            ("/*/x", "/w/x", true),
            ("/*", "/w/x", false),
            ("/w/a[", "/w/a[", true),
            ("/w/.e[[:alpha:]]v", "/w/.env", true),
            ("/w/.e[!]x]v", "/w/.env", true),
            ("/w/.e[^n]v", "/w/.env", true),
            ("/w/.e[[.n.]]v", "/w/.env", true),
            ("/w/a[[]b]", "/w/a[b]", true),
            ("/w/a[[]b]", "/w/ab", false),
            ("/w/**.pem", "/w/x.pem", true),
        ] {
            assert_eq!(glob_could_name(glob, name), could, "{glob} {name}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let glob = "*a".repeat(200);
        let name = "a".repeat(400) + "b";
        assert!(!name_matches(&glob, &name));
    }
}
