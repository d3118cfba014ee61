//! [`PolicyBuilder`]: assembles a [`Policy`].

use backend_core::VPath;

use super::{Policy, Protected};
use crate::Ruleset;
use crate::mounts::Scope;
use crate::rules::Rules;
use crate::tool::ToolSettings;

/// Builder for a [`Policy`].
#[derive(Debug, Clone, Default)]
pub struct PolicyBuilder {
    rules: Option<Rules>,
    scope: Option<Scope>,
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

    /// Sets the mounts, or a scope derived from them.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = Some(scope);
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
        Policy::new(self.rules, self.scope, self.tools, Protected::default())
    }
}
