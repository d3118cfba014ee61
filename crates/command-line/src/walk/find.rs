//! `find`: the commands it runs, the files it deletes and writes, and the tests that
//! narrow them down.

use super::wrappers::replace;
use super::{Stdin, Walk};
use crate::danger;
use crate::findings::Role;
use crate::glob::{ANY, escaped};
use crate::named_path::PathUse;
use crate::tables::{self, base_name};
use crate::word::Word;

/// The effects of an expression on the files it finds.
#[derive(Default)]
struct Effects {
    /// Destroys them.
    destroys: bool,
    /// Destroys files that no test has narrowed down to some names.
    all: bool,
    /// Changes their permissions or owners.
    changes: bool,
    /// Runs a program on them that does not only read.
    runs: bool,
    /// May change their contents.
    edits: bool,
}

/// The state of a walk through the words of an expression.
#[derive(Default)]
struct Expression<'w> {
    words: &'w [Word],
    at: usize,
    depth: usize,
    effects: Effects,
    /// Patterns of the tests so far.
    sought: Vec<Word>,
    /// Number of actions so far that do something with the files found.
    acts: usize,
    /// Patterns of files that are passed to such an action.
    handed: Vec<Word>,
}

/// The maximum nesting of parentheses that are parsed.
const MAX_DEPTH: usize = 16;

