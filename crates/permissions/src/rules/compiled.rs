//! [`Rules`]: the engine.

use std::borrow::Cow;
use std::sync::Arc;

use backend_core::search::Exclude;
use backend_core::{PathError, VPath};

use super::denials::Denials;
use super::section::Section;
use super::{Ruleset, hidden};
use crate::command::CommandPolicy;
use crate::command::work::Work;
use crate::{Action, Layer, Op, Vote, Why};

/// A compiled [`Ruleset`]. Cloning is cheap.
///
/// Of the rules of an operation the first that reaches a path decides. A rule
/// reaches what its pattern covers; see [`PathPattern`](super::PathPattern). A
/// rule that denies or asks also reaches everything beneath that, so
/// `**/secrets*` protects `/a/secrets/b/c`. A question that comes from above so
/// does not end the search, because a later rule may deny, but the answer is at
/// least [`Action::Ask`]. Exceptions stand in front of what they are exceptions
/// from.
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

#[derive(Debug)]
struct Compiled {
    ruleset: Ruleset,
    id: String,
    working_dir: VPath,
    commands: CommandPolicy,
    /// By operation, in the order of [`Op::ALL`]. `None` has nothing to say.
    sections: [Option<Arc<Section>>; Op::ALL.len()],
    ls: Exclude,
    glob: Exclude,
    grep: Exclude,
    /// Of reading and of writing.
    denials: [Denials; 2],
    /// What writing asks about.
    questions: Denials,
}

impl Rules {
    pub(super) fn new(ruleset: &Ruleset, working_dir: &VPath) -> Self {
        let compile = |op: Op| {
            let section = match (ruleset.section(op), op) {
                (Some(section), _) => Section::new(op, section, working_dir),
                (None, Op::Move | Op::Copy | Op::Delete) => return None,
                (None, Op::Execute) => {
                    let section = ruleset.execute.as_ref();
                    let default = section.map_or(ruleset.default, |section| section.default);
                    Section::empty(op, default)
                }
                (None, _) => Section::empty(op, ruleset.default),
            };
            Some(Arc::new(section))
        };
        let mut sections = Op::ALL.map(compile);
        let [_, write, _, delete, ..] = &mut sections;
        if delete.is_none() {
            delete.clone_from(write);
        }
        let exclude = |op| hidden::exclude(ruleset, op, working_dir);
        let denials = [&ruleset.read, &ruleset.write].map(|section| {
            let section = section.as_ref();
            section.map_or_else(Denials::default, |rules| {
                Denials::new(rules, Action::Deny, working_dir)
            })
        });
        let questions = ruleset.write.as_ref();
        let questions = questions.map_or_else(Denials::default, |rules| {
            Denials::new(rules, Action::Ask, working_dir)
        });
        Self(Arc::new(Compiled {
            id: ruleset.id(),
            working_dir: working_dir.clone(),
            commands: CommandPolicy::new(ruleset),
            sections,
            ls: exclude(Op::Ls),
            glob: exclude(Op::Glob),
            grep: exclude(Op::Grep),
            denials,
            questions,
            ruleset: ruleset.clone(),
        }))
    }

    /// The rules as they are written down.
    pub fn ruleset(&self) -> &Ruleset {
        &self.0.ruleset
    }

    /// The directory where relative patterns and paths start.
    pub fn working_dir(&self) -> &VPath {
        &self.0.working_dir
    }

    /// Names the ruleset by its content; see [`Ruleset::id`].
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// What the rules of `op` say about `path`. Of `op` alone: that a move is
    /// also a read, a delete and a write is for the caller to expand.
    ///
    /// Without rules of their own, a delete gets what the rules of writing say,
    /// and the vote names that section; a move and a copy get a neutral vote. The
    /// rules for commands do not speak about paths: [`Op::Execute`] gets their
    /// default, whatever the path.
    pub fn judge(&self, op: Op, path: &VPath) -> Vote {
        self.judge_as(op, path, false)
    }

