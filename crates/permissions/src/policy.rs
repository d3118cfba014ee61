//! [`Policy`]: every layer, asked together.

mod builder;
mod command;
mod protected;

use std::sync::Arc;

use backend_core::VPath;
use backend_core::ops::ContentHash;
use backend_core::search::Exclude;

pub use builder::PolicyBuilder;
pub use command::CommandJudgement;
pub(crate) use command::refusal;
use protected::Protected;

use crate::mounts::Scope;
use crate::rules::Rules;
use crate::tool::ToolSettings;
use crate::{Action, Kind, Layer, Op, Verdict, Vote};

/// The layers that are in force. A layer that is absent has nothing against
/// anything. Cloning is cheap.
///
/// ```
/// use backend_core::VPath;
/// use permissions::{Action, Kind, Op, Policy, Preset};
///
/// let here = VPath::root();
/// let policy = Policy::builder()
///     .ruleset(&Preset::Permissive.ruleset(), &here)
///     .build();
/// let verdict = policy.judge(Op::Read, &VPath::parse("/app/.env")?, Kind::File, None);
/// assert_eq!(verdict.action(), Action::Deny);
/// # Ok::<(), backend_core::PathError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Policy(Arc<Layers>);

#[derive(Debug)]
struct Layers {
    rules: Option<Rules>,
    scope: Option<Scope>,
    tools: ToolSettings,
    protected: Protected,
    /// What `ls`, `glob` and `grep` leave out.
    excludes: [Exclude; 3],
}

impl Policy {
    /// Puts a policy together.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }

    /// No layer at all.
    pub fn allow_all() -> Self {
        Self::builder().build()
    }

    fn new(
        rules: Option<Rules>,
        scope: Option<Scope>,
        tools: ToolSettings,
        protected: Protected,
    ) -> Self {
        let exclude = |op| {
            let by_rules = rules.as_ref().map(|rules| rules.exclude(op));
            // A search that covers a mount which asks is itself asked about.
            let by_scope = scope.as_ref();
            let by_scope = by_scope.map(|scope| scope.exclude_granted(op, |_| true));
            by_rules
                .unwrap_or_default()
                .and(&by_scope.unwrap_or_default())
        };
        let excludes = [Op::Ls, Op::Glob, Op::Grep].map(exclude);
        Self(Arc::new(Layers {
            rules,
            scope,
            tools,
            protected,
            excludes,
        }))
    }

    /// The rules, if there are any.
    pub fn rules(&self) -> Option<&Rules> {
        self.0.rules.as_ref()
    }

    /// What is left of the mounts, if there are any.
    pub fn scope(&self) -> Option<&Scope> {
        self.0.scope.as_ref()
    }

    /// What is set for single tools.
    pub fn tools(&self) -> &ToolSettings {
        &self.0.tools
    }

    /// The same policy with another scope.
    #[must_use]
    pub fn with_scope(&self, scope: Scope) -> Self {
        let layers = &self.0;
        Self::new(
            layers.rules.clone(),
            Some(scope),
            layers.tools.clone(),
            layers.protected.clone(),
        )
    }

    /// The same policy with other settings of tools.
    #[must_use]
    pub fn with_tools(&self, tools: ToolSettings) -> Self {
        let layers = &self.0;
        Self::new(
            layers.rules.clone(),
            layers.scope.clone(),
            tools,
            layers.protected.clone(),
        )
    }

    /// The same policy, under which these files cannot be changed, removed or moved, nor
    /// the directories that they lie in removed or moved: the rules, the configuration,
    /// what was granted, the log. Commands are held to it by the paths they name. A path
    /// may be that of a file on the backend, or the one by which commands know it.
    #[must_use]
    pub fn protecting(&self, paths: impl IntoIterator<Item = VPath>) -> Self {
        let layers = &self.0;
        let mut protected = layers.protected.clone();
        protected.add(paths);
        Self::new(
            layers.rules.clone(),
            layers.scope.clone(),
            layers.tools.clone(),
            protected,
        )
    }

    /// Whether there are files that it protects.
    pub(crate) fn protects(&self) -> bool {
        !self.0.protected.is_empty()
    }

    /// Whether something is judged by its path.
    pub(crate) fn judges_paths(&self) -> bool {
        self.0.rules.is_some() || self.0.scope.is_some() || self.protects()
    }

    /// What every layer says about an access to a path. Of `op` alone: what a
    /// call is made of, [`Intent`](crate::access::Intent) says. `bytes` is the
    /// size that the file has or is to have, where that is known.
    ///
    /// Move and copy are judged by their own sections alone: the reads, writes
    /// and deletes that they are made of are judged by everybody.
    pub fn judge(&self, op: Op, path: &VPath, kind: Kind, bytes: Option<u64>) -> Verdict {
        let verdict = self.judge_unprotected(op, path, kind, bytes, false);
        match self.0.protected.judge(op, path) {
            Some(vote) => verdict.and(vote),
            None => verdict,
        }
    }