impl Walk<'_> {
    pub(super) fn find(&mut self, words: &[Word]) {
        let is_option =
            |word: &Word| word.is_any(&["-H", "-L", "-P", "--"]) || word.starts_with("-O");
        let mut at = 1;
        while let Some(word) = words.get(at) {
            if word.is("-D") {
                at += 1;
            } else if !is_option(word) {
                break;
            }
            at += 1;
        }
        let begins = |word: &Word| word.starts_with("-") || word.is_any(&["(", "!", ","]);
        let rest = words.get(at..).unwrap_or_default();
        let count = rest.iter().take_while(|word| !begins(word)).count();
        let mut roots = rest.get(..count).unwrap_or_default().to_vec();
        if roots.is_empty() {
            roots.push(Word::text("."));
        }
        let mut expression = Expression {
            words: rest.get(count..).unwrap_or_default(),
            ..Expression::default()
        };
        while expression.at < expression.words.len() {
            self.find_list(&mut expression, false);
            // Skip a parenthesis that closes nothing.
            expression.at += 1;
        }
        let effects = &expression.effects;
        let changes = effects.destroys || effects.changes;
        let names = found_names(expression.words);
        let usage = if changes || effects.edits {
            PathUse::Write
        } else {
            PathUse::Named
        };
        for word in &expression.handed {
            self.named(word, usage);
        }
        for root in &roots {
            self.named(root, PathUse::Read);
            if effects.changes && danger::covers_others(root, &self.dirs) {
                self.dangerous(format!("'find' changes who may use '{}'", root.shown()));
            }
            if changes {
                self.destroyed_by_find(root, effects.all);
            }
            match &names {
                _ if !(changes || effects.runs) => {}
                None => self.within(root),
                Some(names) => {
                    for name in names {
                        self.within_named(Some(root), name, name);
                        self.named(&root.beneath(&Word::text(name)), PathUse::Write);
                    }
                }
            }
        }
    }

    /// Reads alternatives up to a closing parenthesis. `narrow` is `true` if a test
    /// before them leaves only some names. Returns whether all of the alternatives do.
    fn find_list(&mut self, expression: &mut Expression<'_>, narrow: bool) -> bool {
        let mut every = true;
        loop {
            let mut chain = narrow;
            let (sought, acts) = (expression.sought.len(), expression.acts);
            let ends = loop {
                let word = expression.words.get(expression.at).and_then(Word::literal);
                match word {
                    None if expression.at >= expression.words.len() => break true,
                    Some(")") => break true,
                    Some("-o" | "-or" | ",") => break false,
                    // Files that match are left out.
                    Some("-prune") => {
                        expression.sought.truncate(sought);
                        expression.at += 1;
                    }
                    _ => chain |= self.find_test(expression, chain),
                }
            };
            every &= chain;
            // Without an action, the files are printed.
            let prints = self.feeds && expression.depth == 0;
            if expression.acts > acts || prints {
                let handed = expression.sought.iter().skip(sought).cloned();
                expression.handed.extend(handed);
            }
            if ends {
                return every;
            }
            expression.at += 1;
        }
    }

    /// Reads one test or action. Returns whether it leaves only some names.
    fn find_test(&mut self, expression: &mut Expression<'_>, narrow: bool) -> bool {
        let Some(word) = expression.words.get(expression.at).cloned() else {
            return false;
        };
        expression.at += 1;
        let value = expression.words.get(expression.at).cloned();
        match word.literal() {
            Some("(") if expression.depth < MAX_DEPTH => {
                expression.depth += 1;
                let narrows = self.find_list(expression, narrow);
                expression.depth -= 1;
                expression.at += 1;
                return narrows;
            }
            Some("!" | "-not") if expression.depth < MAX_DEPTH => {
                let sought = expression.sought.len();
                expression.depth += 1;
                self.find_test(expression, narrow);
                expression.depth -= 1;
                expression.sought.truncate(sought);
            }
            Some("-a" | "-and") => {}
            Some("-delete") => {
                expression.acts += 1;
                expression.effects.add(true, narrow);
            }
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                self.find_exec(expression, narrow);
            }
            Some("-fprint" | "-fprint0" | "-fls" | "-fprintf") => {
                expression.at += 1 + usize::from(word.is("-fprintf"));
                if let Some(target) = value {
                    self.write_target(&target);
                }
            }
            // The file is a list of names. Errors show those that do not exist.
            Some("-files0-from") => {
                expression.at += 1;
                if let Some(list) = value {
                    self.named(&list, PathUse::Read);
                }
            }
            Some("-empty") => return true,
            Some(
                test @ ("-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-iwholename"
                | "-regex" | "-iregex"),
            ) => {
                expression.at += 1;
                let pattern = value.map(|value| value.shown()).unwrap_or_default();
                let is_regex = test.ends_with("regex");
                let pattern = if is_regex {
                    pattern
                } else {
                    unescaped(&pattern)
                };
                expression.sought.extend(sought(test, &pattern));
                return is_narrow(&pattern);
            }
            Some("-samefile") => {
                expression.at += 1;
                expression.sought.extend(value);
            }
            Some("-mtime" | "-mmin" | "-atime" | "-amin" | "-ctime" | "-cmin" | "-size") => {
                expression.at += 1;
                // At least this old or large; `+0` matches everything.
                let least = value.as_ref().and_then(Word::literal).unwrap_or_default();
                return least.starts_with('+')
                    && least.contains(|c: char| ('1'..='9').contains(&c));
            }
            Some(text) if tables::FIND_VALUED.contains(&text) || text.starts_with("-newer") => {
                expression.at += 1;
            }
            Some(text) if tables::FIND_PLAIN.contains(&text) => {}
            // Computed words are handled as computed arguments.
            None => {}
            Some(text) => {
                self.computed(format!("unknown test or action '{text}' of 'find'"));
            }
        }
        false
    }

    /// Walks an `-exec`, and adds the effects of its program.
    fn find_exec(&mut self, expression: &mut Expression<'_>, narrow: bool) {
        expression.acts += 1;
        let program = self.find_runs(expression);
        let is = |list: &[&str]| list.contains(&program.as_str());
        let reads = is(tables::READERS) || is(tables::SEARCHERS) || is(tables::NON_PATH_OPERANDS);
        let effects = &mut expression.effects;
        effects.changes |= is(tables::MODE_CHANGERS);
        effects.runs |= !reads;
        effects.edits |= is(tables::COPIERS) || is(&["sed", "gsed", "perl"]);
        effects.add(is(tables::WRITERS), narrow);
    }

    /// Walks `-exec program {} ;`. Returns the program's name; empty if not known.
    fn find_runs(&mut self, expression: &mut Expression<'_>) -> String {
        let rest = expression.words.get(expression.at..).unwrap_or_default();
        let is = |at: usize, text| rest.get(at).and_then(Word::literal) == Some(text);
        let ends = |at: &usize| is(*at, ";") || *at > 0 && is(*at, "+") && is(*at - 1, "{}");
        let end = (0..rest.len()).find(ends).unwrap_or(rest.len());
        let mut inner = rest.get(..end).unwrap_or_default().to_vec();
        expression.at += end + 1;
        replace(&mut inner, "{}");
        let program = inner.first().and_then(Word::literal).map(base_name);
        let program = program.unwrap_or_default().to_owned();
        self.run(inner, Stdin::None, Role::Plain);
        program
    }
}

