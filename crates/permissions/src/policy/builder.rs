//! [`PolicyBuilder`]: assembles a [`Policy`].

use std::sync::Arc;

use backend_core::VPath;

use super::path_layer::{PathLayer, is};
use super::{Layers, Policy};
use crate::Ruleset;
use crate::rules::{LISTING, Rules};
use crate::tool::ToolSettings;

/// Builder for a [`Policy`].
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct PolicyBuilder(pub(super) Layers);

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
        self.0.paths.retain(|other| !is::<L>(other));
        self.0.paths.push(Arc::new(layer));
        self
    }

    /// Sets the settings of individual tools.
    pub fn tools(mut self, tools: ToolSettings) -> Self {
        self.0.tools = tools;
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
        Policy(Arc::new(self.0))
    }
}
