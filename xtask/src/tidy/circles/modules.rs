//! The modules of a crate, and the paths that their code names.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The segments of a path, as in `["crate", "a", "B"]`. A module's path begins below
/// the crate.
type Path = Vec<String>;

/// Words that begin an item. It ends with its body or a semicolon.
const ITEMS: &[&str] = &[
    "async", "const", "enum", "extern", "fn", "impl", "mod", "static", "struct", "trait", "type",
    "union", "unsafe", "use",
];

/// Number of re-exports that are followed from one path.
const MAX_RE_EXPORTS: usize = 8;

/// The modules of a crate by path. Modules inside a file are among them.
#[derive(Debug, Default)]
pub(super) struct Modules {
    modules: BTreeMap<Path, Module>,
    /// The modules that are compiled for tests only.
    for_tests: BTreeSet<Path>,
    /// The full paths of macros, which other files use as items of the crate itself.
    macros: BTreeMap<String, Path>,
}

#[derive(Debug)]
struct Module {
    file: String,
    /// Every path that its code names.
    named: Vec<Path>,
    /// The paths that it imports, by their names here.
    imports: BTreeMap<String, Path>,
}

/// A path in one file that leads to another one.
#[derive(Debug)]
pub(super) struct Arrow<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    /// The item or the module that is used.
    pub(super) name: String,
}

impl Modules {
    /// Adds the code of a file, whose name is relative to `src/`.
    pub(super) fn add(&mut self, file: &str, source: &str) {
        let path = path_of(file);
        self.open(path.clone(), file);
        self.scan(&path, &tokens(source.parse().unwrap_or_default()));
    }

    /// Returns the file of the module that declares the module of `file`.
    pub(super) fn parent(&self, file: &str) -> Option<&str> {
        let path = path_of(file);
        let (_, parent) = path.split_last()?;
        Some(self.modules.get(parent)?.file.as_str())
    }

    /// Returns the uses of other files, without those in tests.
    pub(super) fn arrows(&self) -> Vec<Arrow<'_>> {
        let mut arrows = Vec::new();
        for (path, module) in &self.modules {
            if (1..=path.len()).any(|n| self.for_tests.contains(&path[..n])) {
                continue;
            }
            let from = module.file.as_str();
            for named in &module.named {
                if let Some((to, name)) = self.resolve(path, named, MAX_RE_EXPORTS)
                    && to != from
                {
                    arrows.push(Arrow { from, to, name });
                }
            }
        }
        arrows
    }

    /// Returns the file that defines the item of a path in the module `from`, and the
    /// name of the item. `None` for other crates.
    fn resolve(
        &self,
        from: &[String],
        path: &[String],
        n_re_exports: usize,
    ) -> Option<(&str, String)> {
        let n_up = path.iter().take_while(|part| *part == "super").count();
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Path::new(), &path[1..]),
            "self" => (from.to_vec(), &path[1..]),
            "super" => (
                from[..from.len().checked_sub(n_up)?].to_vec(),
                &path[n_up..],
            ),
            child if self.modules.contains_key(&below(from, child)) => (from.to_vec(), path),
            _ => return None,
        };
        while let [name, after @ ..] = rest {
            let inner = below(&at, name);
            if !self.modules.contains_key(&inner) {
                break;
            }
            (at, rest) = (inner, after);
        }
        let module = self.modules.get(&at)?;
        let of_crate = |name: &String| self.macros.get(name).filter(|_| at.is_empty());
        if let [name, after @ ..] = rest
            && let Some(import) = module.imports.get(name).or_else(|| of_crate(name))
            && n_re_exports > 0
            && let Some(defined) =
                self.resolve(&at, &[&import[..], after].concat(), n_re_exports - 1)
        {
            return Some(defined);
        }
        let name = rest.first().or(at.last());
        let name = name.map_or("crate", String::as_str).to_owned();
        Some((module.file.as_str(), name))
    }

    fn open(&mut self, path: Path, file: &str) {
        self.modules.entry(path).or_insert_with(|| Module {
            file: file.to_owned(),
            named: Vec::new(),
            imports: BTreeMap::new(),
        });
    }

    /// Collects the paths in the code of the module `at`.
    fn scan(&mut self, at: &[String], mut rest: &[Token]) {
        loop {
            rest = match rest {
                [] => return,
                [Token::Sign('#'), Token::Group(_, attribute), after @ ..] => {
                    if is_for_tests(attribute) {
                        self.skip(at, after)
                    } else {
                        after
                    }
                }
                [
                    Token::Word(word),
                    Token::Word(name),
                    Token::Group(Delimiter::Brace, body),
                    after @ ..,
                ] if word == "mod" => {
                    let inner = below(at, name);
                    let file = self.modules.get(at).map(|module| module.file.clone());
                    self.open(inner.clone(), &file.unwrap_or_default());
                    self.scan(&inner, body);
                    after
                }
                // Another file names it when it uses the macro.
                [Token::Sign('$'), Token::Word(first), after @ ..] => path_at(first, after).1,
                [
                    Token::Word(word),
                    Token::Sign('!'),
                    Token::Word(name),
                    after @ ..,
                ] if word == "macro_rules" => {
                    let path = [&["crate".to_owned()][..], at, std::slice::from_ref(name)].concat();
                    self.macros.insert(name.clone(), path);
                    after
                }
                // The scope of an item is no use of it.
                [Token::Word(word), Token::Group(..), after @ ..] if word == "pub" => after,
                [Token::Word(word), after @ ..]
                    if word == "use" && !matches!(after, [Token::Sign('<'), ..]) =>
                {
                    let mut parts = after.splitn(2, |token| matches!(token, Token::Sign(';')));
                    for (name, path) in imports(&[], parts.next().unwrap_or_default()) {
                        self.note(at, path.clone());
                        if let Some(module) = self.modules.get_mut(at) {
                            module.imports.insert(name, path);
                        }
                    }
                    parts.next().unwrap_or_default()
                }
                [Token::Word(first), after @ ..] => {
                    let (path, after) = path_at(first, after);
                    self.note(at, path);
                    after
                }
                [Token::Group(_, inner), after @ ..] => {
                    self.scan(at, inner);
                    after
                }
                [_, after @ ..] => after,
            };
        }
    }

    fn note(&mut self, at: &[String], path: Path) {
        if path.len() > 1
            && let Some(module) = self.modules.get_mut(at)
        {
            module.named.push(path);
        }
    }

    /// Returns the tokens after an item, or the like, that is for tests only.
    fn skip<'t>(&mut self, at: &[String], mut rest: &'t [Token]) -> &'t [Token] {
        while let [Token::Sign('#'), Token::Group(..), after @ ..] = rest {
            rest = after;
        }
        let mut words = rest.iter().filter_map(Token::word).filter(|w| *w != "pub");
        let first = words.next().unwrap_or_default();
        if first == "mod"
            && let Some(name) = words.next()
        {
            self.for_tests.insert(below(at, name));
        }
        let is_item = ITEMS.contains(&first);
        let end = rest.iter().position(|token| match token {
            Token::Group(Delimiter::Brace, _) | Token::Sign(';') => true,
            Token::Sign(',') => !is_item,
            _ => false,
        });
        match end {
            Some(end) => &rest[end + 1..],
            None => &[],
        }
    }
}

