//! Globs derived from globs, such as the one for everything beneath the matches or
//! the same glob written from the root. They are built from components, and their
//! text parses back into the same glob.

use std::sync::Arc;

use super::component::{Alternative, Component};
use super::expand::{Class, Token};
use super::{Compiled, Glob, GlobError, common_directory};
use crate::limits::GLOB_ALTERNATIVES;
use crate::path::{Quoted, VPath};

impl Glob {
    /// Returns the glob that matches every path except the root: `/**`.
    pub fn everything() -> Self {
        Self::from_components(vec![vec![Component::AnyDepth, Component::ANY_NAME]], true)
    }

    /// Escapes `text` so that it matches only itself.
    ///
    /// ```
    /// use backend_core::VPath;
    /// use backend_core::search::Glob;
    ///
    /// let path = VPath::parse("/!a[1],{b}/*?]")?;
    /// let glob = Glob::new(&Glob::escape(path.as_str()))?;
    /// assert!(glob.matches(&VPath::root(), &path));
    /// assert!(!glob.matches(&VPath::root(), &VPath::parse("/!a1,b/x]")?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn escape(text: &str) -> String {
        let mut pattern = String::with_capacity(text.len());
        push_escaped(&mut pattern, text);
        pattern
    }

    /// Returns the alternatives of the pattern, each written from the root. A
    /// relative one starts at `base`, unless it begins with `**` or matches at any
    /// depth and so applies to the whole tree.
    ///
    /// ```
    /// use backend_core::VPath;
    /// use backend_core::search::Glob;
    ///
    /// let globs = Glob::new("{*.pem,./keys//[a-c]*}")?.from_root(&VPath::parse("/project")?);
    /// let texts: Vec<_> = globs.iter().map(Glob::as_str).collect();
    /// assert_eq!(texts, ["/**/*.pem", "/project/keys/[a-c]*"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_root(&self, base: &VPath) -> Vec<Self> {
        let from_root = |alternative: &Alternative| {
            let mut components = Vec::new();
            if !self.is_absolute() && alternative.components.first() != Some(&Component::AnyDepth) {
                let names = base.components().map(str::to_owned);
                components.extend(names.map(Component::Literal));
            }
            components.extend_from_slice(&alternative.components);
            Self::from_components(vec![components], true)
        };
        self.compiled_alternatives().iter().map(from_root).collect()
    }

    /// Returns a pattern for the paths beneath `directory`, written as if
    /// `directory` were the root, with the meaning that this pattern has in a
    /// search that starts at `start`. `None` if it matches nothing there.
    ///
    /// Hidden entries that only the components above `directory` name are not named by the result.
    ///
    /// ```
    /// use backend_core::VPath;
    /// use backend_core::search::Glob;
    ///
    /// let (root, notes) = (VPath::root(), VPath::parse("/notes")?);
    /// let below = |pattern| Ok::<_, backend_core::search::GlobError>(
    ///     Glob::new(pattern)?.below(&root, &notes)?.map(|glob| glob.to_string()));
    /// assert_eq!(below("/n*/a/*.md")?.as_deref(), Some("/a/*.md"));
    /// assert_eq!(below("*.md")?.as_deref(), Some("/**/*.md"));
    /// assert_eq!(below("/src/**")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`GlobError::TooManyAlternatives`] if the result has too many alternatives.
    pub fn below(&self, start: &VPath, directory: &VPath) -> Result<Option<Self>, GlobError> {
        let Some(relative) = self.relative(start, directory) else {
            return Ok(self.seen_from_above(start, directory));
        };
        let mut left = Vec::new();
        for alternative in self.compiled_alternatives() {
            for way in alternative.left_beneath(relative) {
                if left.len() == GLOB_ALTERNATIVES {
                    return Err(GlobError::TooManyAlternatives(Quoted::new(self.as_str())));
                }
                left.push(way.to_vec());
            }
        }
        Ok((!left.is_empty()).then(|| Self::from_components(left, true)))
    }

    /// Returns a relative pattern as seen from a directory above `start`.
    fn seen_from_above(&self, start: &VPath, directory: &VPath) -> Option<Self> {
        let between = start.strip_prefix(directory)?;
        let seen_from_above = |alternative: &Alternative| {
            let names = between.split('/').map(str::to_owned);
            let mut components: Vec<_> = names.map(Component::Literal).collect();
            components.extend_from_slice(&alternative.components);
            components
        };
        let alternatives = self.compiled_alternatives().iter().map(seen_from_above);
        Some(Self::from_components(alternatives.collect(), true))
    }

    /// Returns the pattern for everything beneath the matches of this one: `a`
    /// becomes `a/**`.
    #[must_use]
    pub fn beneath(&self) -> Self {
        let beneath = |alternative: &Alternative| {
            let mut components = alternative.components.clone();
            if !alternative.ends_in_any_depth() {
                components.extend([Component::AnyDepth, Component::ANY_NAME]);
            }
            components
        };
        let alternatives = self.compiled_alternatives().iter().map(beneath);
        Self::from_components(alternatives.collect(), self.is_absolute())
    }

    /// Returns the directories beneath which this pattern matches everything:
    /// `/a/**` becomes `/a`. `None` if there are none or only the root, and for a
    /// relative pattern, where a single remaining name would match at any depth.
    pub fn whole_directories(&self) -> Option<Self> {
        let directory = |alternative: &Alternative| match &alternative.components[..] {
            [first @ .., _, _] if alternative.ends_in_any_depth() => {
                (!first.is_empty()).then(|| first.to_vec())
            }
            _ => None,
        };
        if !self.is_absolute() {
            return None;
        }
        let alternatives: Vec<_> = self
            .compiled_alternatives()
            .iter()
            .filter_map(directory)
            .collect();
        (!alternatives.is_empty()).then(|| Self::from_components(alternatives, self.is_absolute()))
    }

    /// Creates a glob from parsed alternatives.
    fn from_components(alternatives: Vec<Vec<Component>>, absolute: bool) -> Self {
        let alternatives: Vec<_> = alternatives
            .into_iter()
            .map(|components| Alternative { components })
            .collect();
        let texts: Vec<_> = alternatives
            .iter()
            .map(|alternative| alternative.to_text(absolute))
            .collect();
        let pattern = match &texts[..] {
            [one] => one.clone(),
            several => format!("{{{}}}", several.join(",")),
        };
        Self(Arc::new(Compiled {
            pattern,
            absolute,
            literal_prefix: common_directory(&alternatives),
            alternatives,
        }))
    }
}

