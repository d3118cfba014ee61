//! The presets and their patterns.

use std::str::FromStr;

use backend_core::Quoted;
use serde::{Deserialize, Serialize};

use super::{CommandRules, PathRule, PathRules, Ruleset, TerminalRules};
use crate::Action;
use crate::action::names;
use crate::verdict::MatchedRule;

/// Files that usually contain secrets.
pub const SECRETS: &[&str] = &[
    "**/.env",
    "**/.env.*",
    "**/*.pem",
    "**/*.key",
    "**/*.crt",
    "**/credentials*",
    "**/secrets*",
    "**/*secret*",
    "**/*password*",
    "**/.aws/**",
    "**/.ssh/**",
    "**/.gnupg/**",
];

/// Files of the operating system.
pub const SYSTEM: &[&str] = &[
    "/etc/**", "/var/**", "/usr/**", "/bin/**", "/sbin/**", "/boot/**", "/sys/**", "/proc/**",
];

/// Files that other programs run or obey automatically: when a directory is entered or
/// opened, at a commit, at a login, when an agent starts. Writing them means running
/// commands later, with the rights of the user and outside every rule.
///
/// Files that take effect only when a project is built or pushed are not included
/// (`Makefile`, `package.json`, `.github/workflows`). Agents are expected to change
/// those, and the step that runs them is a command that is judged by itself.
pub const AUTO_RUN: &[&str] = &[
    // git: hooks, and commands in its configuration
    "**/.git",
    "**/.gitconfig",
    "**/.config/git",
    "**/.husky",
    "**/.pre-commit-config.yaml",
    "**/lefthook.yml",
    "**/.lefthook.yml",
    // run or obeyed when a directory is entered or opened
    "**/.envrc",
    "**/.vscode",
    "**/*.code-workspace",
    "**/.idea",
    "**/.zed",
    "**/.devcontainer",
    "**/.devcontainer.json",
    "**/.exrc",
    "**/.nvim.lua",
    // agents and their servers
    "**/.mcp.json",
    "**/.claude",
    "**/.claude.json",
    "**/.codex",
    "**/.continue",
    "**/.cursor",
    "**/.gemini",
    "**/.junie",
    "**/.opencode",
    "**/opencode.json",
    "**/.windsurf",
    "**/.config/agentbox",
    // shells and sessions
    "**/.profile",
    "**/.bashrc",
    "**/.bash_profile",
    "**/.bash_login",
    "**/.bash_logout",
    "**/.bash_aliases",
    "**/.zshrc",
    "**/.zshenv",
    "**/.zprofile",
    "**/.zlogin",
    "**/.zlogout",
    "**/.config/fish",
    "**/.config/autostart",
    "**/.config/systemd",
    // keys and servers of other systems
    "**/.ssh",
];

/// A named ruleset.
///
/// | | `Default` | `Permissive` | `Readonly` | `Strict` |
/// |---|---|---|---|---|
/// | read | allow, no secrets | allow, no secrets | allow, no secrets | ask, no secrets |
/// | write, edit | ask, no secrets | allow, no secrets, no system | deny | ask, no secrets |
/// | write, edit files that [run automatically](AUTO_RUN) | ask | ask | deny | ask |
/// | execute | ask | allow | deny | ask |
/// | terminal | ask | allow | deny | ask |
/// | ls, glob, grep | allow | allow | allow | ask |
/// | anything else | ask | allow | deny | ask |
///
/// Deleting follows write. Moving and copying follow the operations they consist of.
/// Commands that destroy a system are denied in every preset. Code for an interpreter
/// other than the shell is allowed in `Permissive` and asked about in the others, if they
/// allow commands at all.
///
/// ```
/// use permissions::rules::Preset;
/// let preset: Preset = "readonly".parse()?;
/// assert_eq!(preset, Preset::Readonly);
/// assert!(preset.ruleset().to_json()?.contains("**/.ssh/**"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Reading is allowed; changing files and running commands needs approval.
    Default,
    /// Everything is allowed except access to secrets and system files.
    Permissive,
    /// Only reading is allowed.
    Readonly,
    /// Everything needs approval.
    Strict,
}