#[derive(Debug)]
enum Token {
    Word(String),
    Sign(char),
    Group(Delimiter, Vec<Self>),
    Literal,
}

impl Token {
    fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }
}

fn tokens(stream: TokenStream) -> Vec<Token> {
    let token = |tree: TokenTree| match tree {
        TokenTree::Ident(word) => Token::Word(word.to_string()),
        TokenTree::Punct(sign) => Token::Sign(sign.as_char()),
        TokenTree::Group(group) => Token::Group(group.delimiter(), tokens(group.stream())),
        TokenTree::Literal(_) => Token::Literal,
    };
    stream.into_iter().map(token).collect()
}

/// Whether an attribute is `cfg(test)`, or one that needs more than that.
fn is_for_tests(attribute: &[Token]) -> bool {
    let [Token::Word(cfg), Token::Group(_, condition)] = attribute else {
        return false;
    };
    let is_test = |token: &Token| token.word() == Some("test");
    cfg == "cfg"
        && match &condition[..] {
            [Token::Word(all), Token::Group(_, conditions)] if all == "all" => {
                conditions.iter().any(is_test)
            }
            [condition] => is_test(condition),
            _ => false,
        }
}

/// Returns the path that begins with `first`, and the tokens after it.
fn path_at<'t>(first: &str, mut rest: &'t [Token]) -> (Path, &'t [Token]) {
    let mut path = vec![first.to_owned()];
    while let [
        Token::Sign(':'),
        Token::Sign(':'),
        Token::Word(word),
        after @ ..,
    ] = rest
    {
        path.push(word.clone());
        rest = after;
    }
    (path, rest)
}

/// Returns the names and paths in the tree of a `use`.
fn imports(prefix: &[String], tree: &[Token]) -> Vec<(String, Path)> {
    let mut found = Vec::new();
    for branch in tree.split(|token| matches!(token, Token::Sign(','))) {
        let mut path = prefix.to_vec();
        let mut renamed = None;
        let mut is_leaf = true;
        let mut tokens = branch.iter();
        while let Some(token) = tokens.next() {
            match token {
                Token::Word(word) if word == "as" => renamed = tokens.next().and_then(Token::word),
                Token::Word(word) if word == "self" && !path.is_empty() => {}
                Token::Word(word) => path.push(word.clone()),
                Token::Sign('*') => path.push("*".to_owned()),
                Token::Group(_, inner) => {
                    found.extend(imports(&path, inner));
                    is_leaf = false;
                }
                Token::Sign(_) | Token::Literal => {}
            }
        }
        if is_leaf
            && !branch.is_empty()
            && let Some(last) = path.last()
        {
            let name = renamed.unwrap_or(last).to_owned();
            found.push((name, path));
        }
    }
    found
}

/// Returns the path of the module in a file, whose name is relative to `src/`.
fn path_of(file: &str) -> Path {
    match file.trim_end_matches(".rs") {
        "lib" | "main" => Path::new(),
        path => path.split('/').map(str::to_owned).collect(),
    }
}

fn below(path: &[String], name: &str) -> Path {
    path.iter().cloned().chain([name.to_owned()]).collect()
}
