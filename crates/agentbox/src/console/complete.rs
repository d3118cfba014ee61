//! Completion of the line being typed.

use console_tools::Definitions;
use rustyline::completion::Pair;

use super::language::{self, BUILTINS, GivenFields};
use super::schema::{self, Field, Kind};
use super::words::{self, Word};
use crate::terminal::safe;

/// Maximum number of paths that are offered.
const CANDIDATES: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) directory: bool,
}

/// Returns the start of the last word and its completions. `list` lists a directory.
pub(crate) fn complete(
    line: &str,
    tools: &Definitions,
    list: impl Fn(&str) -> Vec<Entry>,
) -> (usize, Vec<Pair>) {
    let start = line.len() - line.trim_start().len();
    let text = line.get(start..).unwrap_or_default();
    if let Some(rest) = text.strip_prefix('!') {
        let (_, word) = last(line, line.len() - rest.len());
        return (word.start, paths(&word.text, list));
    }
    let Some(end) = text.find(char::is_whitespace) else {
        return (start, names(text, tools, true));
    };
    let name = text.get(..end).unwrap_or_default();
    let (before, word) = last(line, start + end);
    if matches!(name, "help" | "?") && before.is_empty() {
        return (word.start, names(&word.text, tools, false));
    }
    let tool = language::full_name(name, tools);
    let Some(definition) = tools.get(tool) else {
        return (line.len(), Vec::new());
    };
    let fields = schema::fields(definition);
    let found = value(&before, &word, tool, &fields, list);
    (word.start, found.unwrap_or_default())
}

/// Returns the positional fields that can still follow `line`.
pub(crate) fn hint(line: &str, tools: &Definitions) -> Option<String> {
    let text = line.trim_start();
    let end = text.find(char::is_whitespace)?;
    let (name, rest) = text.split_at(end);
    if !line.ends_with(' ') || line.contains('\n') || rest.trim_start().starts_with('{') {
        return None;
    }
    let tool = language::full_name(name, tools);
    let fields = schema::fields(tools.get(tool)?);
    let words = words::split(line, line.len() - rest.len());
    if words.open.is_some() {
        return None;
    }
    let mut given = GivenFields::new(tool, &fields);
    if given.take(&words.all).ok()? < words.all.len() {
        return None;
    }
    let left = fields.iter().filter(|field| given.lacks(field));
    let left = left.take(if given.verbatim { 1 } else { usize::MAX });
    let left: Vec<String> = left.map(Field::usage).collect();
    Some(left.join(" ")).filter(|hint| !hint.is_empty())
}

/// Returns the words before the cursor, and the word at the cursor.
fn last(line: &str, from: usize) -> (Vec<Word>, Word) {
    let words = words::split(line, from);
    let mut all = words.all;
    let ended = line.ends_with(char::is_whitespace) && words.open.is_none();
    let word = all.pop_if(|_| !ended);
    let word = word.unwrap_or_else(|| Word {
        start: line.len(),
        ..Word::default()
    });
    (all, word)
}

/// Returns the completions of the word at the cursor.
fn value(
    before: &[Word],
    word: &Word,
    tool: &str,
    fields: &[Field],
    list: impl Fn(&str) -> Vec<Entry>,
) -> Option<Vec<Pair>> {
    let mut given = GivenFields::new(tool, fields);
    // An option without its value can only be followed by that value.
    if let Some((option, earlier)) = before.split_last()
        && let Some(name) = option.text.strip_prefix("--")
        && !name.contains('=')
        && let Ok((field, None)) = given.named(name)
        && given.take(earlier).ok()? == earlier.len()
    {
        return Some(of_field(field, "", &word.text, list));
    }
    let taken = given.take(before).ok()?;
    if given.verbatim && taken < before.len() {
        return Some(paths(&word.text, list));
    }
    if let Some(option) = word.text.strip_prefix("--") {
        if let Some((name, start)) = option.split_once('=') {
            let (field, _) = given.named(name).ok()?;
            return Some(of_field(field, &format!("--{name}="), start, list));
        }
        return Some(options(option, fields, &given));
    }
    if given.verbatim {
        return Some(paths(&word.text, list));
    }
    if let Some((field, start)) = given.assigned(word) {
        return Some(of_field(field, &format!("{}=", field.name), start, list));
    }
    match given.next_field() {
        Some(field) if !word.text.is_empty() || field.is_path() || !field.choices.is_empty() => {
            Some(of_field(field, "", &word.text, list))
        }
        _ => Some(options("", fields, &given)),
    }
}

/// Returns the options with this prefix that were not given yet.
fn options(start: &str, fields: &[Field], given: &GivenFields<'_>) -> Vec<Pair> {
    let start = start.replace('-', "_");
    let fits = |field: &&Field| {
        let again = matches!(field.kind, Kind::List(_));
        field.name.starts_with(&start) && (again || !given.values.contains_key(&field.name))
    };
    let candidate = |field: &Field| {
        let option = format!("--{}", field.name.replace('_', "-"));
        pair(&option, format!("{option} "))
    };
    fields.iter().filter(fits).map(candidate).collect()
}

