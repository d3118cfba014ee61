//! [`RulesetBuilder`]: builds a ruleset from a few switches and additional rules.

use std::collections::BTreeSet;

use backend_core::Enforcement;
use backend_core::ops::HardLinks;

use super::data::{CommandRule, CommandRules, PathRule, PathRules, Ruleset, TerminalRules};
use super::pattern::PatternError;
use super::ports::{PortRange, PortRule, PortRules};
use super::preset::secrets;
use crate::action::{Action, Op};

/// Builds a [`Ruleset`] from a few switches and additional rules.
///
/// A switch chooses between allowing and asking. Only secrets, and paths or commands that
/// a rule denies, are denied. Rules come before the secrets, so they can make exceptions.
/// Commands that destroy a system are denied whatever the switches say.
///
/// ```
/// use permissions::{Action, Op, Ruleset};
///
/// let ruleset = Ruleset::builder()
///     .allow_write(true)
///     .rule(Op::Read, "**/.env.example", Action::Allow, "holds no secrets")
///     .rule(Op::Write, "/vendor/**", Action::Deny, "not ours")
///     .rule(Op::Execute, "git push*", Action::Ask, "leaves the machine")
///     .build()?;
/// assert_eq!(ruleset.read.as_ref().map(|read| read.default), Some(Action::Allow));
/// # Ok::<(), permissions::rules::PatternError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct RulesetBuilder {
    default: Action,
    /// The operations that are allowed; the others are asked about.
    allowed: BTreeSet<Op>,
    deny_secrets: bool,
    opaque: Action,
    terminal: Option<Action>,
    require_enforcement: Option<Enforcement>,
    hard_links: Option<HardLinks>,
    paths: Vec<(Op, PathRule)>,
    commands: Vec<CommandRule>,
    ports: Vec<PortRule>,
    error: Option<PatternError>,
}

impl Default for RulesetBuilder {
    fn default() -> Self {
        Self {
            default: Action::Ask,
            allowed: BTreeSet::from([Op::Read, Op::Ls, Op::Glob, Op::Grep]),
            deny_secrets: true,
            opaque: Action::Ask,
            terminal: None,
            require_enforcement: None,
            hard_links: None,
            paths: Vec::new(),
            commands: Vec::new(),
            ports: Vec::new(),
            error: None,
        }
    }
}

impl Ruleset {
    /// Returns a builder with a few switches and room for additional rules.
    pub fn builder() -> RulesetBuilder {
        RulesetBuilder::default()
    }
}

macro_rules! switches {
    ($($method:ident sets $op:ident: $what:literal, $usually:literal;)+) => {
        impl RulesetBuilder {
            $(
                #[doc = concat!(
                    "Sets whether ", $what, " is allowed or asked about. By default, it is ",
                    $usually, "."
                )]
                pub fn $method(mut self, allow: bool) -> Self {
                    self.allowed.retain(|op| *op != Op::$op);
                    self.allowed.extend(allow.then_some(Op::$op));
                    self
                }
            )+
        }
    };
}

switches! {
    allow_read sets Read: "reading", "allowed";
    allow_write sets Write: "writing, and so deleting,", "asked about";
    allow_edit sets Edit: "editing", "asked about";
    allow_execute sets Execute: "running commands", "asked about";
    allow_glob sets Glob: "finding files by name", "allowed";
    allow_grep sets Grep: "searching content", "allowed";
    allow_ls sets Ls: "listing directories", "allowed";
}

impl RulesetBuilder {
    backend_core::setters! {
        /// Sets the action for operations without a section. The default is to ask.
        fn default_action(self, default: Action) { self.default = default }

        /// Sets whether reading, writing and editing [`SECRETS`](super::SECRETS) is denied.
        /// By default, it is.
        fn deny_secrets(self, deny: bool) { self.deny_secrets = deny }

        /// Sets the action for code for an interpreter other than the shell; ask by default.
        fn opaque(self, action: Action) { self.opaque = action }

        /// Sets the action for opening a terminal and for attaching to a shell. See
        /// [`Ruleset::terminal_action`] for the default.
        fn terminal(self, action: Action) { self.terminal = Some(action) }

        /// Sets the lowest level at which the sandbox must keep denied paths from commands.
        /// If it cannot, commands are refused.
        fn require_enforcement(self, level: Enforcement) {
            self.require_enforcement = Some(level);
        }

        /// Sets the answer to a denied file that has another name, which commands may reach
        /// under it; by default commands are refused.
        fn hard_links(self, answer: HardLinks) { self.hard_links = Some(answer) }
    }

