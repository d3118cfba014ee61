//! [`ToolsetBuilder`]: builds a [`Toolset`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use backend_core::{Enforcement, Quoted, VPath};
use backend_mounts::{MountConfig, Scope};
use permissions::approval::{ApprovalService, Approver, Grants};
use permissions::audit::Audit;
use permissions::tool::{Tool, ToolSettings};
use permissions::{Policy, Ruleset};

use super::build_error::BuildError;
use super::policy_source::{PolicyParts, PolicySource};
use super::registered_tool::RegisteredTool;
use super::{ApproverSource, Inner, Source, Toolset, builtin, description_overrides};
use crate::custom::CustomTool;
use crate::descriptions;
use crate::options::Options;
use crate::tool::ToolHandler;

/// Maximum length of a tool's name.
const NAME_CHARS: usize = 64;

/// Writes setters of fields, which may be options.
macro_rules! setters {
    ($($(#[$doc:meta])+ $field:ident: $type:ty,)+) => {$(
        $(#[$doc])+
        pub fn $field(mut self, $field: $type) -> Self {
            self.$field = $field.into();
            self
        }
    )+};
}

/// Builds a [`Toolset`].
#[derive(Debug)]
#[must_use]
pub struct ToolsetBuilder {
    source: Source,
    options: Options,
    policy: Option<Policy>,
    ruleset: Option<Ruleset>,
    tool_settings: Option<ToolSettings>,
    mounts: Option<MountConfig>,
    protected: Vec<VPath>,
    required: Enforcement,
    approver_source: ApproverSource,
    audit: Audit,
    entries: Vec<RegisteredTool>,
    custom: Vec<RegisteredTool>,
}

impl ToolsetBuilder {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            options: Options::default(),
            policy: None,
            ruleset: None,
            tool_settings: None,
            mounts: None,
            protected: Vec::new(),
            required: Enforcement::default(),
            approver_source: ApproverSource::None,
            audit: Audit::default(),
            entries: Vec::new(),
            custom: Vec::new(),
        }
    }

    setters! {
        /// Sets the options, which select the tools and their behaviour.
        options: Options,
        /// Sets the policy. The approvals of the options then have no effect. Relative
        /// patterns in it must start at the working directory of the backend.
        policy: Policy,
        /// Sets the rules, which are compiled for each backend's working directory. The
        /// approvals of the options then have no effect.
        ruleset: Ruleset,
        /// Sets the mounts. File tools cannot reach paths outside of them. The backend
        /// decides where their host directories appear.
        mounts: MountConfig,
        /// Sets the settings of individual tools.
        tool_settings: ToolSettings,
        /// Sets the audit that receives every decision.
        audit: Audit,
    }

    backend_core::setters! {
        /// Protects the files that the policy was loaded from: they cannot be changed,
        /// removed or moved, even if the policy allows it. See [`Policy::protecting`].
        fn protect(self, paths: impl IntoIterator<Item = VPath>) { self.protected.extend(paths); }

        /// Sets the lowest level at which the sandbox must keep paths that the policy denies
        /// from commands. Below it, or below the level that the policy requires, no command
        /// runs.
        fn require_enforcement(self, level: Enforcement) {
            self.required = self.required.max(level);
        }

        /// Sets the approver. Without one, calls that need approval are refused.
        fn approver(self, approver: impl Approver) {
            self.approver_source =
                ApproverSource::Own(ApprovalService::new(Arc::new(approver), Grants::new()));
        }

        /// Sets the approval service that receives the questions. A grant counts for the
        /// policy under which it was asked, unless the approval service was given the id of
        /// another policy.
        fn approval_service(self, service: ApprovalService) {
            self.approver_source = ApproverSource::Given(service);
        }
    }

    /// Adds a tool.
    pub fn tool<T: CustomTool>(mut self, tool: T) -> Self {
        self.custom.push(RegisteredTool::custom(tool));
        self
    }

    /// Adds a tool that is defined at run time.
    pub fn handler(mut self, handler: Arc<dyn ToolHandler>) -> Self {
        self.custom.push(RegisteredTool::handler(handler));
        self
    }

    /// Adds a tool of this crate that is not in the table.
    #[cfg(test)]
    pub(crate) fn builtin<T: crate::tool::Builtin>(mut self) -> Self {
        self.entries.push(RegisteredTool::builtin::<T>());
        self
    }

    /// Builds the toolset.
    ///
    /// # Errors
    ///
    /// Returns a [`BuildError`] that says what to change.
    pub fn build(mut self) -> Result<Toolset, BuildError> {
        let options = self.options;
        if self.entries.is_empty() {
            self.entries = builtin::entries(&options);
        }
        for entry in &mut self.entries {
            if let Some(tool) = entry.tool {
                descriptions::describe(&mut entry.definition, tool, &options);
            }
        }
        check_names(&self.custom)?;
        let customs = self.custom.iter().map(|entry| entry.name.to_string());
        let customs: Vec<String> = customs.collect();
        let is_made =
            self.ruleset.is_some() || self.tool_settings.is_some() || self.mounts.is_some();
        let policy_source = match self.policy {
            Some(_) if is_made => return Err(BuildError::TwoPolicies),
            Some(policy) => {
                let policy = policy.requiring(self.required);
                PolicySource::Policy(policy.protecting(self.protected))
            }
            None => PolicySource::Parts(Box::new(PolicyParts {
                ruleset: self.ruleset,
                settings: self.tool_settings.unwrap_or_default(),
                protected: self.protected,
                required: self.required,
                scope: match self.mounts {
                    Some(mounts) => Some(Scope::new(mounts.build()?)),
                    None => None,
                },
            })),
        };
        let mut entries = self.entries;
        entries.append(&mut self.custom);
        description_overrides::replace(&options, &customs, &mut entries)?;
        check_settings(policy_source.settings(), customs)?;
        let names = entries.iter().enumerate();
        let index: HashMap<Arc<str>, usize> = names
            .map(|(index, entry)| (Arc::clone(&entry.name), index))
            .collect();
        Ok(Toolset(Arc::new(Inner {
            source: self.source,
            options: Arc::new(options),
            policy_source,
            approver_source: self.approver_source,
            audit: self.audit,
            entries,
            index,
            policy: Mutex::default(),
            sets: Mutex::default(),
        })))
    }
}

