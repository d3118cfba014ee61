//! A command line and the paths it names, judged together.

use std::sync::Arc;

use backend_core::VPath;

use super::Policy;
use crate::command::{CommandContext, CommandPolicy, NamedPath, PathUse, glob_could_name};
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
}

impl Policy {
    /// What every layer says about a command line and the paths it names.
    ///
    /// A path that may not be read, or not be written, may not be named, whatever
    /// the command does with it: `cat`, or a program nobody knows. Only the
    /// program itself may be one that cannot be written. Where a command is known
    /// to read or to change a path, that is also asked about like a call that does
    /// so. Without rules, mounts and protected files, commands are not even read.
    pub fn judge_command(&self, command: CommandContext<'_>) -> CommandJudgement {
        let access = Access::command(command.line);
        let (line, here) = (command.line, command.directory);
        let mut report = match (self.rules(), self.scope()) {
            (Some(rules), _) => rules.commands().judge(command),
            // Mounts have nothing against a command, but against paths it names.
            (None, Some(_)) => CommandPolicy::open().judge(command),
            (None, None) if !self.0.protected.is_empty() => CommandPolicy::open().judge(command),
            (None, None) => {
                let verdict = Verdict::from(Vote::neutral(Layer::Command));
                return CommandJudgement {
                    verdict: verdict.clone(),
                    parts: vec![(access, verdict)],
                    commands: Vec::new(),
                };
            }
        };
        if self.rules().is_none() && self.scope().is_none() {
            // All that counts are the files that it names.
            report.verdict = Vote::neutral(Layer::Command).into();
        }
        let mut all = report.verdict.clone();
        let mut parts = vec![(access, report.verdict.clone())];
        for named in &report.paths {
            for op in judged_as(named.usage) {
                let Some(verdict) = self.judge_named(*op, named) else {
                    continue;
                };
                all = all.and_all(verdict.clone());
                let access = Access::file(*op, named.path.clone());
                parts.push((access, verdict));
            }
        }
        for (named, vote) in self.0.protected.judge_command(&report, line, here) {
            let verdict = denied(Op::Write, named, &vote.into());
            all = all.and_all(verdict.clone());
            parts.push((Access::file(Op::Write, named.path.clone()), verdict));
        }
        CommandJudgement {
            verdict: all,
            parts,
            commands: report.commands,
        }
    }

    /// What is against using a path in a command, if anything is.
    fn judge_named(&self, op: Op, named: &NamedPath) -> Option<Verdict> {
        let used = match named.usage {
            PathUse::Read | PathUse::Run => op == Op::Read,
            PathUse::Write => op == Op::Write,
            PathUse::Named => false,
        };
        // Most words that are merely named are no paths. Only one that begins at
        // the root is held against the mounts.
        let verdict = if used {
            // Of a glob the path is the directory it starts in.
            let kind = match named.glob {
                true => Kind::Directory,
                false => Kind::File,
            };
            self.judge_unprotected(op, &named.path, kind, None)
        } else if op == Op::Read && named.text.starts_with('/') {
            self.judge_unprotected(op, &named.path, Kind::Directory, None)
        } else {
            self.rules()?.judge(op, &named.path).into()
        };
        let verdict = match self.judge_glob(op, named) {
            Some(vote) => verdict.and(vote),
            None => verdict,
        };
        match verdict.action() {
            Action::Deny => Some(denied(op, named, &verdict)),
            Action::Ask if used => Some(verdict),
            _ => None,
        }
    }

    /// Whether a word with wildcards could name what a rule denies: each denial
    /// is tried with a name that it is about.
    fn judge_glob(&self, op: Op, named: &NamedPath) -> Option<Vote> {
        let rules = self.rules()?;
        if !named.glob {
            return None;
        }
        let (above, last) = named.text.rsplit_once('/')?;
        if !last.contains(|c: char| !"*?[]!".contains(c)) {
            return None;
        }
        let above: String = above
            .split('/')
            .filter(|name| !name.is_empty())
            .map(|name| format!("/{}", sample(name)))
            .collect();
        let section = match op {
            Op::Write => rules.ruleset().write.as_ref(),
            _ => rules.ruleset().read.as_ref(),
        };
        let denials = section?.rules.iter();
        let denials = denials.filter(|rule| rule.action == Action::Deny);
        for rule in denials {
            let pattern = rule.pattern.as_str().trim_end_matches("/**");
            let name = sample(pattern.rsplit('/').next().unwrap_or(pattern));
            let path = format!("{above}/{name}");
            if glob_could_name(&named.text, &path)
                && let Ok(path) = VPath::parse(&path)
            {
                let vote = rules.judge(op, &path);
                if vote.action == Action::Deny {
                    return Some(vote);
                }
            }
        }
        None
    }
}

/// A name that a pattern of one component matches, unless it is an odd one.
fn sample(pattern: &str) -> String {
    let name: String = pattern.chars().filter(|c| *c != '*').collect();
    match name.replace('?', "x") {
        name if name.is_empty() => "x".to_owned(),
        // A suffix alone would be a hidden file.
        name if name.starts_with('.') && pattern.starts_with('*') => format!("x{name}"),
        name if name.ends_with('.') => format!("{name}x"),
        name => name,
    }
}

/// The operations whose denials count for a use of a path.
fn judged_as(usage: PathUse) -> &'static [Op] {
    match usage {
        PathUse::Run => &[Op::Read],
        PathUse::Read | PathUse::Write | PathUse::Named => &[Op::Read, Op::Write],
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