/// Returns the values of a field with this prefix.
fn of_field(
    field: &Field,
    before: &str,
    start: &str,
    list: impl Fn(&str) -> Vec<Entry>,
) -> Vec<Pair> {
    let mut found: Vec<Pair> = if field.is_path() {
        paths(start, list)
    } else {
        let fits = |choice: &&String| choice.starts_with(start);
        let candidate = |choice: &String| pair(choice, format!("{} ", words::quote(choice)));
        field.choices.iter().filter(fits).map(candidate).collect()
    };
    for candidate in &mut found {
        candidate.replacement.insert_str(0, before);
    }
    found
}

/// Returns the paths with this prefix, without names that a terminal would not show.
fn paths(start: &str, list: impl Fn(&str) -> Vec<Entry>) -> Vec<Pair> {
    let (directory, name) = match start.rfind('/') {
        Some(slash) => start.split_at(slash + 1),
        None => ("", start),
    };
    let hidden = name.starts_with('.');
    let fits = |entry: &Entry| {
        entry.name.starts_with(name)
            && (hidden || !entry.name.starts_with('.'))
            && safe::is_plain(&entry.name)
    };
    let candidate = |entry: Entry| {
        let (slash, space) = if entry.directory {
            ("/", "")
        } else {
            ("", " ")
        };
        let name = format!("{}{slash}", entry.name);
        let path = words::quote(&format!("{directory}{name}"));
        pair(&name, format!("{path}{space}"))
    };
    let found = list(directory).into_iter().filter(fits).map(candidate);
    found.take(CANDIDATES).collect()
}

fn pair(display: &str, replacement: String) -> Pair {
    let display = display.to_owned();
    Pair {
        display,
        replacement,
    }
}

fn names(start: &str, tools: &Definitions, own: bool) -> Vec<Pair> {
    let own = BUILTINS.iter().copied().filter(|_| own);
    let all = language::tool_names(tools).chain(own);
    let mut all: Vec<&str> = all.filter(|name| name.starts_with(start)).collect();
    all.sort_unstable();
    all.dedup();
    let candidate = |name: &str| pair(name, format!("{name} "));
    all.into_iter().map(candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::language::tests::tools;
    use proptest::prelude::*;

    fn list(directory: &str) -> Vec<Entry> {
        let names: &[&str] = match directory {
            "" => &["src/", "a b.txt", "Cargo.toml", ".git/", "\x1b[2J"],
            "src/" => &["main.rs", "map.rs"],
            _ => &[],
        };
        let entry = |name: &&str| Entry {
            name: name.trim_end_matches('/').to_owned(),
            directory: name.ends_with('/'),
        };
        names.iter().map(entry).collect()
    }

    #[track_caller]
    fn becomes(line: &str, expected: &[&str]) {
        let (start, found) = complete(line, &tools(), list);
        let whole = |one: Pair| format!("{}{}", &line[..start], one.replacement);
        let lines: Vec<String> = found.into_iter().map(whole).collect();
        assert_eq!(lines, expected, "{line:?}");
    }

    #[test]
    fn names_of_tools() {
        becomes("read_f", &["read_file "]);
        becomes("rea", &["read ", "read_file ", "read_output "]);
        becomes("  too", &["  tools "]);
        becomes("help read_f", &["help read_file "]);
        becomes("help too", &[]);
        becomes("nothing", &[]);
        becomes("nothing a", &[]);
    }

    #[test]
    fn paths_of_files() {
        becomes(
            "read ",
            &["read src/", "read 'a b.txt' ", "read Cargo.toml "],
        );
        becomes("read sr", &["read src/"]);
        becomes("read src/ma", &["read src/main.rs ", "read src/map.rs "]);
        becomes("read 'a ", &["read 'a b.txt' "]);
        becomes("read .g", &["read .git/"]);
        becomes("read --path C", &["read --path Cargo.toml "]);
        becomes("read --path=C", &["read --path=Cargo.toml "]);
        becomes("read path=C", &["read path=Cargo.toml "]);
        becomes("!cat Ca", &["!cat Cargo.toml "]);
        becomes(
            "run --timeout 3 cat Ca",
            &["run --timeout 3 cat Cargo.toml "],
        );
        becomes("write a b Ca", &[]);
    }

    #[test]
    fn fields_and_their_values() {
        becomes("read a --o", &["read a --offset "]);
        becomes("read --offset 1 a --", &["read --offset 1 a --limit "]);
        becomes(
            "glob x --order ",
            &["glob x --order path ", "glob x --order newest "],
        );
        becomes("glob x --order=n", &["glob x --order=newest "]);
        becomes("run --dir", &["run --directory "]);
        becomes("run --directory s", &["run --directory src/"]);
        becomes("read a --nonsense 1 x", &[]);
    }

    #[test]
    fn hints_tell_what_can_follow() {
        for (line, expected) in [
            ("read ", Some("PATH [OFFSET] [LIMIT]")),
            ("read --offset 1 ", Some("PATH [LIMIT]")),
            ("run ", Some("COMMAND")),
            ("run ls ", None),
            ("read", None),
            ("read a", None),
            ("shells ", None),
            ("nothing ", None),
            ("write 'a ", None),
        ] {
            assert_eq!(hint(line, &tools()).as_deref(), expected, "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn any_line_can_be_completed(line in "(read|write|edit|run|!|grep|glob|help)?[ a-z='\"\\\\/<\n{}-]{0,30}|.{0,20}") {
            let (start, _) = complete(&line, &tools(), list);
            prop_assert!(line.is_char_boundary(start));
            hint(&line, &tools());
        }
    }
}
