//! [`Exclude`]: entries that a policy leaves out of `ls`, `glob` and `grep`.
//!
//! Entries are left out where they are found, before any limit is applied and
//! before anything is counted. So a result reveals nothing about hidden entries,
//! not even that there are any.
//!
//! An `Exclude` consists of layers, and a path is hidden if any layer hides it:
//! adding a layer never shows more. Within a layer the first rule that matches
//! decides. If none matches, the path inherits its directory's decision, and the
//! root is kept. So everything in a hidden directory is hidden, unless an earlier
//! rule keeps it.

#[cfg(feature = "serde")]
mod serial;

use std::fmt;
use std::sync::Arc;

use crate::path::VPath;
use crate::search::glob::{Glob, GlobError};
use crate::search::glob_set::GlobSet;

/// Rules that leave entries out. The default leaves out nothing.
///
/// It can be taken apart into plain data, [`layers`](Self::layers) of strings, and
/// rebuilt from it elsewhere. Cloning is cheap: clones share the compiled rules.
///
/// ```
/// use backend_core::VPath;
/// use backend_core::search::{Exclude, ExcludeRule};
///
/// let exclude = Exclude::from_layers(vec![vec![
///     ExcludeRule::keep("/secrets/public"),
///     ExcludeRule::hide("/secrets"),
///     ExcludeRule::hide("*.pem"),
/// ]])?;
/// let hides = |path| Ok::<_, backend_core::PathError>(exclude.hides(&VPath::parse(path)?));
/// assert!(hides("/secrets/a/b")? && hides("/home/key.pem")?);
/// assert!(!hides("/secrets/public/a")? && !hides("/home")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Exclude(Option<Arc<Rules>>);

struct Rules {
    layers: Vec<Vec<ExcludeRule>>,
    /// The compiled patterns of each of `layers`.
    sets: Vec<GlobSet>,
}

/// A pattern and what to do with the paths that match it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ExcludeRule {
    /// A [`Glob`]. One without a slash matches at any depth, any other from the
    /// root, with or without a leading slash.
    pub pattern: String,
    /// The action for matching paths.
    pub action: ExcludeAction,
}

/// The action of an [`ExcludeRule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ExcludeAction {
    /// Leave the path out, with everything beneath it.
    Hide,
    /// Show the path, with everything beneath it.
    Keep,
}

impl ExcludeRule {
    /// Creates a rule that applies `action` to the paths that `pattern` matches.
    pub fn new(pattern: impl Into<String>, action: ExcludeAction) -> Self {
        Self {
            pattern: pattern.into(),
            action,
        }
    }

    /// Creates a rule that hides the paths that `pattern` matches.
    pub fn hide(pattern: impl Into<String>) -> Self {
        Self::new(pattern, ExcludeAction::Hide)
    }

    /// Creates a rule that shows the paths that `pattern` matches.
    pub fn keep(pattern: impl Into<String>) -> Self {
        Self::new(pattern, ExcludeAction::Keep)
    }
}

