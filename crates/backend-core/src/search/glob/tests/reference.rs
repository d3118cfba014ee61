//! A second implementation of the dialect, written for clarity and not for speed:
//! braces are expanded as text, and the rest tries every possible match.

/// Returns the length in bytes of the first token of `text`: an escape, a class
/// or a character.
fn token_length(text: &str) -> usize {
    let mut characters = text.char_indices();
    let (_, first) = characters.next().unwrap();
    match first {
        '\\' => 1 + characters.next().unwrap().1.len_utf8(),
        '[' => class_body(text).1,
        c => c.len_utf8(),
    }
}

/// Returns the members of the class at the beginning of `text`, with whether
/// each was escaped, and the length of the class.
fn class_body(text: &str) -> (Vec<(char, bool)>, usize) {
    let mut members = Vec::new();
    let mut at = 1;
    if text[at..].starts_with(['!', '^']) {
        at += 1;
    }
    loop {
        let c = text[at..].chars().next().unwrap();
        at += c.len_utf8();
        match c {
            ']' if !members.is_empty() => return (members, at),
            '\\' => {
                let c = text[at..].chars().next().unwrap();
                at += c.len_utf8();
                members.push((c, true));
            }
            c => members.push((c, false)),
        }
    }
}

fn class_contains(text: &str, c: char) -> bool {
    let (members, _) = class_body(text);
    let negated = text[1..].starts_with(['!', '^']);
    let mut listed = false;
    let mut index = 0;
    while index < members.len() {
        let (low, _) = members[index];
        match members.get(index + 1..index + 3) {
            Some([('-', false), (high, _)]) => {
                listed |= (low..=*high).contains(&c);
                index += 3;
            }
            _ => {
                listed |= low == c;
                index += 1;
            }
        }
    }
    listed != negated
}

pub(super) fn expand(text: &str) -> Vec<String> {
    let mut open = 0;
    while !text[open..].starts_with('{') {
        if text[open..].is_empty() {
            return vec![text.to_owned()];
        }
        open += token_length(&text[open..]);
    }
    let mut depth = 0;
    let mut branches = vec![String::new()];
    let mut at = open + 1;
    loop {
        let length = token_length(&text[at..]);
        let token = &text[at..at + length];
        at += length;
        match token {
            "}" if depth == 0 => break,
            "," if depth == 0 => {
                branches.push(String::new());
                continue;
            }
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        branches.last_mut().unwrap().push_str(token);
    }
    branches
        .iter()
        .flat_map(|branch| expand(&format!("{}{branch}{}", &text[..open], &text[at..])))
        .collect()
}

pub(super) fn components(alternative: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut at = 0;
    while at < alternative.len() {
        let length = token_length(&alternative[at..]);
        match &alternative[at..at + length] {
            "/" | "\\/" => parts.push(String::new()),
            token => parts.last_mut().unwrap().push_str(token),
        }
        at += length;
    }
    parts.retain(|part| !matches!(part.as_str(), "" | "." | "\\."));
    parts
}

pub(super) fn name_matches(component: &str, name: &str) -> bool {
    let Some(first) = name.chars().next() else {
        return component.chars().all(|c| c == '*');
    };
    if component.is_empty() {
        return false;
    }
    let (token, rest) = component.split_at(token_length(component));
    let tail = &name[first.len_utf8()..];
    match token.chars().next().unwrap() {
        '*' => name_matches(rest, name) || name_matches(component, tail),
        '?' => name_matches(rest, tail),
        '[' => class_contains(token, first) && name_matches(rest, tail),
        '\\' => token[1..].starts_with(first) && name_matches(rest, tail),
        c => c == first && name_matches(rest, tail),
    }
}

fn names_match(components: &[String], names: &[&str]) -> bool {
    match (components, names) {
        ([], _) => names.is_empty(),
        ([last], _) if last == "**" => !names.is_empty(),
        ([first, rest @ ..], _) if first == "**" => {
            (0..=names.len()).any(|taken| names_match(rest, &names[taken..]))
        }
        ([first, rest @ ..], [name, tail @ ..]) => {
            name_matches(first, name) && names_match(rest, tail)
        }
        (_, []) => false,
    }
}

pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let names: Vec<&str> = path.split('/').collect();
    expand(pattern).iter().any(|alternative| {
        let components = components(alternative);
        if components.len() == 1
            && !alternative.starts_with(['/'])
            && !alternative.starts_with("\\/")
        {
            return names_match(&components, &names[names.len() - 1..]);
        }
        names_match(&components, &names)
    })
}
