//! The rules of a view, asked about one entry at a time.

use backend_core::VPath;
use backend_core::ops::View;
use backend_core::search::{Exclude, ExcludeAction, ExcludeState, Glob};

use crate::supervisor::protocol::With;

/// The rules of a view.
#[derive(Debug)]
pub(super) struct Rules {
    read: Set,
    write: Set,
}

/// The decisions about a directory, from which those about its entries follow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    read: ExcludeState,
    write: ExcludeState,
}

/// The decision about an entry.
#[derive(Debug)]
pub(super) struct Decision {
    /// Its mask, if it has one.
    pub(super) mask: Option<With>,
    /// Whether what is beneath it, if it is a directory, may have one too.
    pub(super) descend: bool,
    pub(super) state: State,
}

impl Rules {
    pub(super) fn new(view: &View) -> Self {
        Self {
            read: Set::new(&view.deny_read),
            write: Set::new(&view.deny_write),
        }
    }

    /// Returns the state of a directory of the backend.
    pub(super) fn start(&self, directory: &VPath) -> State {
        State {
            read: self.read.exclude.state_for(directory),
            write: self.write.exclude.state_for(directory),
        }
    }

    /// Whether a file with this name, in the directory with the state `above`, may be
    /// denied.
    pub(super) fn may_deny_file(&self, above: &State, name: &str) -> bool {
        self.read.exclude.may_hide_file(&above.read, name)
            || self.write.exclude.may_hide_file(&above.write, name)
    }

    /// Decides about an entry of the directory with the state `above`.
    pub(super) fn decide(&self, above: &State, path: &VPath, is_directory: bool) -> Decision {
        let state = State {
            read: self.read.exclude.enter(&above.read, path),
            write: self.write.exclude.enter(&above.write, path),
        };
        if !is_directory {
            let mask = match (state.read.is_hidden(), state.write.is_hidden()) {
                (true, _) => Some(With::Nothing),
                (false, true) => Some(With::ReadOnly),
                (false, false) => None,
            };
            let descend = false;
            return Decision {
                mask,
                descend,
                state,
            };
        }
        let (read, write) = (
            self.read.about(&state.read, path),
            self.write.about(&state.write, path),
        );
        let (mask, descend) = match (read, write) {
            (Share::All, _) => (Some(With::Nothing), false),
            (read, Share::All) => (Some(With::ReadOnly), read == Share::Some),
            (read, write) => (None, [read, write].contains(&Share::Some)),
        };
        Decision {
            mask,
            descend,
            state,
        }
    }

    /// Returns the mask of a directory of which the entries, about which something may be
    /// denied, cannot be known.
    pub(super) fn unknown(&self, state: &State, directory: &VPath) -> With {
        match self.read.about(&state.read, directory) {
            Share::Nothing => With::ReadOnly,
            Share::Some | Share::All => With::Nothing,
        }
    }

    /// Whether a path with this mask is denied for where it is, and not for its name
    /// alone: in another directory it might not be.
    pub(super) fn is_anchored(&self, with: With, path: &VPath) -> bool {
        match with {
            With::Nothing => !self.read.hides_anywhere(path),
            With::ReadOnly => !self.write.hides_anywhere(path),
            With::Itself => false,
        }
    }
}

/// How much of a directory is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Nothing,
    Some,
    All,
}

#[derive(Debug)]
struct Set {
    exclude: Exclude,
    layers: Vec<Vec<Rule>>,
}

#[derive(Debug)]
struct Rule {
    glob: Glob,
    hides: bool,
    /// Whether it says more than the name of an entry.
    is_anchored: bool,
}

impl Set {
    fn new(exclude: &Exclude) -> Self {
        let rule = |(glob, action): (Glob, ExcludeAction)| Rule {
            hides: action == ExcludeAction::Hide,
            is_anchored: is_anchored(glob.as_str()),
            glob,
        };
        let layers = exclude.globs().into_iter();
        Self {
            exclude: exclude.clone(),
            layers: layers
                .map(|rules| rules.into_iter().map(rule).collect())
                .collect(),
        }
    }

    /// Returns how much of a directory with this state is denied.
    fn about(&self, state: &ExcludeState, directory: &VPath) -> Share {
        if self.exclude.prunes(state, directory) || self.hides_all_beneath(directory) {
            Share::All
        } else if state.is_hidden() || self.may_hide_beneath(directory) {
            Share::Some
        } else {
            Share::Nothing
        }
    }

    fn may_hide_beneath(&self, directory: &VPath) -> bool {
        let mut rules = self.layers.iter().flatten();
        rules.any(|rule| rule.hides && rule.glob.may_match_beneath(&VPath::root(), directory))
    }

