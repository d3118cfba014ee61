//! The paths that a policy keeps from commands, as a [`View`].

use backend_core::ops::{HardLinks, View};
use backend_core::search::Exclude;
use backend_core::{CommandPaths, Enforcement};

use super::{Layers, Policy};
use crate::{Op, OpClass};

/// The operations that change the file at a path. If one of them is denied, a command may
/// not change it in any way.
const CHANGES: [Op; 4] = [Op::Write, Op::Edit, Op::Delete, Op::Move];

/// The demands on the enforcement of the rules for commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Demands {
    /// The lowest level at which commands may run.
    pub(super) level: Enforcement,
    /// The answer to a denied file that has another name, if one was set.
    pub(super) hard_links: Option<HardLinks>,
}

impl Demands {
    /// Returns the stricter demands of two layers.
    fn and(self, other: Self) -> Self {
        let answers = [self.hard_links, other.hard_links];
        Self {
            level: self.level.max(other.level),
            hard_links: if answers.contains(&Some(HardLinks::Refuse)) {
                Some(HardLinks::Refuse)
            } else {
                self.hard_links.or(other.hard_links)
            },
        }
    }
}

/// The views of one policy.
#[derive(Debug, Clone)]
pub(super) struct Views {
    /// Where the root of the backend is that of the system.
    system: View,
    /// Where only the backend calls its root `/`, so that rules about system files do not
    /// mean the files in it.
    inside: View,
}

impl Layers {
    fn view(&self, inside: bool) -> View {
        let denied = |class: OpClass, ops: &[Op]| {
            let rules = self.rules.as_ref();
            let by_rules = rules.map(|rules| rules.denied_by_any(ops, inside));
            let by_path = self.paths.iter().map(|layer| layer.denied(class));
            by_path.fold(by_rules.unwrap_or_default(), |all: Exclude, more| {
                all.and(&more)
            })
        };
        let changes = denied(OpClass::Write, &CHANGES);
        let demands = self.demands.and(self.demands_of_rules());
        View::new(
            denied(OpClass::Read, &[Op::Read]),
            changes.and(&self.protected.exclude()),
        )
        .hard_links(demands.hard_links.unwrap_or_default())
        .required(demands.level)
    }

    fn demands_of_rules(&self) -> Demands {
        let rules = self.rules.as_ref();
        let section = rules.and_then(|rules| rules.ruleset().execute.as_ref());
        section.map_or_else(Demands::default, |section| Demands {
            level: section.require_enforcement.unwrap_or_default(),
            hard_links: section.hard_links,
        })
    }
}

impl Policy {
    /// Returns the paths that the policy keeps from commands, as data for a sandbox whose
    /// level is [`Enforcement::View`], and what it requires of any sandbox. A guard adds
    /// it to every command.
    ///
    /// A command cannot read what [`Op::Read`] denies. It cannot change what any operation
    /// that changes a file denies, nor the [protected files](Self::protecting). Paths that
    /// the policy asks about are not kept from it: whether it may run is decided by its
    /// words, and by the approver.
    ///
    /// ```
    /// use backend_core::VPath;
    /// use permissions::{Action, Op, Policy, Ruleset};
    ///
    /// let rules = Ruleset::builder()
    ///     .rule(Op::Read, "/vault/public/**", Action::Allow, "")
    ///     .rule(Op::Read, "/vault", Action::Deny, "")
    ///     .build()?;
    /// let policy = Policy::builder().ruleset(&rules, &VPath::root()).build();
    /// let view = policy.view();
    /// assert!(view.deny_read.hides(&VPath::parse("/vault/key")?));
    /// assert!(!view.deny_read.hides(&VPath::parse("/vault/public/key")?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn view(&self) -> &View {
        &self.views().system
    }

    /// Returns the [`view`](Self::view) for commands that see a backend's paths as `names`
    /// says.
    pub(crate) fn view_for(&self, names: &CommandPaths) -> &View {
        let mut roots = names.roots().iter();
        let elsewhere = roots.any(|(directory, there)| directory.is_root() && !there.is_root());
        let views = self.views();
        if elsewhere {
            &views.inside
        } else {
            &views.system
        }
    }

    fn views(&self) -> &Views {
        self.0.views.get_or_init(|| Views {
            system: self.0.view(false),
            inside: self.0.view(true),
        })
    }
}