    /// The same. What presets say about files of the system does not count for a path
    /// that lies `inside` a directory which only the backend calls its root.
    pub(crate) fn judge_as(&self, op: Op, path: &VPath, inside: bool) -> Vote {
        match self.section(op) {
            Some(section) => section.judge(path, inside),
            None => Vote::neutral(Layer::Rules),
        }
    }

    /// What the rules of `op` say about one thing that has several `spellings`,
    /// such as a path and what it resolves to: the strongest vote, of equal ones
    /// the first. Without any spelling nothing is known, and that is a denial.
    pub fn judge_all(&self, op: Op, spellings: &[&VPath]) -> Vote {
        let votes = spellings.iter().map(|path| self.judge(op, path));
        votes
            .reduce(|one, other| {
                if other.action > one.action {
                    other
                } else {
                    one
                }
            })
            .unwrap_or_else(|| {
                let reason = Cow::Borrowed("no path was given");
                Vote::new(Layer::Rules, Action::Deny, Why::Because(reason))
            })
    }

    /// What the rules of `op` say about a path as somebody typed it. A relative
    /// one starts at the working directory.
    ///
    /// # Errors
    ///
    /// [`PathError`] if it is no path.
    pub fn judge_text(&self, op: Op, text: &str) -> Result<Vote, PathError> {
        Ok(self.judge(op, &self.working_dir().join(text)?))
    }

    /// What `op` must leave out of its results: `ls`, `glob` or `grep`. Other
    /// operations have no results that anything could be left out of.
    ///
    /// Left out is what `op` denies. Of `ls` and `glob` also what a rule for
    /// reading denies and hides, unless an earlier rule allows it or asks. Of
    /// `grep` also what may not be read, and what a rule for reading asks about,
    /// because nobody gave the yes that showing it needs. The root cannot be left
    /// out of anything.
    pub fn exclude(&self, op: Op) -> Exclude {
        match op {
            Op::Ls => self.0.ls.clone(),
            Op::Glob => self.0.glob.clone(),
            Op::Grep => self.0.grep.clone(),
            _ => Exclude::none(),
        }
    }

    /// The most lenient answer that `op` can get for any target.
    pub fn best(&self, op: Op) -> Action {
        match (op, self.section(op)) {
            (Op::Execute, _) => self.commands().best(),
            (_, Some(section)) => section.best(),
            (_, None) => Action::Allow,
        }
    }

    /// The strongest answer that `op` could get for anything beneath `directory`,
    /// itself not included. It may be stronger than any path gets, but never
    /// weaker: what is [`Action::Allow`] here needs no look at each entry.
    pub fn protects_beneath(&self, op: Op, directory: &VPath) -> Action {
        self.section(op).map_or(Action::Allow, |section| {
            section.strongest_beneath(directory)
        })
    }

    /// What a word of a command with wildcards gets that could name something
    /// which `op` denies.
    pub(crate) fn denies_glob(
        &self,
        op: Op,
        glob: &str,
        inside: bool,
        work: &Work<'_>,
    ) -> Option<Vote> {
        let [read, write] = &self.0.denials;
        let denials = match op {
            Op::Write => write,
            _ => read,
        };
        denials.first(glob, work, |path| {
            let vote = self.judge_as(op, path, inside);
            (vote.action == Action::Deny).then_some(vote)
        })
    }

    /// The same for something that writing asks about.
    pub(crate) fn asks_glob(&self, glob: &str, work: &Work<'_>) -> Option<Vote> {
        self.0.questions.first(glob, work, |path| {
            let vote = self.judge(Op::Write, path);
            (vote.action == Action::Ask).then_some(vote)
        })
    }

    /// The rules for commands.
    pub fn commands(&self) -> &CommandPolicy {
        &self.0.commands
    }

    fn section(&self, op: Op) -> Option<&Section> {
        self.0.sections.get(op as usize)?.as_deref()
    }
}
