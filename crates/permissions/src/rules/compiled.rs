//! [`Rules`]: the engine that evaluates a ruleset.

use std::sync::Arc;

use backend_core::search::Exclude;
use backend_core::{PathError, VPath};
use command_line::StepBudget;

use super::data::{PathRules, Ruleset};
use super::denials::Denials;
use super::hidden;
use super::ports::PortSection;
use super::section::Section;
use crate::action::{Action, Op};
use crate::command::CommandPolicy;
use crate::verdict::{Layer, Vote};

/// A compiled [`Ruleset`]. Cloning is cheap.
///
/// The first rule of an operation that reaches a path decides. A rule reaches the paths
/// that its pattern covers; see [`PathPattern`](super::PathPattern). A rule that denies
/// or asks also reaches everything beneath those paths, so `**/secrets*` protects
/// `/a/secrets/b/c`. If a rule reaches a path only this way and asks, the search goes on,
/// because a later rule may deny, but the result is at least [`Action::Ask`]. Exceptions
/// must come before the rule they are exceptions to.
///
/// ```
/// use backend_core::VPath;
/// use permissions::{Action, Op, Ruleset};
///
/// let rules = Ruleset::builder()
///     .rule(Op::Read, "/secrets/public/**", Action::Allow, "")
///     .rule(Op::Read, "/secrets", Action::Deny, "not for agents")
///     .build()?
///     .compile(&VPath::root());
/// let read = |path| Ok::<_, backend_core::PathError>(rules.judge_text(Op::Read, path)?);
/// assert_eq!(read("/secrets/public/a")?.action, Action::Allow);
/// let vote = read("/secrets/a/b")?;
/// assert_eq!(
///     vote.to_string(),
///     "rules: deny, by rule 2 of read ('/secrets'): not for agents"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rules(Arc<Compiled>);

/// The operations whose results leave entries out.
pub(crate) const LISTING: [Op; 3] = [Op::Ls, Op::Glob, Op::Grep];

#[derive(Debug)]
struct Compiled {
    ruleset: Ruleset,
    id: String,
    working_dir: VPath,
    commands: CommandPolicy,
    ports: PortSection,
    /// By operation, in the order of [`Op::ALL`]. `None` has no objection.
    sections: [Option<Arc<Section>>; Op::ALL.len()],
    /// The entries that each of [`LISTING`] leaves out.
    excludes: [Exclude; LISTING.len()],
    /// Denials of reading and of writing.
    denials: [Denials; 2],
    /// Patterns for which writing needs approval.
    questions: Denials,
}

impl Ruleset {
    /// Compiles the ruleset into the engine that decides. Relative patterns with more
    /// than one component start at `working_dir`, unless they begin with `**`.
    pub fn compile(&self, working_dir: &VPath) -> Rules {
        let compile = |op: Op| {
            let section = match (self.section(op), op) {
                (Some(section), _) => Section::new(op, section, working_dir),
                (None, Op::Move | Op::Copy | Op::Delete) => return None,
                (None, Op::Execute) => {
                    let section = self.execute.as_ref();
                    let default = section.map_or(self.default, |section| section.default);
                    Section::empty(op, default)
                }
                (None, Op::Connect) => {
                    let section = self.connect.as_ref();
                    let default = section.map_or(self.default, |section| section.default);
                    Section::empty(op, default)
                }
                (None, Op::Terminal) => Section::empty(op, self.terminal_action()),
                (None, _) => Section::empty(op, self.default),
            };
            Some(Arc::new(section))
        };
        let mut sections = Op::ALL.map(compile);
        let [_, write, _, delete, ..] = &mut sections;
        if delete.is_none() {
            delete.clone_from(write);
        }
        let patterns = |section: &Option<PathRules>, action| {
            let section = section.as_ref();
            section.map_or_else(Denials::default, |rules| {
                Denials::new(rules, action, working_dir)
            })
        };
        Rules(Arc::new(Compiled {
            id: self.id(),
            working_dir: working_dir.clone(),
            commands: CommandPolicy::new(self),
            ports: PortSection::new(self.connect.as_ref(), self.default),
            sections,
            excludes: LISTING.map(|op| hidden::exclude(self, op, working_dir)),
            denials: [&self.read, &self.write].map(|section| patterns(section, Action::Deny)),
            questions: patterns(&self.write, Action::Ask),
            ruleset: self.clone(),
        }))
    }
}

impl Rules {
    /// Returns the ruleset that was compiled.
    pub fn ruleset(&self) -> &Ruleset {
        &self.0.ruleset
    }

