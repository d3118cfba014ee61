//! Settings of individual tools, in addition to the rules for their operations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Tool;
use crate::{Action, Layer, Reason, Vote};

/// The settings of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ToolSetting {
    /// The weakest action that any call of the tool gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// Whether calls that would need approval count as approved. Denials still apply.
    pub pre_approved: bool,
}

impl ToolSetting {
    /// Creates a setting with the weakest action that any call gets.
    pub fn action(action: Action) -> Self {
        Self {
            action: Some(action),
            ..Self::default()
        }
    }

    /// Creates a setting under which calls that would need approval count as approved.
    pub fn pre_approved() -> Self {
        Self {
            action: None,
            pre_approved: true,
        }
    }
}

/// The settings of individual tools. A name under `tools` that is not a [`Tool`] is an
/// error, so that a misspelt denial does not go unnoticed.
///
/// ```
/// use permissions::tool::ToolSettings;
/// let json = r#"{ "tools": { "execute": { "action": "ask" } },
///                 "custom": { "deploy": { "action": "deny" } } }"#;
/// let settings: ToolSettings = serde_json::from_str(json)?;
/// assert!(settings.get("execute").action.is_some());
/// assert!(serde_json::from_str::<ToolSettings>(r#"{"tools":{"excute":{}}}"#).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ToolSettings {
    /// Settings of this workspace's tools.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<Tool, ToolSetting>,
    /// Settings of custom tools, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub custom: BTreeMap<String, ToolSetting>,
}

impl ToolSettings {
    backend_core::setters! {
        /// Sets the setting for `tool`.
        fn with(self, tool: Tool, setting: ToolSetting) { self.tools.insert(tool, setting); }

        /// Sets the setting for a custom tool.
        fn with_custom(self, name: impl Into<String>, setting: ToolSetting) {
            self.custom.insert(name.into(), setting);
        }
    }

    /// Returns the settings of the tool with this name. If both tables name it, the stronger
    /// action wins, and it is pre-approved only if both say so.
    pub fn get(&self, name: &str) -> ToolSetting {
        let known = name.parse::<Tool>().ok();
        let known = known.and_then(|tool| self.tools.get(&tool));
        match (known, self.custom.get(name)) {
            (Some(one), Some(two)) => ToolSetting {
                action: one.action.max(two.action),
                pre_approved: one.pre_approved && two.pre_approved,
            },
            (Some(one), None) | (None, Some(one)) => *one,
            (None, None) => ToolSetting::default(),
        }
    }
}

impl ToolSetting {
    /// Returns the tool's vote, if an action is set.
    pub(crate) fn vote(self) -> Option<Vote> {
        let action = self.action?;
        let why = Reason::Text("the tool's setting".into());
        Some(Vote::new(Layer::Tool, action, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_real_bool_approves() {
        let read = |json: &str| serde_json::from_str::<ToolSettings>(json);
        assert!(read(r#"{"tools":{"ls":{"pre_approved":true}}}"#).is_ok());
        for bad in [
            r#"{"tools":{"ls":{"pre_approved":"no"}}}"#,
            r#"{"tools":{"ls":{"pre_approved":1}}}"#,
            r#"{"tools":{"ls":{"approved":true}}}"#,
            r#"{"tools":{"list":{}}}"#,
            r#"{"tool":{}}"#,
            r#"{"tools":{"ls":{"action":"maybe"}}}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn two_entries_for_one_name_both_count() {
        let settings = ToolSettings::default()
            .with(Tool::Execute, ToolSetting::pre_approved())
            .with_custom("execute", ToolSetting::action(Action::Deny));
        let both = settings.get("execute");
        assert_eq!(both, ToolSetting::action(Action::Deny));
        let json = serde_json::to_string(&settings).unwrap();
        assert_eq!(
            serde_json::from_str::<ToolSettings>(&json).unwrap(),
            settings
        );
    }
}
