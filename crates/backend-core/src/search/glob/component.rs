//! One alternative of a glob, parsed into components, and its matcher.
//!
//! Matching needs no regular expression. Within a name only the last `*`, and among
//! names only the last `**`, ever has to backtrack. So one saved position is
//! enough, and the time is bounded by the length of the pattern times the length of the path.

use super::expand::Token;

/// A pattern for one name of a path, or `**`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Component {
    /// `**`: any number of names, or none.
    AnyDepth,
    /// Exactly this name.
    Literal(String),
    /// One `*` between two texts, either of which may be empty.
    Affixes { prefix: String, suffix: String },
    /// Anything else. `*` never follows `*`.
    Tokens(Vec<Token>),
}

/// One alternative of a glob.
///
/// The last component is never `**`, and `**` never follows `**`.
#[derive(Debug, Clone)]
pub(crate) struct Alternative {
    pub(super) components: Vec<Component>,
}

/// The reason why an alternative cannot match any file.
#[derive(Debug, PartialEq)]
pub(super) enum Unmatchable {
    Empty,
    ParentComponent,
    TrailingSlash,
}

impl Alternative {
    /// Parses an alternative. Empty and `.` components are dropped, as in a path.
    pub(super) fn new(tokens: &[Token], absolute: bool) -> Result<Self, Unmatchable> {
        let is_noise = |part: &&[Token]| matches!(part, [] | [Token::Literal('.')]);
        let parts = || tokens.split(|token| *token == Token::Slash);
        let mut components: Vec<_> = parts()
            .filter(|part| !is_noise(part))
            .map(Component::new)
            .collect();
        if components.is_empty() {
            return Err(Unmatchable::Empty);
        }
        if parts().next_back().is_some_and(|part| is_noise(&part)) {
            return Err(Unmatchable::TrailingSlash);
        }
        if components
            .iter()
            .any(|component| component.is_literal(".."))
        {
            return Err(Unmatchable::ParentComponent);
        }
        if !absolute && components.len() == 1 {
            components.insert(0, Component::AnyDepth);
        }
        if components.last() == Some(&Component::AnyDepth) {
            // `a/**` matches beneath the directory, not the directory itself: it is `a/**/*`.
            components.push(Component::ANY_NAME);
        }
        components
            .dedup_by(|one, other| *one == Component::AnyDepth && *other == Component::AnyDepth);
        Ok(Self { components })
    }

    /// Whether all of `path`, whose last name is `name`, matches.
    pub(crate) fn matches(&self, path: &str, name: &str) -> bool {
        match &self.components[..] {
            // The most common form of pattern; most paths already fail at their name.
            [Component::AnyDepth, last] => last.matches(name),
            [.., last] => last.matches(name) && self.matches_fully(path),
            [] => false,
        }
    }

    /// Whether a path whose last name is `name` can match.
    pub(super) fn may_match_name(&self, name: &str) -> bool {
        self.components
            .last()
            .is_some_and(|last| last.matches(name))
    }

    fn matches_fully(&self, path: &str) -> bool {
        let mut components = &self.components[..];
        let mut rest = Some(path);
        let mut retry = None;
        loop {
            match (components, rest) {
                ([], None) => return true,
                // A final `**` takes the rest.
                ([Component::AnyDepth, last], Some(_)) if last.is_any_name() => return true,
                ([Component::AnyDepth, behind @ ..], Some(path)) => {
                    components = behind;
                    retry = Some((behind, path));
                    continue;
                }
                ([component, behind @ ..], Some(path)) => {
                    let (name, below) = split_name(path);
                    if component.matches(name) {
                        components = behind;
                        rest = below;
                        continue;
                    }
                }
                // The path is used up; giving `**` more of it cannot help.
                (_, None) => return false,
                ([], Some(_)) => {}
            }
            let Some((behind, path)) = retry else {
                return false;
            };
            let Some(below) = split_name(path).1 else {
                return false;
            };
            retry = Some((behind, below));
            components = behind;
            rest = Some(below);
        }
    }

