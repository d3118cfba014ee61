//! [`Ruleset`]: rules as plain data.

use backend_core::ops::{ContentHash, HardLinks};
use backend_core::{Enforcement, Quoted};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::level;
use super::pattern::{CommandPattern, PathPattern, PatternError};
use super::ports::PortRules;
use crate::action::{Action, Op};

/// The paths, commands and ports that are allowed, asked about or denied.
///
/// ```
/// use backend_core::VPath;
/// use permissions::rules::Ruleset;
/// use permissions::{Action, Op};
///
/// let ruleset = Ruleset::from_toml(
///     r#"
///     default = "ask"
///
///     [read]
///     default = "allow"
///
///     [[read.rules]]
///     pattern = "**/.ssh/**"
///     action = "deny"
///     description = "keys stay private"
///     "#,
/// )?;
/// let rules = ruleset.compile(&VPath::parse("/project")?);
/// let read = |path| Ok::<_, backend_core::PathError>(rules.judge_text(Op::Read, path)?.action);
/// assert_eq!(read("src/main.rs")?, Action::Allow);
/// assert_eq!(read("../root/.ssh/id_ed25519")?, Action::Deny);
/// assert_eq!(rules.judge_text(Op::Write, "notes.md")?.action, Action::Ask);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// If a section is missing, `delete` uses the section of `write`, `move` and `copy` add
/// nothing to the reads, writes and deletes they consist of, `terminal` is at least asked
/// about, and any other operation gets [`default`](Self::default).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, default)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each section is named after its operation")]
pub struct Ruleset {
    /// The action for operations without a section.
    pub default: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<PathRules>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "no_hiding"
    )]
    pub write: Option<PathRules>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "no_hiding"
    )]
    pub edit: Option<PathRules>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "no_hiding"
    )]
    pub delete: Option<PathRules>,
    #[serde(rename = "move")]
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "no_hiding"
    )]
    pub moves: Option<PathRules>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "no_hiding"
    )]
    pub copy: Option<PathRules>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "no_hiding"
    )]
    pub ls: Option<PathRules>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "no_hiding"
    )]
    pub glob: Option<PathRules>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "no_hiding"
    )]
    pub grep: Option<PathRules>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execute: Option<CommandRules>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<PortRules>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalRules>,
}

// A list of values in field order is not accepted in place of a table.
crate::tables_only!(Ruleset, PathRules, PathRule checked by check_hide, CommandRules, CommandRule, TerminalRules);

fn check_hide(rule: &PathRule) -> Result<(), &'static str> {
    if rule.hide && rule.action != Action::Deny {
        return Err("'hide' is only valid with the action 'deny'; remove it");
    }
    Ok(())
}

/// The rules of one operation on paths. The first match decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct PathRules {
    /// The action if no rule matches.
    pub default: Action,
    /// The rules, in order.
    pub rules: Vec<PathRule>,
}

impl Default for PathRules {
    fn default() -> Self {
        Self {
            default: Action::Allow,
            rules: Vec::new(),
        }
    }
}

/// The action for paths that match a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[non_exhaustive]
pub struct PathRule {
    /// The pattern.
    pub pattern: PathPattern,
    /// The action for matching paths.
    pub action: Action,
    /// The reason, for people and models.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// For a denial of reading: whether the names are also left out of listings. It has
    /// no effect in any other rule, and is an error when loaded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hide: bool,
}

/// Deserializes a section for an operation other than reading.
fn no_hiding<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathRules>, D::Error> {
    let section = Option::<PathRules>::deserialize(from)?;
    let hiding = section.iter().flat_map(|section| &section.rules);
    match hiding.into_iter().find(|rule| rule.hide) {
        None => Ok(section),
        Some(rule) => Err(D::Error::custom(format_args!(
            "the rule {} sets 'hide', which is only valid for rules that deny reading; remove it",
            Quoted::new(rule.pattern.as_str())
        ))),
    }
}

impl PathRule {
    /// Creates a rule without a description that hides no names.
    pub fn new(pattern: &str, action: Action) -> Result<Self, PatternError> {
        Ok(Self {
            pattern: PathPattern::new(pattern)?,
            action,
            description: String::new(),
            hide: false,
        })
    }

    backend_core::setters! {
        /// Sets the description.
        fn description(self, description: impl Into<String>) {
            self.description = description.into();
        }

        /// Sets whether a denial of reading also leaves the names out of listings.
        fn hide(self, hide: bool) { self.hide = hide }
    }
}

