//! What a command line would run, and what the rules say about it.
//!
//! A line is read with a shell grammar and taken apart into the simple commands it
//! would run: through `&&`, `;`, pipes, `$(...)`, here-documents, `sh -c`, `env`,
//! `sudo`, `xargs`, `find -exec` and so on. Each is judged by the rules; deny beats
//! ask beats allow over all of them. Besides the rules,
//!
//! - what destroys a system or hands it over is *dangerous*: `rm -r` of `/`, of a
//!   home or of a system tree, `mkfs`, writes to devices, fork bombs, `curl | sh`
//!   and the like, in any spelling. [`CommandRules::dangerous`] says what happens.
//! - code for another interpreter, and programs named by their path, are *opaque*:
//!   nobody can see what they do. [`CommandRules::opaque`] says what happens, unless
//!   a rule allows that program by name.
//! - a computed program name, and a computed argument of a destructive program,
//!   are asked about: `rm -rf "$D"`, but not `wc -l "$f"`.
//! - a line that is not understood is asked about. That is also one which `dash`
//!   and `bash` would read differently, since either may be `sh`. Nothing is
//!   allowed because it could not be read.
//! - a line that takes more than [`MAX_STEPS`] to look at is denied.
//!
//! This is a guard rail. It stops mistakes and what is not hidden on purpose; it
//! cannot know what a program does, what a script holds, or what a link points to.
//! Isolation is the job of the sandbox.

use std::sync::atomic::AtomicBool;

use backend_core::{CommandNames, VPath};

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
pub(crate) use glob::{Reading, bracket, name_matches};
pub use work::MAX_STEPS;

use work::Work;

/// Whether a program of this name is a shell.
pub(crate) fn is_shell(name: &str) -> bool {
    #[cfg(feature = "shell")]
    return tables::SHELLS.contains(&name);
    #[cfg(not(feature = "shell"))]
    return matches!(name, "sh" | "bash");
}

/// Whether a program of this name runs code of another kind.
pub(crate) fn is_interpreter(name: &str) -> bool {
    #[cfg(feature = "shell")]
    return tables::OPAQUE.contains(&name);
    #[cfg(not(feature = "shell"))]
    return name == "python";
}

/// A command line and where it runs.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CommandContext<'a> {
    /// The command line.
    pub line: &'a str,
    /// The directory it runs in.
    pub directory: &'a VPath,
    /// Variables that are set for it.
    pub environment: &'a [(String, String)],
    /// What `~` stands for, where that is known.
    pub home: Option<&'a VPath>,
    /// The names that files have for it, where those are others than the
    /// backend's.
    pub names: Option<&'a CommandNames>,
    /// Ends judging early once it is set: then the line is refused.
    pub stop: Option<&'a AtomicBool>,
}

impl<'a> CommandContext<'a> {
    /// `line`, run in `directory`.
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

    /// With variables that are set for it.
    #[must_use]
    pub fn environment(mut self, environment: &'a [(String, String)]) -> Self {
        self.environment = environment;
        self
    }

    /// With what `~` stands for.
    #[must_use]
    pub fn home(mut self, home: &'a VPath) -> Self {
        self.home = Some(home);
        self
    }

    /// With the names that files have for it.
    #[must_use]
    pub fn names(mut self, names: &'a CommandNames) -> Self {
        self.names = Some(names);
        self
    }

    /// With something that ends judging early once it is set.
    #[must_use]
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }
}

/// How a command uses a path it names. What reading or writing denies, no use is
/// allowed of, except that a program may be run where it cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathUse {
    /// It reads it.
    Read,
    /// It changes it.
    Write,
    /// It runs it.
    Run,
    /// It names it, and what it does with it is not known.
    Named,
    /// It may name it: the beginning of the path is computed. Only what reading
    /// denies counts.
    Possible,
    /// It may change anything beneath it: of a glob, anything of that name. Only files
    /// that are [protected](crate::Policy::protecting) count.
    Within,
}

/// A path that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedPath {
    /// How it is used.
    pub usage: PathUse,
    /// The path, folded. Of a glob, the directory before the first name that is
    /// one. A home that is not known is `/~`, a directory that is computed `/$`.
    pub path: VPath,
    /// As the command spells it. Of a glob, all of it as an absolute path; see
    /// [`glob_could_name`].
    pub text: String,
    /// Whether it is a glob, which may name more than one file.
    pub glob: bool,
    /// The path as the command would open it, not folded, where that is known; of
    /// a glob its directory. Where it leads, a sandbox can
    /// [trace](backend_core::Sandbox::trace).
    pub spelled: Option<String>,
    /// Whether it lies in a directory of the backend that commands know by another
    /// name: then it is no path of the system, whatever it is called.
    pub inside: bool,
}

/// What a command line would do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommandReport {
    /// What the command rules say. The paths are for the caller to judge.
    pub verdict: Verdict,
    /// The paths it names.
    pub paths: Vec<NamedPath>,
    /// The simple commands it would run, as far as they are known.
    pub commands: Vec<String>,
    understood: bool,
    steps: usize,
}

impl CommandReport {
    /// Whether all of the line was understood. If not, it is never allowed.
    pub fn understood(&self) -> bool {
        self.understood
    }

    /// How many steps it took, of which there are at most [`MAX_STEPS`]. The same
    /// line takes the same number everywhere.
    pub fn steps(&self) -> usize {
        self.steps
    }
}

/// Compiled command rules.
///
/// ```
/// use backend_core::{CommandNames, VPath};
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

    /// Allows everything that is understood.
    pub(crate) fn open() -> Self {
        let rules = CommandRules {
            default: Action::Allow,
            rules: Vec::new(),
            dangerous: Action::Allow,
            opaque: Action::Allow,
        };
        Self::of(rules)
    }

    /// Judges a command line. Nothing is run, and nothing is looked up: the
    /// answer depends on the text alone. A line that would take more than
    /// [`MAX_STEPS`] is denied as [too complicated](crate::Refusal::TooComplicated).
    pub fn judge(&self, command: CommandContext<'_>) -> CommandReport {
        self.judge_within(command, &Work::new(command.stop))
    }

    /// The same, with the steps that are left.
    pub(crate) fn judge_within(
        &self,
        command: CommandContext<'_>,
        work: &Work<'_>,
    ) -> CommandReport {
        decide::report(self, found::find(command, work), work)
    }

    /// The most lenient answer that any command can get.
    pub fn best(&self) -> Action {
        let rules = self.rules.rules.iter().map(|rule| rule.action);
        rules
            .chain([self.rules.default])
            .min()
            .unwrap_or(self.rules.default)
    }
}

/// Why a line is not understood, in words that follow "it is not understood:".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trouble(pub(crate) &'static str);
