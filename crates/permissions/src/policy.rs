//! [`Policy`]: all layers, judged together.

mod judge_command;
mod kept;
mod protected;

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use backend_core::ops::{ContentHash, HardLinks};
use backend_core::search::Exclude;
use backend_core::{Enforcement, VPath};

pub use judge_command::CommandJudgement;
pub(crate) use judge_command::refusal;
use kept::{Demands, Views};
use protected::Protected;

use crate::rules::{LISTING, Rules};
use crate::tool::ToolSettings;
use crate::{Action, Kind, Layer, Op, OpClass, Ruleset, Verdict, Vote};

/// The layers in force. An absent layer objects to nothing. Cloning is cheap.
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
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Policy(Arc<Layers>);

#[derive(Debug, Clone, Default)]
struct Layers {
    rules: Option<Rules>,
    paths: Vec<Arc<dyn PathLayer>>,
    tools: ToolSettings,
    protected: Protected,
    /// The entries that each of [`LISTING`] leaves out.
    excludes: [Exclude; LISTING.len()],
    demands: Demands,
    /// Computed for the first command.
    views: OnceLock<Views>,
}

impl Policy {
    /// Returns a builder for a policy.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }

    /// Creates a policy without any layer.
    pub fn allow_all() -> Self {
        Self::default()
    }

    fn to_builder(&self) -> PolicyBuilder {
        PolicyBuilder(Layers::clone(&self.0))
    }

    /// Returns the rules, if any.
    pub fn rules(&self) -> Option<&Rules> {
        self.0.rules.as_ref()
    }

    /// Returns the layer of this type, such as the scope of mounts, if any.
    pub fn layer<L: PathLayer>(&self) -> Option<&L> {
        let mut layers = self.0.paths.iter();
        layers.find_map(|layer| (&**layer as &dyn Any).downcast_ref())
    }

    /// Returns whether any layer besides the rules judges by path.
    pub(crate) fn has_path_layer(&self) -> bool {
        !self.0.paths.is_empty()
    }

    /// Returns the settings of individual tools.
    pub fn tools(&self) -> &ToolSettings {
        &self.0.tools
    }

    /// Returns the same policy with another layer of this type.
    pub fn with_layer<L: PathLayer>(&self, layer: L) -> Self {
        self.to_builder().layer(layer).build()
    }

    /// Returns the same policy with other tool settings.
    pub fn with_tools(&self, tools: ToolSettings) -> Self {
        self.to_builder().tools(tools).build()
    }

    /// Returns the same policy with `paths` protected. These files, such as the rules,
    /// the configuration, the saved grants or the log, cannot be changed, removed or
    /// moved, and the directories above them cannot be removed or moved. For commands,
    /// this applies to the paths they name. A path may be one on the backend or the one
    /// that commands use for the same file.
    pub fn protecting(&self, paths: impl IntoIterator<Item = VPath>) -> Self {
        let mut builder = self.to_builder();
        builder.0.protected.add(paths);
        builder.build()
    }

    /// Returns the same policy, under which commands run only in a sandbox whose level is
    /// at least `level`, or the one required before if that is higher.
    pub fn requiring(&self, level: Enforcement) -> Self {
        self.to_builder().require_enforcement(level).build()
    }

    /// Returns whether any layer judges by path.
    pub(crate) fn judges_paths(&self) -> bool {
        self.0.rules.is_some() || self.has_path_layer() || !self.0.protected.is_empty()
    }

    /// Returns the verdict of every layer about an access to a path. Judges `op` alone;
    /// use [`Intent`](crate::access::Intent) to split a call into its operations. `bytes`
    /// is the size that the file has or is to have, if known.
    ///
    /// Move and copy are judged by their own rule sections alone. The reads, writes and
    /// deletes that they consist of are judged by all layers.
    pub fn judge(&self, op: Op, path: &VPath, kind: Kind, bytes: Option<u64>) -> Verdict {
        let verdict = self.judge_unprotected(op, path, kind, bytes, false);
        match self.0.protected.judge(op, path) {
            Some(vote) => verdict.and(vote),
            None => verdict,
        }
    }

