//! Judges command lines by the rules.
//!
//! The crate [`command_line`] finds the simple commands that a line would run: through
//! `&&`, `;`, pipes, `$(...)`, here-documents, `sh -c`, `env`, `sudo`, `xargs`,
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

use command_line::{Findings, StepBudget};

use crate::action::Action;
use crate::rules::{CommandRules, Ruleset};
use crate::verdict::Verdict;

mod decide;

pub use command_line::glob::glob_could_name;
pub use command_line::{CommandContext, MAX_STEPS, NamedPath, PathUse};

pub(crate) use decide::too_complicated;

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
    /// Whether the whole line was understood. If not, it is never allowed.
    pub understood: bool,
    /// The number of steps the analysis took, at most [`MAX_STEPS`]. The same line takes
    /// the same number everywhere.
    pub steps: usize,
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
            ..CommandRules::default()
        };
        Self::of(rules)
    }

    /// Judges a command line. Nothing is run or looked up, so the result depends on the
    /// text alone. A line that would take more than [`MAX_STEPS`] is denied as
    /// [too complicated](crate::Refusal::TooComplicated).
    pub fn judge(&self, command: CommandContext<'_>) -> CommandReport {
        self.judge_within(command, &StepBudget::new(command.stop))
    }

    /// Like [`judge`](Self::judge), but with the remaining steps of `budget`.
    pub(crate) fn judge_within(
        &self,
        command: CommandContext<'_>,
        budget: &StepBudget<'_>,
    ) -> CommandReport {
        decide::report(self, analyze(command, budget), budget)
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

#[cfg(feature = "shell")]
fn analyze(command: CommandContext<'_>, budget: &StepBudget<'_>) -> Findings {
    command_line::analyze_within(command, budget)
}

/// Without the `shell` feature there is no parser, so nothing is understood.
#[cfg(not(feature = "shell"))]
fn analyze(_: CommandContext<'_>, _: &StepBudget<'_>) -> Findings {
    Findings::unreadable("this build cannot read commands")
}
