//! Finds the programs that a command line would run, and judges them by the rules.
//!
//! A line is parsed with a shell grammar and split into the simple commands it would run:
//! through `&&`, `;`, pipes, `$(...)`, here-documents, `sh -c`, `env`, `sudo`, `xargs`,
//! `find -exec` and so on. Each is judged by the rules, and the strongest action wins:
//! deny over ask over allow. In addition to the rules:
//!
//! - Commands that destroy a system or give away control of it are *dangerous*: `rm -r`
//!   of `/`, of a home or of a system tree, `mkfs`, writes to devices, fork bombs,
//!   `curl | sh` and the like, in any spelling. [`CommandRules::dangerous`] sets the
//!   action.
//! - Code for another interpreter, and programs named by their path, are *opaque*: the
//!   line does not show what they do. [`CommandRules::opaque`] sets the action, unless a
//!   rule allows that program by name.
//! - A computed program name, and a computed argument of a destructive program, need
//!   approval: `rm -rf "$D"`, but not `wc -l "$f"`.
//! - A line that is not understood needs approval. This includes lines that `dash` and
//!   `bash` would read differently, since either may be `sh`. Nothing is allowed because
//!   it could not be parsed.
//! - A line that takes more than [`MAX_STEPS`] to analyze is denied.
//!
//! This is a guard rail. It stops mistakes and anything that is not hidden on purpose. It
//! cannot know what a program does, what a script contains, or where a link points.
//! Isolation is the job of the sandbox.

use std::sync::atomic::AtomicBool;

use backend_core::{CommandPaths, VPath};

use crate::rules::{CommandRules, Ruleset};
use crate::{Action, Verdict};

mod decide;
#[cfg_attr(
    not(feature = "shell"),
    allow(dead_code, reason = "only what reads commands uses all of it")
)]
mod glob;
pub(crate) mod pattern;
#[cfg_attr(
    not(feature = "shell"),
    allow(dead_code, reason = "only what reads commands uses all of it")
)]
pub(crate) mod work;

#[cfg(feature = "shell")]
mod arguments;
#[cfg(feature = "shell")]
mod curl;
#[cfg(feature = "shell")]
mod danger;
#[cfg(feature = "shell")]
mod directory;
#[cfg_attr(
    not(feature = "shell"),
    allow(dead_code, reason = "only what reads commands uses all of it")
)]
mod found;
#[cfg(feature = "shell")]
mod options;
#[cfg(feature = "shell")]
mod paths;
#[cfg(feature = "shell")]
mod sed;
#[cfg(feature = "shell")]
mod shell;
#[cfg(feature = "shell")]
mod tables;
#[cfg(feature = "shell")]
mod walk;
#[cfg_attr(
    not(feature = "shell"),
    allow(
        dead_code,
        unused_imports,
        reason = "only what reads commands uses all of it"
    )
)]
mod word;
#[cfg(feature = "shell")]
mod writes;

pub(crate) use decide::too_complicated;
pub use glob::glob_could_name;
pub(crate) use glob::{Reading, bracket, name_matches, name_or_dot_matches};
pub use work::MAX_STEPS;

use work::Work;

/// Returns whether a program of this name is a shell.
pub(crate) fn is_shell(name: &str) -> bool {
    #[cfg(feature = "shell")]
    return tables::SHELLS.contains(&name);
    #[cfg(not(feature = "shell"))]
    return matches!(name, "sh" | "bash");
}

/// Returns whether a program of this name interprets code other than shell code.
pub(crate) fn is_interpreter(name: &str) -> bool {
    #[cfg(feature = "shell")]
    return tables::OPAQUE.contains(&name);
    #[cfg(not(feature = "shell"))]
    return name == "python";
}

/// A command line and the context it runs in.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CommandContext<'a> {
    /// The command line.
    pub line: &'a str,
    /// The directory it runs in.
    pub directory: &'a VPath,
    /// Variables set for the command.
    pub environment: &'a [(String, String)],
    /// The directory that `~` stands for, if known.
    pub home: Option<&'a VPath>,
    /// The file names that the command sees, if they differ from the backend's.
    pub names: Option<&'a CommandPaths>,
    /// Stops the analysis early once it is set. The line is then refused.
    pub stop: Option<&'a AtomicBool>,
}

impl<'a> CommandContext<'a> {
    /// Creates the context of `line`, run in `directory`.
    pub fn new(line: &'a str, directory: &'a VPath) -> Self {
        Self {
            line,
            directory,
            environment: &[],
            home: None,
            names: None,
            stop: None,
        }
    }

    /// Sets the variables that are set for the command.
    #[must_use]
    pub fn environment(mut self, environment: &'a [(String, String)]) -> Self {
        self.environment = environment;
        self
    }

    /// Sets the directory that `~` stands for.
    #[must_use]
    pub fn home(mut self, home: &'a VPath) -> Self {
        self.home = Some(home);
        self
    }