    /// Like [`judge`](Self::judge), but without the protected files. For a path that a
    /// command names, the use is less certain, so [`Protected::judge_command`] judges it.
    /// `inside` has the meaning it has in [`NamedPath`](crate::command::NamedPath).
    fn judge_unprotected(
        &self,
        op: Op,
        path: &VPath,
        kind: Kind,
        bytes: Option<u64>,
        inside: bool,
    ) -> Verdict {
        let mut verdict: Verdict = match self.rules_for(op) {
            Some(rules) => rules.judge_as(op, path, inside).into(),
            None => Vote::abstain(Layer::Rules).into(),
        };
        // Reading the root means searching it, which leaves unreadable entries out.
        let searched = op == Op::Read && kind == Kind::Directory && path.is_root();
        if !searched && !matches!(op, Op::Move | Op::Copy) {
            for layer in &self.0.paths {
                verdict = verdict.and_all(layer.judge(op, path, kind, bytes));
            }
        }
        verdict
    }

    /// Returns the verdict about connecting to a port.
    pub fn judge_port(&self, port: u16) -> Verdict {
        match self.rules() {
            Some(rules) => rules.judge_port(port).into(),
            None => Vote::abstain(Layer::Rules).into(),
        }
    }

    /// Returns the verdict of the rules about opening a terminal, or attaching to a shell.
    /// The command that runs there is judged by [`judge_command`](Self::judge_command).
    pub fn judge_terminal(&self) -> Verdict {
        match self.rules() {
            Some(rules) => rules.judge(Op::Terminal, &VPath::root()).into(),
            None => Vote::abstain(Layer::Rules).into(),
        }
    }

    /// Explains the verdict about an access to a path, one vote per line.
    pub fn explain(&self, op: Op, path: &VPath) -> String {
        let verdict = self.judge(op, path, Kind::File, None);
        format!("{op} {path}: {}\n{verdict}", verdict.action())
    }

    /// Returns the rules, if they apply to `op`.
    fn rules_for(&self, op: Op) -> Option<&Rules> {
        let rules = self.0.rules.as_ref()?;
        let silent = matches!(op, Op::Move | Op::Copy) && rules.ruleset().section(op).is_none();
        (!silent).then_some(rules)
    }

    /// Returns the most lenient action that `op` can get for any target.
    pub fn most_lenient(&self, op: Op) -> Action {
        let by_rules = self.rules_for(op).map(|rules| rules.most_lenient(op));
        let layers = self.0.paths.iter();
        let by_path = layers.map(|layer| layer.most_lenient(op)).max();
        by_rules.max(by_path).unwrap_or(Action::Allow)
    }

    /// Returns the strongest action of any entry beneath `dir`, or a stronger one.
    pub(crate) fn strongest_beneath(&self, op: Op, dir: &VPath) -> Action {
        let by_rules = self
            .rules_for(op)
            .map(|rules| rules.strongest_beneath(op, dir));
        let layers = self.0.paths.iter();
        let by_path = layers.map(|layer| layer.strongest_beneath(op, dir)).max();
        let by_path = by_path.filter(|_| !matches!(op, Op::Move | Op::Copy));
        let by_own = self.0.protected.is_beneath(op, dir).then_some(Action::Deny);
        by_rules.max(by_path).max(by_own).unwrap_or(Action::Allow)
    }

    /// Returns the maximum size of a file at `path`.
    pub fn max_file_bytes(&self, path: &VPath) -> Option<u64> {
        let layers = self.0.paths.iter();
        layers.filter_map(|layer| layer.max_file_bytes(path)).min()
    }

    /// Returns the entries that `ls`, `glob` or `grep` must leave out of its results,
    /// once the questions raised by [`judge`](Self::judge) are answered.
    pub fn exclude(&self, op: Op) -> &Exclude {
        const NONE: &Exclude = &Exclude::none();
        let at = LISTING.iter().position(|listing| *listing == op);
        at.and_then(|at| self.0.excludes.get(at)).unwrap_or(NONE)
    }