impl Walk<'_> {
    /// Handles a tree in which all files, or those with some names, are destroyed.
    fn destroyed_by_find(&mut self, root: &Word, all: bool) {
        if root.is_computed() {
            self.computed("what 'find' removes is computed");
        }
        let covers = if all {
            danger::covers_system(root, &self.dirs)
        } else {
            danger::covers_machine(root, &self.dirs)
        };
        if covers {
            self.dangerous(format!("'find' removes what is in '{}'", root.shown()));
        }
        self.named(root, PathUse::Write);
    }
}

/// Returns patterns for the names of all files found; `None` if they may have any.
fn found_names(words: &[Word]) -> Option<Vec<String>> {
    let branches = |word: &Word| word.is_any(&["-o", "-or", "!", "-not", ",", "("]);
    if words.iter().any(branches) {
        return None;
    }
    let named = |pair: &[Word]| match pair {
        [test, name] if test.is_any(&["-name", "-iname"]) => name.literal().map(unescaped),
        _ => None,
    };
    let names: Vec<String> = words.windows(2).filter_map(named).take(1).collect();
    (!names.is_empty()).then_some(names)
}

/// Returns the paths that a test matches. Its wildcards also match a leading dot.
fn sought(test: &str, pattern: &str) -> Vec<Word> {
    let pattern = if test.ends_with("regex") {
        simple_regex(pattern)
    } else {
        pattern.to_owned()
    };
    let start = pattern.rfind('/').map_or(0, |slash| slash + 1);
    let (above, name) = pattern.split_at(start);
    let mut names = vec![name.to_owned()];
    if let Some(rest) = name.strip_prefix(['*', '?']) {
        names = vec![format!("{ANY}*{rest}"), rest.to_owned()];
    }
    if test.starts_with("-i") {
        names = names.iter().map(|name| in_any_case(name)).collect();
    }
    let word = |name: &String| Word::pattern(&format!("{above}{name}"));
    names.iter().map(word).collect()
}

/// Converts a pattern of `find` to a glob, in which a backslash has no meaning.
fn unescaped(pattern: &str) -> String {
    let mut glob = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match (c, chars.clone().next()) {
            ('\\', Some(next)) => {
                chars.next();
                glob.push_str(&escaped(next.encode_utf8(&mut [0; 4])));
            }
            _ => glob.push(c),
        }
    }
    glob
}

/// Converts a regular expression of text, `.`, `.*` and `.+` to a glob.
fn simple_regex(regex: &str) -> String {
    let mut glob = String::new();
    let mut chars = regex.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '.' if chars.next_if(|c| matches!(c, '*' | '+')).is_some() => glob.push('*'),
            '.' => glob.push('?'),
            '\\' => glob.extend(chars.next()),
            c => glob.push(c),
        }
    }
    glob
}

fn in_any_case(name: &str) -> String {
    let mut glob = String::new();
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphabetic() => {
                glob.extend(['[', c.to_ascii_lowercase(), c.to_ascii_uppercase(), ']']);
            }
            c => glob.push(c),
        }
    }
    glob
}

/// Whether a pattern leaves only some names: it has two letters or an extension.
fn is_narrow(pattern: &str) -> bool {
    let is_letter = |c: &char| c.is_ascii_alphanumeric();
    let ends = |extension: &str| extension.starts_with(|c: char| is_letter(&c));
    pattern.chars().filter(is_letter).count() >= 2
        || pattern
            .rsplit_once('.')
            .is_some_and(|(_, extension)| ends(extension))
}

impl Effects {
    fn add(&mut self, destroys: bool, narrow: bool) {
        self.destroys |= destroys;
        self.all |= destroys && !narrow;
    }
}