    /// Sets the file names that the command sees.
    #[must_use]
    pub fn names(mut self, names: &'a CommandPaths) -> Self {
        self.names = Some(names);
        self
    }

    /// Sets a flag that stops the analysis early.
    #[must_use]
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }
}

/// The way a command uses a path it names. A path that may not be read or written may not
/// be used at all, except that a program may be run even if it cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathUse {
    /// The command reads it.
    Read,
    /// The command changes it.
    Write,
    /// The command runs it.
    Run,
    /// The command names it for an unknown purpose.
    Named,
    /// The command may name it: the beginning of the path is computed. Only denials of
    /// reading apply.
    Possible,
    /// The command may change anything beneath it or, for a glob, anything with that
    /// name. Only [protected](crate::Policy::protecting) files count.
    Within,
}

/// A path that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedPath {
    /// The way the command uses the path.
    pub usage: PathUse,
    /// The path, normalized. For a glob, the directory before the first component with a
    /// wildcard. An unknown home is `/~`, a computed directory `/$`.
    pub path: VPath,
    /// The path as the command spells it. A glob is given in full as an absolute path.
    /// See [`glob_could_name`].
    pub text: String,
    /// Whether the path is a glob, which may name more than one file.
    pub glob: bool,
    /// The path as the command would open it, not normalized, if known. For a glob, its
    /// directory. A sandbox can [trace](backend_core::Sandbox::trace) where it leads.
    pub spelled: Option<String>,
    /// `true` if the path is in a directory of the backend that commands know by another
    /// name. Then it is not a path of the system, whatever its name.
    pub inside: bool,
}

/// The result of analyzing a command line.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommandReport {
    /// The verdict of the command rules. The caller judges the paths.
    pub verdict: Verdict,
    /// The paths it names.
    pub paths: Vec<NamedPath>,
    /// The simple commands it would run, where known.
    pub commands: Vec<String>,
    understood: bool,
    steps: usize,
}

impl CommandReport {
    /// Returns whether the whole line was understood. If not, it is never allowed.
    pub fn understood(&self) -> bool {
        self.understood
    }

    /// Returns the number of steps the analysis took, at most [`MAX_STEPS`]. The same
    /// line takes the same number everywhere.
    pub fn steps(&self) -> usize {
        self.steps
    }
}

/// Compiled command rules.
///
/// ```
/// use backend_core::{CommandPaths, VPath};
/// use permissions::command::{CommandContext, CommandPolicy};
/// use permissions::{Action, Preset};
///
/// let policy = CommandPolicy::new(&Preset::Permissive.ruleset());
/// let directory = VPath::parse("/workspace")?;
/// let judge = |line| policy.judge(CommandContext::new(line, &directory)).verdict.action();
///
/// # #[cfg(feature = "shell")]
/// assert_eq!(judge("git status && sudo /bin/rm -r --force ../etc/"), Action::Deny);
/// # #[cfg(feature = "shell")]
/// assert_eq!(judge("cargo test 2>&1 | tail -20"), Action::Allow);
/// assert_eq!(judge("rm -rf \"$DIR\""), Action::Ask);
/// # Ok::<(), backend_core::PathError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CommandPolicy {
    rules: CommandRules,
    index: decide::Index,
}

impl CommandPolicy {
    /// Compiles the `execute` section of a ruleset.
    pub fn new(ruleset: &Ruleset) -> Self {
        let rules = ruleset.execute.clone().unwrap_or_else(|| CommandRules {
            default: ruleset.default,
            ..CommandRules::default()
        });
        Self::of(rules)
    }

    fn of(rules: CommandRules) -> Self {
        let index = decide::Index::new(&rules.rules);
        Self { rules, index }
    }

    /// Creates a policy that allows everything that is understood.
    pub(crate) fn open() -> Self {
        let rules = CommandRules {
            default: Action::Allow,
            rules: Vec::new(),
            dangerous: Action::Allow,
            opaque: Action::Allow,
        };
        Self::of(rules)
    }

    /// Judges a command line. Nothing is run or looked up, so the result depends on the
    /// text alone. A line that would take more than [`MAX_STEPS`] is denied as
    /// [too complicated](crate::Refusal::TooComplicated).
    pub fn judge(&self, command: CommandContext<'_>) -> CommandReport {
        self.judge_within(command, &Work::new(command.stop))
    }

    /// Like [`judge`](Self::judge), but with the remaining steps of `work`.
    pub(crate) fn judge_within(
        &self,
        command: CommandContext<'_>,
        work: &Work<'_>,
    ) -> CommandReport {
        decide::report(self, found::find(command, work), work)
    }

    /// Returns the most lenient action that any command can get.
    pub fn most_lenient(&self) -> Action {
        let rules = self.rules.rules.iter().map(|rule| rule.action);
        rules
            .chain([self.rules.default])
            .min()
            .unwrap_or(self.rules.default)
    }
}

/// The reason why a line is not understood, in words that follow "it is not understood:".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trouble(pub(crate) &'static str);