    /// Returns the directory where relative patterns and paths start.
    pub fn working_dir(&self) -> &VPath {
        &self.0.working_dir
    }

    /// Returns an id computed from the ruleset's content; see [`Ruleset::id`].
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns the vote of the rules for `op` about `path`. Judges `op` alone; the caller
    /// must expand a move into a read, a delete and a write.
    ///
    /// Without its own rules, a delete is judged by the rules for writing, and the vote
    /// names that section. A move and a copy count as abstentions. The rules for commands
    /// and for ports do not apply to paths: [`Op::Execute`] and [`Op::Connect`] get their
    /// defaults, whatever the path.
    pub fn judge(&self, op: Op, path: &VPath) -> Vote {
        self.judge_as(op, path, false)
    }

    /// Like [`judge`](Self::judge). Preset rules about system files do not apply `inside` a
    /// directory that only the backend calls its root.
    pub(crate) fn judge_as(&self, op: Op, path: &VPath, inside: bool) -> Vote {
        match self.section(op) {
            Some(section) => section.judge(path, inside),
            None => Vote::abstain(Layer::Rules),
        }
    }

    /// Returns the vote of the rules about connecting to a port.
    pub fn judge_port(&self, port: u16) -> Vote {
        self.0.ports.judge(port)
    }

    /// Returns the vote of the rules for `op` about a path as typed. A relative path
    /// starts at the working directory.
    ///
    /// # Errors
    ///
    /// [`PathError`] if the text is not a valid path.
    pub fn judge_text(&self, op: Op, text: &str) -> Result<Vote, PathError> {
        Ok(self.judge(op, &self.working_dir().join(text)?))
    }

    /// Returns the entries that `ls`, `glob` or `grep` must leave out of its results.
    /// Other operations have no results to filter.
    ///
    /// Paths that `op` denies are left out. `ls` and `glob` also leave out paths that a
    /// rule for reading denies and hides, unless an earlier rule allows or asks. `grep`
    /// also leaves out paths that may not be read, and those that a rule for reading asks
    /// about, because nothing has approved showing them. The root is never left out.
    pub fn exclude(&self, op: Op) -> Exclude {
        let at = LISTING.iter().position(|listing| *listing == op);
        let exclude = at.and_then(|at| self.0.excludes.get(at));
        exclude.cloned().unwrap_or_default()
    }

    /// Returns the paths for which any of `ops` is denied, which do not include the root.
    /// Preset rules about system files do not count `inside` a directory that only the
    /// backend calls its root.
    pub(crate) fn denied_by_any(&self, ops: &[Op], inside: bool) -> Exclude {
        hidden::denied_by_any(self.ruleset(), ops, self.working_dir(), inside)
    }

    /// Returns the most lenient action that `op` can get for any target.
    pub fn most_lenient(&self, op: Op) -> Action {
        match (op, self.section(op)) {
            (Op::Execute, _) => self.commands().most_lenient(),
            (Op::Connect, _) => self.0.ports.most_lenient(),
            (_, Some(section)) => section.most_lenient,
            (_, None) => Action::Allow,
        }
    }

    /// Returns the strongest action that `op` could get for any entry beneath
    /// `directory`, not including the directory itself. It may be too strong, but never
    /// too weak: if it is [`Action::Allow`], the entries need no individual check.
    pub fn strongest_beneath(&self, op: Op, directory: &VPath) -> Action {
        self.section(op).map_or(Action::Allow, |section| {
            section.strongest_beneath(directory)
        })
    }

    /// Returns the denial of a glob that could name a path for which `op` is denied.
    pub(crate) fn denies_glob(
        &self,
        op: Op,
        glob: &str,
        inside: bool,
        budget: &StepBudget<'_>,
    ) -> Option<Vote> {
        let [read, write] = &self.0.denials;
        let denials = match op {
            Op::Write => write,
            _ => read,
        };
        denials.first(glob, budget, |path| {
            let vote = self.judge_as(op, path, inside);
            (vote.action == Action::Deny).then_some(vote)
        })
    }

    /// Like [`denies_glob`](Self::denies_glob), for paths where writing needs approval.
    pub(crate) fn asks_glob(&self, glob: &str, budget: &StepBudget<'_>) -> Option<Vote> {
        self.0.questions.first(glob, budget, |path| {
            let vote = self.judge(Op::Write, path);
            (vote.action == Action::Ask).then_some(vote)
        })
    }

    /// Returns the rules for commands.
    pub fn commands(&self) -> &CommandPolicy {
        &self.0.commands
    }

    fn section(&self, op: Op) -> Option<&Section> {
        self.0.sections.get(op as usize)?.as_deref()
    }
}
