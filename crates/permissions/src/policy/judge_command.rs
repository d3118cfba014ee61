//! Judges a command line together with the paths it names.

use std::sync::Arc;

use backend_core::VPath;
use command_line::{CommandContext, NamedPath, PathUse, StepBudget};

use super::Policy;
use crate::command::{CommandPolicy, too_complicated};
use crate::{Access, Action, Kind, Layer, Op, Reason, Refusal, Target, Verdict, Vote};

/// The verdict of every layer about a command line.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommandJudgement {
    /// The combined verdict.
    pub verdict: Verdict,
    /// The line itself first, then each path it names that some layer objects to.
    pub parts: Vec<(Access, Verdict)>,
    /// The simple commands it would run, where known.
    pub commands: Vec<String>,
    /// The paths it names.
    pub paths: Vec<NamedPath>,
    /// The number of steps that judging took. See
    /// [`CommandReport::steps`](crate::command::CommandReport::steps).
    pub steps: usize,
}

/// Steps charged for checking one path against the rules.
const PATH_STEPS: usize = 16;

impl Policy {
    /// Returns the verdict of every layer about a command line and the paths it names.
    ///
    /// A command must not name a path that may not be read or may not be written,
    /// whatever it does with it: `cat` and an unknown program are treated alike. Only the
    /// program itself may be a file that cannot be written. Where a command is known to
    /// read or change a path, it is also asked about like a call that does so. Without
    /// rules, mounts and protected files, commands are not even parsed.
    pub fn judge_command(&self, command: CommandContext<'_>) -> CommandJudgement {
        let budget = StepBudget::new(command.stop);
        let access = Access::command(command.line);
        let (line, here) = (command.line, command.directory);
        let report = match self.rules() {
            Some(rules) => rules.commands().judge_within(command, &budget),
            // Mounts do not object to commands, only to the paths they name.
            None if self.judges_paths() => CommandPolicy::open().judge_within(command, &budget),
            None => {
                let verdict = Verdict::from(Vote::abstain(Layer::Command));
                return CommandJudgement {
                    verdict: verdict.clone(),
                    parts: vec![(access, verdict)],
                    commands: Vec::new(),
                    paths: Vec::new(),
                    steps: 0,
                };
            }
        };
        let mut verdict = match (self.rules(), self.has_path_layer()) {
            // Only the named files count.
            (None, false) => Vote::abstain(Layer::Command).into(),
            _ => report.verdict,
        };
        let mut parts = Vec::new();
        for named in &report.paths {
            if budget.is_spent() {
                break;
            }
            parts.extend(self.judge_path(named, &budget));
        }
        parts.extend(self.judge_protected(&report.commands, &report.paths, line, here));
        if budget.is_spent() && verdict.action() < Action::Deny {
            verdict = verdict.and(too_complicated());
        }
        let mut all = verdict.clone();
        for (_, verdict) in &parts {
            all = all.and_all(verdict.clone());
        }
        parts.insert(0, (access, verdict));
        CommandJudgement {
            verdict: all,
            parts,
            commands: report.commands,
            paths: report.paths,
            steps: budget.steps(),
        }
    }

    /// Returns the objections to protected paths that a command names.
    pub(crate) fn judge_protected(
        &self,
        commands: &[String],
        paths: &[NamedPath],
        line: &str,
        here: &VPath,
    ) -> Vec<(Access, Verdict)> {
        let against = self.0.protected.judge_command(commands, paths, line, here);
        let part = |(named, vote): (&NamedPath, Vote)| {
            let verdict = match vote.action {
                Action::Deny => denied(Op::Write, named, &vote.into()),
                _ => vote.into(),
            };
            (Access::file(Op::Write, named.path.clone()), verdict)
        };
        against.into_iter().map(part).collect()
    }

    /// Returns the objections to a path that a command uses.
    pub(crate) fn judge_path(
        &self,
        named: &NamedPath,
        budget: &StepBudget<'_>,
    ) -> Vec<(Access, Verdict)> {
        let mut parts = Vec::new();
        for op in judged_as(named.usage) {
            if budget.charge(PATH_STEPS)
                && let Some(verdict) = self.judge_named(*op, named, budget)
            {
                parts.push((Access::file(*op, named.path.clone()), verdict));
            }
        }
        parts
    }