fn check_names(custom: &[RegisteredTool]) -> Result<(), BuildError> {
    for (number, entry) in custom.iter().enumerate() {
        let quoted = || Quoted::new(&entry.name);
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let length = (1..=NAME_CHARS).contains(&entry.name.len());
        if !length || !entry.name.bytes().all(letter) {
            return Err(BuildError::InvalidName(quoted()));
        }
        // Reserved even if that tool is disabled, because settings for the name apply.
        let mut before = custom.iter().take(number);
        let taken = before.any(|other| other.name == entry.name);
        if taken || entry.name.parse::<Tool>().is_ok() {
            return Err(BuildError::Taken(quoted()));
        }
        if entry.operations.is_empty() {
            return Err(BuildError::NoOperations(quoted()));
        }
        let schema = &entry.definition.input_schema;
        if schema.get("type").and_then(|kind| kind.as_str()) != Some("object") {
            return Err(BuildError::NoObject(quoted()));
        }
    }
    Ok(())
}

/// Rejects unknown names, so that a misspelt denial does not go unnoticed.
fn check_settings(settings: &ToolSettings, valid: Vec<String>) -> Result<(), BuildError> {
    let known = |name: &&String| valid.contains(name) || name.parse::<Tool>().is_ok();
    let keys = settings.custom.keys();
    let unknown: Vec<String> = keys.filter(|name| !known(name)).cloned().collect();
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(BuildError::UnknownSetting { unknown, valid })
    }
}