impl Exclude {
    /// Leaves out nothing, at no cost.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Leaves out the paths that any of `patterns` matches.
    ///
    /// # Errors
    ///
    /// [`GlobError`] if one of them is not a [`Glob`].
    pub fn hide(patterns: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, GlobError> {
        Self::from_layers(vec![patterns.into_iter().map(ExcludeRule::hide).collect()])
    }

    /// Leaves out the paths that any of `layers` hides. Layers without a rule are dropped.
    ///
    /// # Errors
    ///
    /// [`GlobError`] if a pattern is not a [`Glob`].
    pub fn from_layers(layers: Vec<Vec<ExcludeRule>>) -> Result<Self, GlobError> {
        let compiled =
            |rule: &ExcludeRule| Glob::new(&rule.pattern).map(|glob| (glob, rule.action));
        let layers = layers
            .iter()
            .map(|layer| layer.iter().map(compiled).collect());
        layers.collect::<Result<_, _>>().map(Self::from_globs)
    }

    /// As [`from_layers`](Self::from_layers), for patterns that are already compiled.
    pub fn from_globs(mut layers: Vec<Vec<(Glob, ExcludeAction)>>) -> Self {
        layers.retain(|rules| !rules.is_empty());
        if layers.is_empty() {
            return Self::none();
        }
        let text =
            |(glob, action): &(Glob, ExcludeAction)| ExcludeRule::new(glob.as_str(), *action);
        Self(Some(Arc::new(Rules {
            layers: layers
                .iter()
                .map(|rules| rules.iter().map(text).collect())
                .collect(),
            sets: layers
                .into_iter()
                .map(|rules| rules.into_iter().map(|(glob, _)| glob).collect())
                .collect(),
        })))
    }

    /// Whether this leaves out nothing.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the rules, as [`from_layers`](Self::from_layers) takes them.
    pub fn layers(&self) -> &[Vec<ExcludeRule>] {
        self.0.as_ref().map_or(&[], |rules| &rules.layers)
    }

    /// Returns the rules with their patterns compiled, as [`from_globs`](Self::from_globs)
    /// takes them.
    pub fn globs(&self) -> Vec<Vec<(Glob, ExcludeAction)>> {
        let Some(rules) = &self.0 else {
            return Vec::new();
        };
        let layers = rules.layers.iter().zip(&rules.sets);
        let compiled = layers.map(|(layer, set)| {
            let actions = layer.iter().map(|rule| rule.action);
            set.globs().iter().cloned().zip(actions).collect()
        });
        compiled.collect()
    }

    /// Leaves out the paths that this or `other` leaves out.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let (Some(one), Some(two)) = (&self.0, &other.0) else {
            return if self.is_none() { other } else { self }.clone();
        };
        Self(Some(Arc::new(Rules {
            layers: [&one.layers[..], &two.layers].concat(),
            sets: [&one.sets[..], &two.sets].concat(),
        })))
    }

    /// Whether `path` is left out.
    pub fn hides(&self, path: &VPath) -> bool {
        self.0
            .as_ref()
            .is_some_and(|rules| (0..rules.layers.len()).any(|layer| rules.hides(layer, path)))
    }

    /// Returns the state for `directory`, from which [`enter`](Self::enter) continues.
    pub fn state_for(&self, directory: &VPath) -> ExcludeState {
        let mut state = ExcludeState::default();
        if !self.is_none() {
            for path in directory.ancestors() {
                state = self.enter(&state, &path);
            }
            state = self.enter(&state, directory);
        }
        state
    }

    /// Returns the state for `child`, an entry of the directory with the state `state`.
    ///
    /// ```
    /// use backend_core::VPath;
    /// use backend_core::search::Exclude;
    ///
    /// let exclude = Exclude::hide(["target"])?;
    /// let root = exclude.state_for(&VPath::root());
    /// assert!(exclude.enter(&root, &VPath::parse("/target")?).is_hidden());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn enter(&self, state: &ExcludeState, child: &VPath) -> ExcludeState {
        let Some(rules) = &self.0 else {
            return ExcludeState::default();
        };
        let decide = |layer| rules.decide(layer, child).unwrap_or(state.hidden_by(layer));
        if (0..rules.layers.len()).all(|layer| decide(layer) == state.hidden_by(layer)) {
            return state.clone();
        }
        ExcludeState::new((0..rules.layers.len()).map(decide))
    }

    /// Whether a file called `name` may be left out, in a directory with the state
    /// `state`. `false` is certain. It takes less than [`enter`](Self::enter), which needs
    /// the file's path.
    ///
    /// ```
    /// use backend_core::VPath;
    /// use backend_core::search::Exclude;
    ///
    /// let exclude = Exclude::hide(["**/.env"])?;
    /// let root = exclude.state_for(&VPath::root());
    /// assert!(exclude.may_hide_file(&root, ".env"));
    /// assert!(!exclude.may_hide_file(&root, "main.rs"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn may_hide_file(&self, state: &ExcludeState, name: &str) -> bool {
        state.is_hidden()
            || self
                .0
                .as_ref()
                .is_some_and(|rules| rules.may_hide_file(name))
    }

    /// Whether everything beneath `directory`, which has the state `state`, is left
    /// out, so that a walk can skip it. `true` is certain; `false` means that
    /// something may be visible.
    pub fn prunes(&self, state: &ExcludeState, directory: &VPath) -> bool {
        self.0.as_ref().is_some_and(|rules| {
            (0..rules.layers.len())
                .any(|layer| state.hidden_by(layer) && rules.hides_all_beneath(layer, directory))
        })
    }
}

impl Rules {
    /// Whether a rule of `layer` hides `path` itself; `None` if no rule matches it.
    fn decide(&self, layer: usize, path: &VPath) -> Option<bool> {
        // From the root, absolute and relative patterns mean the same.
        let relative = path.as_str().strip_prefix('/')?;
        Some(self.is_hide(layer, self.sets[layer].first(relative)?))
    }

    /// Whether `layer` hides `path`: the rule for the nearest directory decides.
    fn hides(&self, layer: usize, path: &VPath) -> bool {
        let relative = path.as_str().strip_prefix('/').unwrap_or_default();
        let nearest = self.sets[layer].nearest(relative);
        nearest.is_some_and(|rule| self.is_hide(layer, rule))
    }

    fn may_hide_file(&self, name: &str) -> bool {
        let layers = self.layers.iter().zip(&self.sets);
        layers.into_iter().any(|(layer, set)| {
            let mut rules = layer.iter().zip(set.globs());
            rules
                .any(|(rule, glob)| rule.action == ExcludeAction::Hide && glob.may_match_name(name))
        })
    }

    fn is_hide(&self, layer: usize, rule: usize) -> bool {
        self.layers[layer][rule].action == ExcludeAction::Hide
    }

    /// Whether nothing beneath `directory`, which `layer` hides, can be kept.
    fn hides_all_beneath(&self, layer: usize, directory: &VPath) -> bool {
        let root = VPath::root();
        for (rule, glob) in self.layers[layer].iter().zip(self.sets[layer].globs()) {
            match rule.action {
                ExcludeAction::Hide if glob.matches_all_beneath(&root, directory) => return true,
                ExcludeAction::Keep if glob.may_match_beneath(&root, directory) => return false,
                _ => {}
            }
        }
        true
    }
}

impl PartialEq for Exclude {
    fn eq(&self, other: &Self) -> bool {
        self.layers() == other.layers()
    }
}

impl Eq for Exclude {}

impl fmt::Debug for Exclude {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exclude").field(&self.layers()).finish()
    }
}

/// The decision of an [`Exclude`] about one path. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExcludeState {
    /// The layers that hide the path; `None` if none does.
    layers: Option<Arc<[bool]>>,
}

impl ExcludeState {
    fn new(layers: impl Iterator<Item = bool>) -> Self {
        let layers: Arc<[bool]> = layers.collect();
        Self {
            layers: layers.contains(&true).then_some(layers),
        }
    }

    /// Whether the path is left out.
    pub fn is_hidden(&self) -> bool {
        self.layers.is_some()
    }

    fn hidden_by(&self, layer: usize) -> bool {
        self.layers
            .as_ref()
            .is_some_and(|layers| layers.get(layer) == Some(&true))
    }
}

#[cfg(test)]
mod tests;