    /// Adds a rule after those added before. For [`Op::Execute`] the pattern is a
    /// [`CommandPattern`](super::CommandPattern), for [`Op::Connect`] a [`PortRange`], and
    /// otherwise a [`PathPattern`](super::PathPattern). The description may be empty. Terminals have no
    /// patterns: a rule for [`Op::Terminal`] applies to all of them, and never weakens
    /// [`terminal`](Self::terminal).
    pub fn rule(mut self, op: Op, pattern: &str, action: Action, description: &str) -> Self {
        if op == Op::Terminal {
            self.terminal = Some(self.terminal.unwrap_or_default().max(action));
            return self;
        }
        if op == Op::Execute {
            let rule = CommandRule::new(pattern, action);
            return self.with(rule, |this, rule| {
                this.commands.push(rule.description(description));
            });
        }
        if op == Op::Connect {
            let ports = pattern.parse::<PortRange>().map_err(PatternError::from);
            let rule = ports.map(|ports| PortRule::new(ports, action));
            return self.with(rule, |this, rule| {
                this.ports.push(rule.description(description));
            });
        }
        self.with(PathRule::new(pattern, action), |this, rule| {
            this.paths.push((op, rule.description(description)));
        })
    }

    /// Adds a rule that denies reading what matches `pattern`, and listing its name.
    pub fn hide(self, pattern: &str, description: &str) -> Self {
        self.with(PathRule::new(pattern, Action::Deny), |this, rule| {
            let rule = rule.description(description).hide(true);
            this.paths.push((Op::Read, rule));
        })
    }

    /// Builds the ruleset.
    ///
    /// # Errors
    ///
    /// The [`PatternError`] of the first rule with an invalid pattern.
    pub fn build(self) -> Result<Ruleset, PatternError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let default = |op| {
            let allowed = self.allowed.contains(&op);
            if allowed { Action::Allow } else { Action::Ask }
        };
        let section = |op| {
            Some(PathRules {
                default: default(op),
                rules: Vec::new(),
            })
        };
        let mut ruleset = Ruleset {
            default: self.default,
            read: section(Op::Read),
            write: section(Op::Write),
            edit: section(Op::Edit),
            glob: section(Op::Glob),
            grep: section(Op::Grep),
            ls: section(Op::Ls),
            execute: Some(CommandRules {
                default: default(Op::Execute),
                rules: self.commands,
                opaque: self.opaque,
                require_enforcement: self.require_enforcement,
                hard_links: self.hard_links,
                ..CommandRules::default()
            }),
            connect: (!self.ports.is_empty()).then_some(PortRules {
                default: self.default,
                rules: self.ports,
            }),
            terminal: self.terminal.map(|default| TerminalRules { default }),
            ..Ruleset::default()
        };
        for (op, rule) in self.paths {
            if let Some(section) = ruleset.section_mut(op) {
                section.get_or_insert_default().rules.push(rule);
            }
        }
        if self.deny_secrets {
            for section in [&mut ruleset.read, &mut ruleset.write, &mut ruleset.edit] {
                section.get_or_insert_default().rules.extend(secrets());
            }
        }
        // A delete section continues with the rules for writing after its own.
        if let (Some(delete), Some(write)) = (&mut ruleset.delete, &ruleset.write) {
            delete.default = write.default;
            delete.rules.extend_from_slice(&write.rules);
        }
        Ok(ruleset)
    }

    fn with<R>(mut self, rule: Result<R, PatternError>, add: impl FnOnce(&mut Self, R)) -> Self {
        match rule {
            Ok(rule) => add(&mut self, rule),
            Err(error) => self.error = self.error.take().or(Some(error)),
        }
        self
    }
}
