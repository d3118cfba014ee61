//! Whether a shell's glob could expand to a name.

/// Whether `glob`, as a shell reads it, could expand to `sample`. Both are split
/// at slashes and must have as many components; a leading dot is matched only by
/// a dot. What is no valid bracket expression stands for itself.
///
/// ```
/// use permissions::command::glob_could_name;
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

/// One step of a glob.
enum Step<'a> {
    Star,
    Any,
    Class(&'a [char]),
    Char(char),
}

/// Whether one component could be `name`.
pub(crate) fn name_matches(glob: &str, name: &str) -> bool {
    if name.starts_with('.') && !glob.starts_with(['.', '[']) {
        return false;
    }
    let glob: Vec<char> = glob.chars().collect();
    let mut steps = Vec::new();
    let mut at = 0;
    while let Some(c) = glob.get(at) {
        let rest = glob.get(at + 1..).unwrap_or_default();
        steps.push(match c {
            '*' => Step::Star,
            '?' => Step::Any,
            '[' => match rest.iter().skip(1).position(|c| *c == ']') {
                Some(end) => {
                    at += end + 2;
                    Step::Class(rest.get(..=end).unwrap_or_default())
                }
                None => Step::Char('['),
            },
            c => Step::Char(*c),
        });
        at += 1;
    }
    // `reached[n]`: the steps so far match the first `n` characters.
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
                    last && c.is_some_and(|c| one_matches(one, *c))
                }
            };
        }
        reached = next;
    }
    reached.last().copied().unwrap_or_default()
}

fn one_matches(step: &Step<'_>, c: char) -> bool {
    match step {
        Step::Star | Step::Any => true,
        Step::Char(known) => *known == c,
        Step::Class(class) => {
            let negated = matches!(class.first(), Some('!' | '^'));
            let class = class.get(usize::from(negated)..).unwrap_or_default();
            // `[:alpha:]` and the like are not worked out: they could match.
            if class.contains(&':') {
                return true;
            }
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