    /// Whether everything beneath the directory is denied, even if it itself is not.
    fn hides_all_beneath(&self, directory: &VPath) -> bool {
        let root = VPath::root();
        self.layers.iter().any(|rules| {
            let decides = |rule: &Rule| match rule.hides {
                true => rule
                    .glob
                    .matches_all_beneath(&root, directory)
                    .then_some(true),
                false => rule
                    .glob
                    .may_match_beneath(&root, directory)
                    .then_some(false),
            };
            rules.iter().find_map(decides) == Some(true)
        })
    }

    /// Whether the path is denied for its name, in whatever directory.
    fn hides_anywhere(&self, path: &VPath) -> bool {
        let root = VPath::root();
        let matches = |rule: &Rule| {
            rule.glob.matches(&root, path) || rule.glob.matches_all_beneath(&root, path)
        };
        self.layers.iter().any(|rules| {
            let decides = |rule: &Rule| match (rule.hides, rule.is_anchored) {
                (true, false) => matches(rule).then_some(true),
                // Elsewhere it may not match.
                (true, true) => None,
                (false, true) => Some(false),
                (false, false) => matches(rule).then_some(false),
            };
            rules.iter().find_map(decides) == Some(true)
        })
    }
}

/// Whether a pattern says more than the name of an entry, at any depth.
fn is_anchored(pattern: &str) -> bool {
    let name = pattern.strip_prefix("**/").unwrap_or(pattern);
    name.strip_suffix("/**").unwrap_or(name).contains('/')
}

#[cfg(test)]
mod tests {
    use backend_core::search::ExcludeRule;

    use super::*;

    fn decide(view: &View, path: &str, is_directory: bool) -> (Option<With>, bool) {
        let rules = Rules::new(view);
        let path = VPath::parse(path).unwrap();
        let above = rules.start(&path.parent().unwrap());
        let decision = rules.decide(&above, &path, is_directory);
        (decision.mask, decision.descend)
    }

    #[test]
    fn a_directory_is_denied_as_a_whole_where_that_is_the_same() {
        let hide = |patterns: &[&str]| Exclude::hide(patterns.iter().copied()).unwrap();
        let view = View::new(hide(&["secrets/**", ".env", "/a/*.pem"]), hide(&["fixed"]));
        let is = |path, expected| assert_eq!(decide(&view, path, true), expected, "{path}");
        is("/secrets", (Some(With::Nothing), false));
        is("/other/.env", (Some(With::Nothing), false));
        // A `.env` may be in it.
        is("/fixed", (Some(With::ReadOnly), true));
        is("/other", (None, true));
        assert_eq!(decide(&view, "/.env", false).0, Some(With::Nothing));
        assert_eq!(decide(&view, "/a/x.pem", false).0, Some(With::Nothing));
        assert_eq!(decide(&view, "/b/x.pem", false).0, None);
        assert_eq!(decide(&view, "/fixed/x", false).0, Some(With::ReadOnly));
        let literal = View::new(hide(&["/a/b/c"]), Exclude::none());
        assert_eq!(decide(&literal, "/a", true), (None, true));
        assert_eq!(decide(&literal, "/b", true), (None, false));
    }

    #[test]
    fn what_an_earlier_rule_keeps_is_left_out() {
        let layer = vec![ExcludeRule::keep("/s/public"), ExcludeRule::hide("/s")];
        let view = View::new(Exclude::from_layers(vec![layer]).unwrap(), Exclude::none());
        assert_eq!(decide(&view, "/s", true), (None, true));
        assert_eq!(decide(&view, "/s/public", true), (None, false));
        assert_eq!(decide(&view, "/s/key", false).0, Some(With::Nothing));
    }

    #[test]
    fn a_name_at_any_depth_is_not_anchored() {
        for (pattern, expected) in [
            (".env", false),
            ("**/.env", false),
            ("**/.ssh/**", false),
            ("/x", true),
            ("a/.env", true),
            ("**/a/*.key", true),
        ] {
            assert_eq!(is_anchored(pattern), expected, "{pattern}");
        }
        let view = View::new(
            Exclude::hide(["/a/x.pem", "*.pem", "/b/c"]).unwrap(),
            Exclude::none(),
        );
        let rules = Rules::new(&view);
        for (path, expected) in [("/a/x.pem", false), ("/b/c", true), ("/b/c/d", true)] {
            let path = VPath::parse(path).unwrap();
            assert_eq!(rules.is_anchored(With::Nothing, &path), expected, "{path}");
        }
    }
}