    /// The same, but for the files that it came from: what is done to a path that a command
    /// names is less clear, and judged by [`Protected::judge_command`].
    /// `inside` as in [`NamedPath`](crate::command::NamedPath).
    fn judge_unprotected(
        &self,
        op: Op,
        path: &VPath,
        kind: Kind,
        bytes: Option<u64>,
        inside: bool,
    ) -> Verdict {
        let verdict: Verdict = match self.ruling(op) {
            Some(rules) => rules.judge_as(op, path, inside).into(),
            None => Vote::neutral(Layer::Rules).into(),
        };
        // Reading the root is searching it, and what a search finds there is left
        // out if it may not be read.
        let searched = op == Op::Read && kind == Kind::Directory && path.is_root();
        match &self.0.scope {
            Some(scope) if !searched && !matches!(op, Op::Move | Op::Copy) => {
                verdict.and_all(scope.judge(op, path, kind, bytes))
            }
            _ => verdict,
        }
    }

    /// What every layer says about several spellings of one path: the strongest
    /// answer that any of them gets.
    pub fn judge_spellings(
        &self,
        op: Op,
        spellings: &[&VPath],
        kind: Kind,
        bytes: Option<u64>,
    ) -> Verdict {
        let mut verdict = Verdict::from(Vote::neutral(Layer::Rules));
        for path in spellings {
            verdict = verdict.and_all(self.judge(op, path, kind, bytes));
        }
        verdict
    }

    /// Why an access to a path gets the answer it gets, one vote a line.
    pub fn explain(&self, op: Op, path: &VPath) -> String {
        let verdict = self.judge(op, path, Kind::File, None);
        format!("{op} {path}: {}\n{verdict}", verdict.action())
    }

    /// The rules, if they have something to say about `op`.
    fn ruling(&self, op: Op) -> Option<&Rules> {
        let rules = self.0.rules.as_ref()?;
        let silent = matches!(op, Op::Move | Op::Copy) && rules.ruleset().section(op).is_none();
        (!silent).then_some(rules)
    }

    /// The most lenient answer that `op` can get for any target.
    pub fn best(&self, op: Op) -> Action {
        let by_rules = self.ruling(op).map(|rules| match op {
            Op::Execute => rules.commands().best(),
            op => rules.best(op),
        });
        let by_scope = self.0.scope.as_ref().map(|scope| scope.best(op));
        by_rules.max(by_scope).unwrap_or(Action::Allow)
    }

    /// The strongest answer that something beneath `dir` could get. It may be
    /// too strong, never too weak.
    pub(crate) fn protects_beneath(&self, op: Op, dir: &VPath) -> Action {
        let by_rules = self.ruling(op).map(|rules| rules.protects_beneath(op, dir));
        let by_scope = match &self.0.scope {
            Some(scope) if !matches!(op, Op::Move | Op::Copy) => {
                Some(scope.protects_beneath(op, dir))
            }
            _ => None,
        };
        let by_own = self.0.protected.is_beneath(op, dir).then_some(Action::Deny);
        by_rules.max(by_scope).max(by_own).unwrap_or(Action::Allow)
    }

    /// The largest file that may stand at `path`.
    pub fn max_file_bytes(&self, path: &VPath) -> Option<u64> {
        self.0.scope.as_ref()?.max_file_bytes(path)
    }

    /// What `ls`, `glob` or `grep` must leave out of its results, once what
    /// [`judge`](Self::judge) asks about it is answered.
    pub fn exclude(&self, op: Op) -> &Exclude {
        const NONE: &Exclude = &Exclude::none();
        let [ls, glob, grep] = &self.0.excludes;
        match op {
            Op::Ls => ls,
            Op::Glob => glob,
            Op::Grep => grep,
            _ => NONE,
        }
    }

    /// Names the policy: equal layers have equal ids, in every process.
    pub fn id(&self) -> String {
        let rules = self.0.rules.as_ref().map(|rules| rules.id().to_string());
        let scope = self.0.scope.as_ref().map(|scope| scope.id().to_string());
        let tools = serde_json::to_string(&self.0.tools).unwrap_or_default();
        let mut text = format!(
            "{}\n{}\n{tools}",
            rules.unwrap_or_default(),
            scope.unwrap_or_default()
        );
        if !self.0.protected.is_empty() {
            text.push('\n');
            text.push_str(&self.0.protected.names());
        }
        ContentHash::of(text.as_bytes()).to_string()
    }
}

impl Default for Policy {
    /// No layer at all.
    fn default() -> Self {
        Self::allow_all()
    }
}

#[cfg(test)]
#[path = "policy/policy_tests.rs"]
mod tests;
