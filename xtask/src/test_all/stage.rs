//! The parts of a run: a stage, its context and its outcome.

use anyhow::Result;

use crate::workspace::Workspace;

/// The extent of a run. Each tier includes the stages of the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// `--quick`: no extra tools, little time.
    Quick,
    /// Everything that tests the product. No tool is compiled for it.
    Default,
    /// `--full`: also tools that inspect the code, and frameworks that use the program.
    Full,
}

/// One check of `test-all`.
#[derive(Debug)]
pub(super) struct Stage {
    /// The name for `--only` and `--require`.
    pub(super) name: &'static str,
    /// A short description of the property it checks.
    pub(super) what: &'static str,
    /// The smallest tier that includes it.
    pub(super) tier: Tier,
    /// Required programs. Without them the stage is skipped. Those that `provision`
    /// knows can be installed.
    pub(super) tools: &'static [&'static str],
    /// Optional programs that `provision` installs for it.
    pub(super) extras: &'static [&'static str],
    /// The stage that it runs beside. Without that one it runs in its place.
    pub(super) beside: Option<&'static str>,
    pub(super) run: fn(&Ctx) -> Result<Outcome>,
}

/// Creates a stage that needs no tools.
pub(super) const fn stage(
    name: &'static str,
    what: &'static str,
    tier: Tier,
    run: fn(&Ctx) -> Result<Outcome>,
) -> Stage {
    Stage {
        name,
        what,
        tier,
        tools: &[],
        extras: &[],
        beside: None,
        run,
    }
}

/// The context passed to every stage.
#[derive(Debug)]
pub(super) struct Ctx {
    pub(super) workspace: Workspace,
    /// Whether `--full` was given.
    pub(super) is_full: bool,
    /// Whether property tests and fuzzing try new inputs instead of fixed ones.
    pub(super) is_random: bool,
    /// Whether missing tools are installed, with `--provision`.
    pub(super) is_provisioning: bool,
}

/// The result of a stage, with a note for the table. An error counts as a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed(String),
    Failed(String),
    Skipped(String),
}

impl Outcome {
    /// Passes with `note`, unless some of several checks have failed.
    pub(super) fn unless_failed(failed: &[&str], note: String) -> Self {
        match failed {
            [] => Self::Passed(note),
            _ => Self::Failed(format!("{} failed: {}", failed.len(), failed.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_named() {
        let note = "3 run".to_owned();
        let passed = Outcome::Passed(note.clone());
        assert_eq!(Outcome::unless_failed(&[], note.clone()), passed);
        let failed = Outcome::Failed("2 failed: a, b".to_owned());
        assert_eq!(Outcome::unless_failed(&["a", "b"], note), failed);
    }
}
