//! A command line and the paths it names, judged together.

use std::sync::Arc;

use backend_core::VPath;

use super::Policy;
use crate::command::work::Work;
use crate::command::{CommandContext, CommandPolicy, NamedPath, PathUse, too_complicated};
use crate::{Access, Action, Kind, Layer, Op, Refusal, Target, Verdict, Vote, Why};

/// What every layer says about a command line.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommandJudgement {
    /// All of it together.
    pub verdict: Verdict,
    /// The line itself first, then each path that it names and that somebody has
    /// something against.
    pub parts: Vec<(Access, Verdict)>,
    /// The simple commands it would run, as far as they are known.
    pub commands: Vec<String>,
    /// The paths it names.
    pub paths: Vec<NamedPath>,
    /// How many steps judging took; see
    /// [`CommandReport::steps`](crate::command::CommandReport::steps).
    pub steps: usize,
}

/// What asking the rules about a path costs.
const PATH_STEPS: usize = 16;

impl Policy {
    /// What every layer says about a command line and the paths it names.
    ///
    /// A path that may not be read, or not be written, may not be named, whatever
    /// the command does with it: `cat`, or a program nobody knows. Only the
    /// program itself may be one that cannot be written. Where a command is known
    /// to read or to change a path, that is also asked about like a call that does
    /// so. Without rules, mounts and protected files, commands are not even read.
    pub fn judge_command(&self, command: CommandContext<'_>) -> CommandJudgement {
        let work = Work::new(command.stop);
        let access = Access::command(command.line);
        let (line, here) = (command.line, command.directory);
        let report = match (self.rules(), self.scope()) {
            (Some(rules), _) => rules.commands().judge_within(command, &work),
            // Mounts have nothing against a command, but against paths it names.
            (None, Some(_)) => CommandPolicy::open().judge_within(command, &work),
            (None, None) if self.protects() => CommandPolicy::open().judge_within(command, &work),
            (None, None) => {
                let verdict = Verdict::from(Vote::neutral(Layer::Command));
                return CommandJudgement {
                    verdict: verdict.clone(),
                    parts: vec![(access, verdict)],
                    commands: Vec::new(),
                    paths: Vec::new(),
                    steps: 0,
                };
            }
        };
        let mut verdict = match (self.rules(), self.scope()) {
            // All that counts are the files that it names.
            (None, None) => Vote::neutral(Layer::Command).into(),
            _ => report.verdict,
        };
        let mut parts = Vec::new();
        for named in &report.paths {
            if work.is_spent() {
                break;
            }
            parts.extend(self.judge_path(named, &work));
        }
        parts.extend(self.judge_protected(&report.commands, &report.paths, line, here));
        if work.is_spent() && verdict.action() < Action::Deny {
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
            steps: work.steps(),
        }
    }

    /// What is against paths of a command that are protected.
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

    /// What is against a path that a command uses, if anything is.
    pub(crate) fn judge_path(&self, named: &NamedPath, work: &Work<'_>) -> Vec<(Access, Verdict)> {
        let mut parts = Vec::new();
        for op in judged_as(named.usage) {
            if work.charge(PATH_STEPS)
                && let Some(verdict) = self.judge_named(*op, named, work)
            {
                parts.push((Access::file(*op, named.path.clone()), verdict));
            }
        }
        parts
    }

    /// What is against using a path in a command, if anything is.
    fn judge_named(&self, op: Op, named: &NamedPath, work: &Work<'_>) -> Option<Verdict> {
        let used = match named.usage {
            PathUse::Read | PathUse::Run => op == Op::Read,
            // What a glob names is looked at below.
            PathUse::Write => op == Op::Write && !named.glob,
            PathUse::Named | PathUse::Possible | PathUse::Within => false,
        };
        // Most words that are merely named are no paths. Only one that begins at
        // the root is held against the mounts.
        let verdict = if used {
            // Of a glob the path is the directory it starts in.
            let kind = match named.glob {
                true => Kind::Directory,
                false => Kind::File,
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
            let denied = rules.denies_glob(op, &named.text, named.inside, work);
            denied.or_else(|| asks.then(|| rules.asks_glob(&named.text, work))?)
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

/// The operations whose denials count for a use of a path.
fn judged_as(usage: PathUse) -> &'static [Op] {
    match usage {
        PathUse::Run | PathUse::Possible => &[Op::Read],
        PathUse::Read | PathUse::Write | PathUse::Named => &[Op::Read, Op::Write],
        PathUse::Within => &[],
    }
}

/// The denial in terms of the command: the path as it is spelt there.
fn denied(op: Op, named: &NamedPath, verdict: &Verdict) -> Verdict {
    let refusal = Refusal::CommandPath {
        op,
        path: named.text.clone(),
        description: description(verdict),
    };
    let why = Why::Refused(Arc::new(refusal));
    let vote = Vote::new(verdict.decisive().layer, Action::Deny, why);
    Verdict::from(vote).and_all(verdict.clone())
}

/// What the strongest vote says in words; may be empty.
pub(crate) fn description(verdict: &Verdict) -> String {
    match &verdict.decisive().why {
        Why::Rule(rule) => rule.description.clone(),
        Why::Because(text) => text.to_string(),
        Why::Refused(refusal) => refusal.to_string(),
        Why::Default(_) | Why::Nothing => String::new(),
    }
}

/// The refusal that a denial is. `shown` is the target as the caller knows it.
pub(crate) fn refusal(op: Op, shown: &Target, verdict: &Verdict, same: bool) -> Refusal {
    if let Why::Refused(refusal) = &verdict.decisive().why {
        return match same {
            true => (**refusal).clone(),
            false => retargeted(refusal, op, shown),
        };
    }
    Refusal::Rule {
        op,
        target: shown.to_string(),
        description: description(verdict),
    }
}

/// The refusal under the name that the caller knows: where a link leads is not
/// told.
fn retargeted(refusal: &Refusal, op: Op, shown: &Target) -> Refusal {
    let mut refusal = refusal.clone();
    match &mut refusal {
        Refusal::Outside { path, .. }
        | Refusal::ReadOnly { path, .. }
        | Refusal::MountRoot { path }
        | Refusal::Suffix { path, .. }
        | Refusal::TooLarge { path, .. } => *path = shown.to_string(),
        _ => {
            return Refusal::Rule {
                op,
                target: shown.to_string(),
                description: "it leads to where this is not allowed".to_owned(),
            };
        }
    }
    refusal
}
