//! [`PolicyBuilder`]: assembles a [`Policy`].

use std::sync::Arc;

use backend_core::VPath;

use super::path_layer::{PathLayer, is};
use super::{Policy, Protected};
use crate::Ruleset;
use crate::rules::Rules;
use crate::tool::ToolSettings;

/// Builder for a [`Policy`].
#[derive(Debug, Clone, Default)]
pub struct PolicyBuilder {
    rules: Option<Rules>,
    paths: Vec<Arc<dyn PathLayer>>,
    tools: ToolSettings,
}

impl PolicyBuilder {
    /// Sets the rules. Their relative patterns start at `working_dir`, which must be the
    /// working directory of the backend to be guarded.
    #[must_use]
    pub fn ruleset(self, ruleset: &Ruleset, working_dir: &VPath) -> Self {
        self.rules(ruleset.compile(working_dir))
    }

    /// Sets rules that are already compiled.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = Some(rules);
        self
    }

    /// Adds a layer that judges by path, such as a scope of mounts. It replaces another
    /// layer of the same type.
    #[must_use]
    pub fn layer<L: PathLayer>(mut self, layer: L) -> Self {
        // Deriving narrows the only layer of a type. A second one would be lost then.
        self.paths.retain(|other| !is::<L>(other));
        self.paths.push(Arc::new(layer));
        self
    }

    /// Sets the settings of individual tools.
    #[must_use]
    pub fn tools(mut self, tools: ToolSettings) -> Self {
        self.tools = tools;
        self
    }

    /// Builds the policy.
    pub fn build(self) -> Policy {
        Policy::new(self.rules, self.paths, self.tools, Protected::default())
    }
}