/// The rules for commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CommandRules {
    /// The action for commands that no rule matches.
    pub default: Action,
    /// The rules, in order.
    pub rules: Vec<CommandRule>,
    /// The action for commands that destroy a system or give away control of it, whatever
    /// the rules say; see [`crate::command`].
    pub dangerous: Action,
    /// The action for code passed to an interpreter other than the shell, unless a rule
    /// allows that interpreter by name.
    pub opaque: Action,
    /// The lowest level at which the sandbox must keep denied paths from commands; below
    /// it, no command runs. Without it, any level will do.
    #[serde(with = "level::enforcement", skip_serializing_if = "Option::is_none")]
    pub require_enforcement: Option<Enforcement>,
    /// The answer to a denied file that has another name, which commands may reach under
    /// it. Without it, commands are refused.
    #[serde(with = "level::hard_links", skip_serializing_if = "Option::is_none")]
    pub hard_links: Option<HardLinks>,
}

impl Default for CommandRules {
    fn default() -> Self {
        Self {
            default: Action::Allow,
            rules: Vec::new(),
            dangerous: Action::Deny,
            opaque: Action::Ask,
            require_enforcement: None,
            hard_links: None,
        }
    }
}

/// The action for commands that match a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[non_exhaustive]
pub struct CommandRule {
    /// The pattern.
    pub pattern: CommandPattern,
    /// The action for matching commands.
    pub action: Action,
    /// The reason, for people and models.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

impl CommandRule {
    /// Creates a rule without a description.
    pub fn new(pattern: &str, action: Action) -> Result<Self, PatternError> {
        Ok(Self {
            pattern: CommandPattern::new(pattern)?,
            action,
            description: String::new(),
        })
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }
}

/// The rules for opening a terminal and for attaching to a shell. There are no patterns:
/// whatever the command line, everything can be typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct TerminalRules {
    /// The action for every terminal.
    pub default: Action,
}

impl Ruleset {
    /// Returns the section of a path operation, if it is present.
    pub fn section(&self, op: Op) -> Option<&PathRules> {
        match op {
            Op::Read => self.read.as_ref(),
            Op::Write => self.write.as_ref(),
            Op::Edit => self.edit.as_ref(),
            Op::Delete => self.delete.as_ref(),
            Op::Move => self.moves.as_ref(),
            Op::Copy => self.copy.as_ref(),
            Op::Ls => self.ls.as_ref(),
            Op::Glob => self.glob.as_ref(),
            Op::Grep => self.grep.as_ref(),
            Op::Execute | Op::Connect | Op::Terminal => None,
        }
    }

    /// Returns the slot for a path operation's section; `None` for [`Op::Execute`],
    /// [`Op::Connect`] and [`Op::Terminal`].
    pub fn section_mut(&mut self, op: Op) -> Option<&mut Option<PathRules>> {
        match op {
            Op::Read => Some(&mut self.read),
            Op::Write => Some(&mut self.write),
            Op::Edit => Some(&mut self.edit),
            Op::Delete => Some(&mut self.delete),
            Op::Move => Some(&mut self.moves),
            Op::Copy => Some(&mut self.copy),
            Op::Ls => Some(&mut self.ls),
            Op::Glob => Some(&mut self.glob),
            Op::Grep => Some(&mut self.grep),
            Op::Execute | Op::Connect | Op::Terminal => None,
        }
    }

    /// Returns the action for opening a terminal and for attaching to a shell.
    ///
    /// Rules for commands judge words. They cannot hold for keys that edit a line, answer
    /// a program or arrive byte by byte. So without [`terminal`](Self::terminal) this is
    /// at least [`Action::Ask`], and as strong as the defaults for commands and for
    /// everything.
    pub fn terminal_action(&self) -> Action {
        let execute = self.execute.as_ref();
        let execute = execute.map_or(self.default, |section| section.default);
        let least = Action::Ask.max(self.default).max(execute);
        let own = self.terminal.as_ref();
        own.map_or(least, |section| section.default)
    }

    /// Returns an id computed from the ruleset's content, in hexadecimal digits. Equal
    /// rulesets have equal ids, and different ones have different ids.
    pub fn id(&self) -> String {
        // Every field is a plain value, so serialization cannot fail.
        let canonical = serde_json::to_vec(self).unwrap_or_else(|_| format!("{self:?}").into());
        ContentHash::of(&canonical).to_string()
    }
}