    /// Returns an id for the policy. Equal layers have equal ids, in every process.
    pub fn id(&self) -> String {
        let rules = self.rules().map(Rules::id).unwrap_or_default();
        let paths: Vec<String> = self.0.paths.iter().map(|layer| layer.id()).collect();
        let tools = serde_json::to_string(&self.0.tools).unwrap_or_default();
        let mut text = format!("{rules}\n{}\n{tools}", paths.join("\n"));
        if !self.0.protected.is_empty() {
            text.push('\n');
            text.push_str(&self.0.protected.names());
        }
        if self.0.demands != Demands::default() {
            text.push_str(&format!("\n{:?}", self.0.demands));
        }
        ContentHash::of(text.as_bytes()).to_string()
    }
}

/// A layer of a [`Policy`] that judges accesses by path, beside the rules.
/// `backend-mounts` has one. A layer never weakens another: the strongest verdict counts.
pub trait PathLayer: Any + fmt::Debug + Send + Sync {
    /// Returns the verdict about an access to a path. `bytes` is the size that the file
    /// has or is to have, if known.
    fn judge(&self, op: Op, path: &VPath, kind: Kind, bytes: Option<u64>) -> Verdict;

    /// Returns the most lenient action that `op` can get for any path.
    fn most_lenient(&self, op: Op) -> Action;

    /// Returns the strongest action that `op` could get for an entry beneath `directory`.
    /// It may be too strong, but never too weak.
    fn strongest_beneath(&self, op: Op, directory: &VPath) -> Action;

    /// Returns the maximum size of a file at `path`.
    fn max_file_bytes(&self, path: &VPath) -> Option<u64>;

    /// Returns the entries that `ls`, `glob` or `grep` must leave out of its results, once
    /// the questions raised by [`judge`](Self::judge) are answered.
    fn exclude(&self, op: Op) -> Exclude;

    /// Returns the paths that may not be read, or not be changed, so that a sandbox can
    /// keep them from commands. They include those that do not exist, and never the root.
    fn denied(&self, class: OpClass) -> Exclude;

    /// Returns an id. Equal layers have equal ids, in every process.
    fn id(&self) -> String;
}

/// Builder for a [`Policy`].
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct PolicyBuilder(Layers);

impl PolicyBuilder {
    /// Sets the rules. Their relative patterns start at `working_dir`, which must be the
    /// working directory of the backend to be guarded.
    pub fn ruleset(self, ruleset: &Ruleset, working_dir: &VPath) -> Self {
        self.rules(ruleset.compile(working_dir))
    }

    /// Sets rules that are already compiled.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.0.rules = Some(rules);
        self
    }

    /// Adds a layer that judges by path, such as a scope. It replaces one of its type.
    pub fn layer<L: PathLayer>(mut self, layer: L) -> Self {
        // Deriving narrows the only layer of a type. A second one would be lost then.
        let is_other = |layer: &Arc<dyn PathLayer>| !(&**layer as &dyn Any).is::<L>();
        self.0.paths.retain(is_other);
        self.0.paths.push(Arc::new(layer));
        self
    }

    /// Sets the settings of individual tools.
    pub fn tools(mut self, tools: ToolSettings) -> Self {
        self.0.tools = tools;
        self
    }

    /// Sets the lowest level at which the sandbox must keep denied paths from commands. If
    /// it cannot, commands are refused. A higher level in the rules counts.
    pub fn require_enforcement(mut self, level: Enforcement) -> Self {
        self.0.demands.level = self.0.demands.level.max(level);
        self
    }

    /// Sets the answer to a denied file that has another name, which commands may reach
    /// under it. If the rules have another answer, [`HardLinks::Refuse`] counts.
    pub fn hard_links(mut self, answer: HardLinks) -> Self {
        self.0.demands.hard_links = Some(answer);
        self
    }

    /// Builds the policy.
    pub fn build(mut self) -> Policy {
        let exclude = |op| {
            let by_rules = self.0.rules.as_ref().map(|rules| rules.exclude(op));
            let by_path = self.0.paths.iter().map(|layer| layer.exclude(op));
            by_path.fold(by_rules.unwrap_or_default(), |all, more| all.and(&more))
        };
        self.0.excludes = LISTING.map(exclude);
        self.0.views = OnceLock::new();
        Policy(Arc::new(self.0))
    }
}

#[cfg(test)]
mod tests;
