//! The entries that searches and listings leave out, as [`Exclude`] rules.
//!
//! There is one layer for each restriction of a scope, because an entry hidden by any of
//! them is hidden. For `grep` there is also one for suffixes and one for approvals.

use std::collections::BTreeSet;
use std::sync::Arc;

use backend_core::VPath;
use backend_core::limits::NAME_BYTES;
use backend_core::search::{Exclude, ExcludeRule, Glob};
use permissions::{Op, OpClass};

use crate::area::Area;
use crate::mount::Mount;
use crate::restriction::Restriction;
use crate::table::Mounts;

type Layer = Vec<ExcludeRule>;

/// The exclusions for each operation, computed once per scope.
#[derive(Debug)]
pub(crate) struct Excludes {
    ls: Exclude,
    glob: Exclude,
    /// The exclusions of grep that apply even when approval is granted.
    searched: Exclude,
    grep: Exclude,
    /// The paths that cannot be changed.
    unchangeable: Exclude,
}

impl Excludes {
    pub(crate) fn new(mounts: &Mounts, restrictions: &[Arc<Restriction>]) -> Self {
        let closed = |class| {
            let areas = restrictions.iter();
            let areas = areas.filter_map(|restriction| restriction.area(class));
            compile(
                areas
                    .map(|area| hide_closed(area, &BTreeSet::new()))
                    .collect(),
            )
        };
        let areas = || {
            restrictions
                .iter()
                .filter_map(|restriction| restriction.read.as_ref())
        };
        let glob = closed(OpClass::Read);
        let suffixes = compile(vec![by_suffix(mounts)]);
        let searched = glob.and(&suffixes);
        Self {
            ls: compile(areas().map(hide_closed_except_ancestors).collect()),
            grep: searched.and(&compile(vec![by_approval(mounts, |_| false)])),
            glob,
            searched,
            unchangeable: closed(OpClass::Write).and(&suffixes),
        }
    }

    pub(crate) fn of(&self, op: Op) -> &Exclude {
        match op {
            Op::Ls => &self.ls,
            Op::Grep => &self.grep,
            _ => &self.glob,
        }
    }

    /// Returns the paths to which an operation of this class is denied.
    pub(crate) fn denied(&self, class: OpClass) -> Exclude {
        match class {
            OpClass::Read => self.searched.clone(),
            OpClass::Write => self.unchangeable.clone(),
            OpClass::Execute => Exclude::none(),
        }
    }

    pub(crate) fn grep_granted(
        &self,
        mounts: &Mounts,
        granted: impl Fn(&Mount) -> bool,
    ) -> Exclude {
        self.searched
            .and(&compile(vec![by_approval(mounts, granted)]))
    }
}

/// Compiles the rules. The patterns consist of validated paths and short suffixes, so
/// they always compile. If one did not, everything would be hidden.
fn compile(layers: Vec<Layer>) -> Exclude {
    Exclude::from_layers(layers)
        .or_else(|_| Exclude::hide(["**"]))
        .unwrap_or_default()
}

/// Hides everything that `area` does not open. The deepest place decides, and entries
/// beneath it inherit its decision.
///
/// The directories in `ancestors` are shown, but not their other entries. Searches pass
/// an empty `ancestors`: a walk enters those directories anyway, and if one turns out to
/// be a file, it must not be found.
fn hide_closed(area: &Area, ancestors: &BTreeSet<VPath>) -> Layer {
    let is_open = |path: &VPath| area.is_open(path);
    if is_open(&VPath::root()) && area.places().all(|(_, open)| open) {
        return Layer::new();
    }
    let mut rules = Layer::new();
    for (place, open) in area.places().filter(|(place, _)| !place.is_root()) {
        let pattern = escaped(place);
        rules.push(if open || ancestors.contains(place) {
            ExcludeRule::keep(pattern)
        } else {
            ExcludeRule::hide(pattern)
        });
    }
    let steps = || ancestors.iter().filter(|step| !step.is_root());
    rules.extend(steps().map(|step| ExcludeRule::keep(escaped(step))));
    // All exact rules must precede these.
    rules.extend(steps().map(|step| ExcludeRule::hide(format!("{}/*", escaped(step)))));
    if !is_open(&VPath::root()) {
        rules.push(ExcludeRule::hide("/*"));
    }
    rules
}

/// Like [`hide_closed`], but shows the closed directories that lead to open ones.
fn hide_closed_except_ancestors(area: &Area) -> Layer {
    let open = area.places().filter(|(_, open)| *open);
    let ancestors = open
        .flat_map(|(place, _)| place.ancestors().collect::<Vec<_>>())
        .filter(|step| !area.is_open(step))
        .collect();
    hide_closed(area, &ancestors)
}