impl Preset {
    /// Returns the rules of the preset.
    pub fn ruleset(self) -> Ruleset {
        use Action::{Allow, Ask, Deny};
        let (default, read, write, execute, look, opaque) = match self {
            Self::Default => (Ask, Allow, Ask, Ask, Allow, Ask),
            Self::Permissive => (Allow, Allow, Allow, Allow, Allow, Allow),
            Self::Readonly => (Deny, Allow, Deny, Deny, Allow, Ask),
            Self::Strict => (Ask, Ask, Ask, Ask, Ask, Ask),
        };
        // If everything needs approval, these make the question say why they are special.
        let changes = match self {
            Self::Default | Self::Strict => secrets().chain(auto_run()).collect(),
            Self::Permissive => secrets_and_system().chain(auto_run()).collect(),
            // Everything is denied already.
            Self::Readonly => Vec::new(),
        };
        let section = |default, rules| Some(PathRules { default, rules });
        Ruleset {
            default,
            read: section(read, secrets().collect()),
            write: section(write, changes.clone()),
            edit: section(write, changes),
            ls: section(look, Vec::new()),
            glob: section(look, Vec::new()),
            grep: section(look, Vec::new()),
            execute: Some(CommandRules {
                default: execute,
                opaque,
                ..CommandRules::default()
            }),
            // Everything can be typed there.
            terminal: Some(TerminalRules { default: execute }),
            ..Ruleset::default()
        }
    }
}

/// Returns rules that deny access to secrets.
pub(super) fn secrets() -> impl Iterator<Item = PathRule> {
    denials(SECRETS, "Protect sensitive files")
}

const SECRETS_AND_SYSTEM: &str = "Protect sensitive and system files";

fn secrets_and_system() -> impl Iterator<Item = PathRule> {
    denials(SECRETS, SECRETS_AND_SYSTEM).chain(denials(SYSTEM, SECRETS_AND_SYSTEM))
}

/// Returns whether a rule is a preset's rule about system files, and not a user's rule
/// about a directory of the same name.
pub(super) fn is_about_system(rule: &MatchedRule) -> bool {
    is_system(rule.action, &rule.pattern, &rule.description)
}

/// Like [`is_about_system`], for a rule as written.
pub(super) fn is_system_rule(rule: &PathRule) -> bool {
    is_system(rule.action, rule.pattern.as_str(), &rule.description)
}

fn is_system(action: Action, pattern: &str, description: &str) -> bool {
    action == Action::Deny && description == SECRETS_AND_SYSTEM && SYSTEM.contains(&pattern)
}

/// Returns rules that ask about files that run automatically.
pub(super) fn auto_run() -> impl Iterator<Item = PathRule> {
    let description = "Other programs run or obey this without asking";
    rules(AUTO_RUN, Action::Ask, description)
}

fn denials(patterns: &'static [&str], description: &str) -> impl Iterator<Item = PathRule> {
    rules(patterns, Action::Deny, description)
}

/// Converts constant patterns to rules. A test checks that all of them are valid.
fn rules(
    patterns: &'static [&str],
    action: Action,
    description: &str,
) -> impl Iterator<Item = PathRule> {
    patterns
        .iter()
        .filter_map(move |pattern| PathRule::new(pattern, action).ok())
        .map(move |rule| rule.description(description))
}

names!(Preset::name, ALL {
    Default = "default",
    Permissive = "permissive",
    Readonly = "readonly",
    Strict = "strict",
});

/// The error for a word that does not name a preset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a preset; use default, permissive, readonly or strict")]
pub struct UnknownPreset(Quoted);

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        // pydantic-ai-backend writes `READONLY_RULESET`.
        let short = name.strip_suffix("_RULESET").map(str::to_lowercase);
        let name_or_short = short.as_deref().unwrap_or(name);
        Self::ALL
            .into_iter()
            .find(|preset| preset.name() == name_or_short)
            .ok_or_else(|| UnknownPreset(Quoted::new(name)))
    }
}