impl Alternative {
    pub(super) fn ends_in_any_depth(&self) -> bool {
        let [.., before, last] = &self.components[..] else {
            return false;
        };
        *before == Component::AnyDepth && last.is_any_name()
    }

    fn to_text(&self, absolute: bool) -> String {
        // `**` at the end means the same as `**/*`.
        let omitted = usize::from(self.ends_in_any_depth());
        let written = self.components.len() - omitted;
        let mut text = String::new();
        for (number, component) in self.components.iter().take(written).enumerate() {
            if number > 0 || absolute {
                text.push('/');
            }
            component.write(&mut text);
        }
        text
    }

    /// Returns the longest text that every match contains; empty if there is none.
    pub(crate) fn required_text(&self) -> String {
        let mut longest = String::new();
        let mut current = String::new();
        let mut end = |current: &mut String| {
            if current.len() > longest.len() {
                longest.clone_from(current);
            }
            current.clear();
        };
        for (number, component) in self.components.iter().enumerate() {
            // Every name except the last is followed by a slash. `**` may match
            // nothing, and then adds no slash.
            let behind_name = number > 0 && self.components[number - 1] != Component::AnyDepth;
            if behind_name {
                current.push('/');
            }
            match component {
                Component::AnyDepth => end(&mut current),
                Component::Literal(name) => current.push_str(name),
                Component::Affixes { prefix, suffix } => {
                    current.push_str(prefix);
                    end(&mut current);
                    current.push_str(suffix);
                }
                Component::Tokens(tokens) => {
                    for token in tokens {
                        match token {
                            Token::Literal(c) => current.push(*c),
                            _ => end(&mut current),
                        }
                    }
                }
            }
        }
        end(&mut current);
        longest
    }
}

impl Component {
    fn write(&self, text: &mut String) {
        match self {
            Self::AnyDepth => text.push_str("**"),
            Self::Literal(name) => push_escaped(text, name),
            Self::Affixes { prefix, suffix } => {
                push_escaped(text, prefix);
                text.push('*');
                push_escaped(text, suffix);
            }
            Self::Tokens(tokens) => tokens.iter().for_each(|token| token.write(text)),
        }
    }
}

impl Token {
    fn write(&self, text: &mut String) {
        match self {
            Self::Literal(c) => push_escaped(text, c.encode_utf8(&mut [0; 4])),
            Self::Slash => text.push('/'),
            Self::One => text.push('?'),
            Self::Many => text.push('*'),
            Self::Class(class) => class.write(text),
        }
    }
}

impl Class {
    fn write(&self, text: &mut String) {
        let push = |text: &mut String, c| {
            if matches!(c, '\\' | ']' | '-' | '!' | '^') {
                text.push('\\');
            }
            text.push(c);
        };
        text.push_str(if self.negated { "[!" } else { "[" });
        for &(low, high) in &self.ranges {
            push(text, low);
            if low != high {
                text.push('-');
                push(text, high);
            }
        }
        text.push(']');
    }
}

/// Appends literal text, escaping every special character.
fn push_escaped(text: &mut String, literal: &str) {
    for c in literal.chars() {
        if matches!(c, '*' | '?' | '[' | '{' | '}' | ',' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
}

#[cfg(test)]
mod tests;