/// Hides files with a suffix that their mount does not allow. A directory with such a
/// name is hidden too, but still entered.
fn by_suffix(mounts: &Mounts) -> Layer {
    if mounts.iter().all(|mount| mount.suffixes.is_none()) {
        return Layer::new();
    }
    let mut rules = Layer::new();
    for mount in mounts.iter() {
        let point = &mount.mount_point;
        if !point.is_root() {
            // If a file is at the mount point instead of a directory, its suffix counts.
            rules.push(if mount.allows_suffix_of(point) {
                ExcludeRule::keep(escaped(point))
            } else {
                ExcludeRule::hide(escaped(point))
            });
        }
        let beneath = |name: &str| {
            if point.is_root() {
                format!("/**/{name}")
            } else {
                format!("{}/**/{name}", escaped(point))
            }
        };
        let Some(allowed) = &mount.suffixes else {
            rules.push(ExcludeRule::keep(beneath("*")));
            continue;
        };
        let patterns = allowed.iter().filter_map(|suffix| any_case(suffix));
        rules.extend(patterns.map(|suffix| ExcludeRule::keep(beneath(&format!("?*{suffix}")))));
        if allowed.iter().any(String::is_empty) {
            // A name that ends with a dot has no suffix. Any other name has one if there
            // is a dot after its first character.
            rules.push(ExcludeRule::keep(beneath("*.")));
            rules.push(ExcludeRule::hide(beneath("?*.?*")));
            rules.push(ExcludeRule::keep(beneath("*")));
        } else {
            rules.push(ExcludeRule::hide(beneath("*")));
        }
    }
    rules
}

/// Returns a pattern for a suffix in any case, or `None` if no name can have it.
fn any_case(suffix: &str) -> Option<String> {
    let text = suffix.strip_prefix('.')?;
    if text.is_empty() || text.contains(['.', '/', '\0']) || suffix.len() > NAME_BYTES {
        return None;
    }
    let mut pattern = ".".to_owned();
    for c in text.chars() {
        if c.is_ascii_alphabetic() {
            let (lower, upper) = (c.to_ascii_lowercase(), c.to_ascii_uppercase());
            pattern.extend(['[', lower, upper, ']']);
        } else {
            pattern += &Glob::escape(c.encode_utf8(&mut [0; 4]));
        }
    }
    Some(pattern)
}

/// Hides the mounts that require approval before reading, unless `granted`.
fn by_approval(mounts: &Mounts, granted: impl Fn(&Mount) -> bool) -> Layer {
    let is_hidden = |mount: &Mount| mount.read_approval && !granted(mount);
    if !mounts.iter().any(is_hidden) {
        return Layer::new();
    }
    let rule = |mount: &Mount| {
        let pattern = if mount.mount_point.is_root() {
            "/*".to_owned()
        } else {
            escaped(&mount.mount_point)
        };
        if is_hidden(mount) {
            ExcludeRule::hide(pattern)
        } else {
            ExcludeRule::keep(pattern)
        }
    };
    // The longest mount point comes first, and entries beneath it inherit its decision.
    mounts.iter().map(rule).collect()
}

/// Returns a pattern that matches only `path`.
fn escaped(path: &VPath) -> String {
    Glob::escape(path.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_that_no_name_has_makes_no_pattern() {
        for suffix in ["", "md", ".", ".tar.gz", ".a/b", ".a\0"] {
            assert_eq!(any_case(suffix), None, "{suffix:?}");
        }
        assert_eq!(any_case(&format!(".{}", "x".repeat(NAME_BYTES))), None);
        assert_eq!(any_case(".mD3").as_deref(), Some(".[mM][dD]3"));
        assert_eq!(any_case(".é*").as_deref(), Some(".é\\*"));
    }

    #[test]
    fn the_longest_names_make_patterns() {
        let names = vec!["*".repeat(NAME_BYTES); 14].join("/");
        let suffix = format!(".{}", "x".repeat(NAME_BYTES - 2));
        let mount = Mount::new("/h", &format!("/{names}")).unwrap();
        let mounts = Mounts::new(vec![mount.suffixes([suffix.as_str()])]).unwrap();
        let grep = crate::scope::Scope::new(mounts).exclude(Op::Grep);
        let file = |name: &str| VPath::parse(&format!("/{names}/{name}")).unwrap();
        assert!(!grep.hides(&file(&format!("a{}", suffix.to_uppercase()))));
        assert!(grep.hides(&file("a")));
        assert!(compile(vec![vec![ExcludeRule::hide("[")]]).hides(&file("a")));
    }
}
