#![cfg_attr(feature = "shell", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "shell"),
    doc = "The types of the analysis of command lines; its code needs the feature `shell`.",
    allow(dead_code, reason = "only the analysis uses all of it")
)]

mod budget;
mod context;
mod error;
mod findings;
pub mod glob;
mod named_path;
mod word;

#[cfg(feature = "shell")]
mod arguments;
#[cfg(feature = "shell")]
mod curl;
#[cfg(feature = "shell")]
mod danger;
#[cfg(feature = "shell")]
mod directory;
#[cfg(feature = "shell")]
mod location;
#[cfg(feature = "shell")]
mod options;
#[cfg(feature = "shell")]
mod sed;
#[cfg(feature = "shell")]
mod shell;
#[cfg(feature = "shell")]
mod tables;
#[cfg(feature = "shell")]
mod walk;
#[cfg(feature = "shell")]
mod word_list;

pub use budget::{MAX_STEPS, StepBudget};
pub use context::CommandContext;
pub use findings::{Findings, Note, NoteKind, Role, SimpleCommand};
pub use named_path::{NamedPath, PathUse};
pub use word::{Word, WordPart};

/// Analyzes a command line. A line that takes more than [`MAX_STEPS`] is not understood.
#[cfg(feature = "shell")]
pub fn analyze(command: CommandContext<'_>) -> Findings {
    analyze_within(command, &StepBudget::new(command.stop))
}

/// Like [`analyze`], but with the remaining steps of `budget`.
#[cfg(feature = "shell")]
pub fn analyze_within(command: CommandContext<'_>, budget: &StepBudget<'_>) -> Findings {
    let mut findings = walk::Walk::new(command, budget).all();
    findings.exhausted = budget.is_spent();
    findings
}

/// Returns whether a program of this name is a shell.
pub fn is_shell(name: &str) -> bool {
    #[cfg(feature = "shell")]
    return tables::SHELLS.contains(&name);
    #[cfg(not(feature = "shell"))]
    return matches!(name, "sh" | "bash");
}

/// Returns whether a program of this name interprets code other than shell code.
pub fn is_interpreter(name: &str) -> bool {
    #[cfg(feature = "shell")]
    return tables::OPAQUE.contains(&name);
    #[cfg(not(feature = "shell"))]
    return name == "python";
}