    /// Returns the objection to using a path in a command, if there is one.
    fn judge_named(&self, op: Op, named: &NamedPath, budget: &StepBudget<'_>) -> Option<Verdict> {
        let used = match named.usage {
            PathUse::Read | PathUse::Run => op == Op::Read,
            // Paths that a glob could name are checked below.
            PathUse::Write => op == Op::Write && !named.glob,
            PathUse::Named | PathUse::Possible | PathUse::Within => false,
        };
        // Most words that are only named are not paths. Only one that starts at the root
        // is checked against the mounts.
        let verdict = if used {
            // For a glob, the path is the directory it starts in.
            let kind = if named.glob {
                Kind::Directory
            } else {
                Kind::File
            };
            self.judge_unprotected(op, &named.path, kind, None, named.inside)
        } else if op == Op::Read && named.usage != PathUse::Possible && named.text.starts_with('/')
        {
            self.judge_unprotected(op, &named.path, Kind::Directory, None, named.inside)
        } else {
            self.rules()?.judge_as(op, &named.path, named.inside).into()
        };
        let glob = self.rules().filter(|_| named.glob);
        let asks = named.usage == PathUse::Write && op == Op::Write;
        let glob = glob.and_then(|rules| {
            let denied = rules.denies_glob(op, &named.text, named.inside, budget);
            denied.or_else(|| asks.then(|| rules.asks_glob(&named.text, budget))?)
        });
        let asked = glob.is_some();
        let verdict = match glob {
            Some(vote) => verdict.and(vote),
            None => verdict,
        };
        match verdict.action() {
            Action::Deny => Some(denied(op, named, &verdict)),
            Action::Ask if used || asked => Some(verdict),
            _ => None,
        }
    }
}

/// Returns the operations whose denials apply to a use of a path. One that may not be read
/// or written may not be used at all, except that a program may be run even if it cannot be
/// written. Files within a path count only if they are protected, which is judged elsewhere.
fn judged_as(usage: PathUse) -> &'static [Op] {
    match usage {
        PathUse::Run | PathUse::Possible => &[Op::Read],
        PathUse::Read | PathUse::Write | PathUse::Named => &[Op::Read, Op::Write],
        PathUse::Within => &[],
    }
}

/// Rewords a denial for the command, with the path as spelt there.
fn denied(op: Op, named: &NamedPath, verdict: &Verdict) -> Verdict {
    let refusal = Refusal::command_path(op, &named.text, description(verdict));
    let why = Reason::Refused(Arc::new(refusal));
    let vote = Vote::new(verdict.decisive().layer, Action::Deny, why);
    Verdict::from(vote).and_all(verdict.clone())
}

/// Returns the reason of the strongest vote in words; may be empty.
pub(crate) fn description(verdict: &Verdict) -> String {
    match &verdict.decisive().reason {
        Reason::Rule(rule) => rule.description.clone(),
        Reason::Text(text) => text.to_string(),
        Reason::Refused(refusal) => refusal.to_string(),
        Reason::Default(_) | Reason::Unspecified => String::new(),
    }
}

/// Converts a denial into a refusal. `shown` is the target as the caller knows it.
pub(crate) fn refusal(op: Op, shown: &Target, verdict: &Verdict, same: bool) -> Refusal {
    if let Reason::Refused(refusal) = &verdict.decisive().reason {
        return if same {
            (**refusal).clone()
        } else {
            retargeted(refusal, op, shown)
        };
    }
    Refusal::rule(op, shown.to_string(), description(verdict))
}

/// Rewrites the refusal with the caller's name, so as not to reveal where a link leads.
fn retargeted(refusal: &Refusal, op: Op, shown: &Target) -> Refusal {
    let mut refusal = refusal.clone();
    match &mut refusal {
        Refusal::Outside { path, .. }
        | Refusal::ReadOnly { path, .. }
        | Refusal::MountRoot { path }
        | Refusal::Suffix { path, .. }
        | Refusal::TooLarge { path, .. } => *path = shown.to_string(),
        _ => {
            let why = "it leads to a path where this is not allowed";
            return Refusal::rule(op, shown.to_string(), why);
        }
    }
    refusal
}