    /// Whether anything beneath the directory `path` can match. Exact up to the
    /// first `**`, after which everything is considered possible.
    pub(super) fn may_match_beneath(&self, path: &str) -> bool {
        let mut components = self.components.iter();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            match components.next() {
                Some(Component::AnyDepth) => return true,
                Some(component) if component.matches(name) => {}
                _ => return false,
            }
        }
        components.next().is_some()
    }

    /// Returns the components that remain to be matched beneath the directory
    /// `path`. There is one list for each way to match the path so far.
    pub(super) fn left_beneath(&self, path: &str) -> Vec<&[Component]> {
        let mut ways = vec![&self.components[..]];
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let mut next = Vec::with_capacity(ways.len() + 1);
            for way in ways {
                let behind = match way {
                    // `**` takes the name and stays, or matches nothing.
                    [Component::AnyDepth, behind @ ..] => {
                        next.push(way);
                        behind
                    }
                    way => way,
                };
                if let [component, behind @ ..] = behind
                    && component.matches(name)
                {
                    next.push(behind);
                }
            }
            // All are suffixes of the same components, so equal length means equal.
            next.sort_unstable_by_key(|way| way.len());
            next.dedup_by_key(|way| way.len());
            ways = next;
        }
        ways.retain(|way| !way.is_empty());
        ways
    }

    /// Whether everything beneath the directory `path` matches. `true` is certain.
    /// Only a `**` at the end is recognized.
    pub(super) fn matches_all_beneath(&self, path: &str) -> bool {
        // The components before the `**` must match `path` or a directory above it;
        // then any name matches.
        let any = match path {
            "" => "-".to_owned(),
            path => format!("{path}/-"),
        };
        self.ends_in_any_depth() && self.matches_fully(&any)
    }

    /// Returns the names of the literal directories that every match lies in.
    pub(super) fn literal_directories(&self) -> impl Iterator<Item = &str> {
        let directories = self.components.len().saturating_sub(1);
        self.components[..directories]
            .iter()
            .map_while(|component| match component {
                Component::Literal(name) => Some(name.as_str()),
                _ => None,
            })
    }

    /// Whether a component other than the last is `name`.
    pub(super) fn names_directory(&self, name: &str) -> bool {
        let directories = self.components.split_last();
        directories
            .is_some_and(|(_, before)| before.iter().any(|component| component.is_literal(name)))
    }

    /// Whether a component that begins with a literal dot matches `name`.
    pub(super) fn names_hidden(&self, name: &str) -> bool {
        self.components
            .iter()
            .any(|component| component.begins_with_dot() && component.matches(name))
    }
}

impl Component {
    pub(super) const ANY_NAME: Self = Self::Affixes {
        prefix: String::new(),
        suffix: String::new(),
    };

    fn new(tokens: &[Token]) -> Self {
        if tokens == [Token::Many, Token::Many] {
            return Self::AnyDepth;
        }
        let mut tokens = tokens.to_vec();
        tokens.dedup_by(|one, other| *one == Token::Many && *other == Token::Many);
        if let Some(name) = literal(&tokens) {
            return Self::Literal(name);
        }
        let mut around = tokens.splitn(2, |token| *token == Token::Many);
        match (
            around.next().and_then(literal),
            around.next().and_then(literal),
        ) {
            (Some(prefix), Some(suffix)) => Self::Affixes { prefix, suffix },
            _ => Self::Tokens(tokens),
        }
    }

    pub(super) fn is_any_name(&self) -> bool {
        matches!(self, Self::Affixes { prefix, suffix } if prefix.is_empty() && suffix.is_empty())
    }

    fn is_literal(&self, name: &str) -> bool {
        matches!(self, Self::Literal(literal) if literal == name)
    }

    fn begins_with_dot(&self) -> bool {
        match self {
            Self::AnyDepth => false,
            Self::Literal(text) | Self::Affixes { prefix: text, .. } => text.starts_with('.'),
            Self::Tokens(tokens) => tokens.first() == Some(&Token::Literal('.')),
        }
    }

    /// Whether this component matches one name. `**` matches any.
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::AnyDepth => true,
            Self::Literal(literal) => literal == name,
            Self::Affixes { prefix, suffix } => {
                // Comparing with an empty `String` is slow on some machines: its
                // pointer dangles, and a masked vector load through it takes the
                // processor's slow path.
                name.len() >= prefix.len() + suffix.len()
                    && (prefix.is_empty() || name.starts_with(prefix.as_str()))
                    && (suffix.is_empty() || name.ends_with(suffix.as_str()))
            }
            Self::Tokens(tokens) => tokens_match(tokens, name),
        }
    }
}

/// Returns the text of tokens that are all literal.
fn literal(tokens: &[Token]) -> Option<String> {
    tokens
        .iter()
        .map(|token| match token {
            Token::Literal(c) => Some(*c),
            _ => None,
        })
        .collect()
}

fn tokens_match(tokens: &[Token], name: &str) -> bool {
    let mut tokens = tokens;
    let mut rest = name.chars();
    let mut retry = None;
    loop {
        let before = rest.clone();
        match (tokens, rest.next()) {
            ([], None) => return true,
            ([Token::Many, behind @ ..], _) => {
                rest = before;
                tokens = behind;
                retry = Some((behind, rest.clone()));
                continue;
            }
            ([token, behind @ ..], Some(c)) if token_matches(token, c) => {
                tokens = behind;
                continue;
            }
            // The name is used up; giving `*` more of it cannot help.
            (_, None) => return false,
            (_, Some(_)) => {}
        }
        let Some((behind, mut longer)) = retry else {
            return false;
        };
        longer.next();
        tokens = behind;
        rest = longer.clone();
        retry = Some((behind, longer));
    }
}

fn token_matches(token: &Token, c: char) -> bool {
    match token {
        Token::Literal(literal) => *literal == c,
        Token::One => true,
        Token::Class(class) => class.contains(c),
        Token::Slash | Token::Many => false,
    }
}

/// Splits `path` into its first name and the part after its slash.
fn split_name(path: &str) -> (&str, Option<&str>) {
    match memchr::memchr(b'/', path.as_bytes()) {
        Some(slash) => (&path[..slash], Some(&path[slash + 1..])),
        None => (path, None),
    }
}
