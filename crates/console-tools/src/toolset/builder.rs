//! Putting a [`Toolset`] together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use backend_core::{Quoted, VPath};
use permissions::approval::{Approver, Desk, Grants};
use permissions::audit::Audit;
use permissions::mounts::{MountConfig, MountError, Scope};
use permissions::tool::{Tool, ToolSettings};
use permissions::{Policy, Ruleset};

use super::entry::Entry;
use super::ground::{Law, Made};
use super::{Inner, Source, Toolset, Who, builtin, descriptions};
use crate::{CustomTool, Options, ToolHandler, texts};

/// Longest name of a tool.
const NAME_CHARS: usize = 64;

/// Why there is no toolset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A description for a tool that there is not.
    #[error("descriptions are given for {}, which no tool is called; the tools are {}",
        .unknown.join(", "), .valid.join(", "))]
    #[non_exhaustive]
    UnknownDescription {
        /// The names.
        unknown: Vec<String>,
        /// Those that there are.
        valid: Vec<String>,
    },
    /// A description for an argument that a tool does not have.
    #[error("a description is given for {}, which is no argument of {tool}; its arguments are {}",
        Quoted::new(.argument), or_none(.valid))]
    #[non_exhaustive]
    UnknownArgument {
        /// The tool.
        tool: String,
        /// What it does not have; with dots, if it lies within another.
        argument: String,
        /// Those that there are.
        valid: Vec<String>,
    },
    /// Settings for a custom tool that there is not.
    #[error("something is set for {}, which no custom tool is called; the custom tools are {}",
        .unknown.join(", "), or_none(.valid))]
    #[non_exhaustive]
    UnknownSetting {
        /// The names.
        unknown: Vec<String>,
        /// Those that there are.
        valid: Vec<String>,
    },
    /// A custom tool's name is none.
    #[error("{0} is no name for a tool; use 1 to 64 of the letters a-z, A-Z, digits, '_' and '-'")]
    InvalidName(Quoted),
    /// A custom tool has the name of another tool.
    #[error("another tool is called {0}; give one of them another name")]
    Taken(Quoted),
    /// A custom tool stands for no operation.
    #[error("the tool {0} stands for no operation and nobody could judge it; name what it does")]
    NoOperations(Quoted),
    /// The arguments of a custom tool are no object.
    #[error("the arguments of the tool {0} are no object; make its schema one of type 'object'")]
    NoObject(Quoted),
    /// A policy is given, and what would make another one.
    #[error(
        "a policy is given, and rules, mounts or tool settings besides; put them into the policy"
    )]
    TwoPolicies,
    /// The mounts do not fit together.
    #[error("the mounts are wrong: {0}")]
    Mounts(#[from] MountError),
}

fn or_none(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

/// Puts a [`Toolset`] together.
#[derive(Debug)]
#[must_use]
pub struct ToolsetBuilder {
    source: Source,
    options: Options,
    policy: Option<Policy>,
    ruleset: Option<Ruleset>,
    settings: Option<ToolSettings>,
    mounts: Option<MountConfig>,
    protected: Vec<VPath>,
    who: Who,
    audit: Audit,
    entries: Vec<Entry>,
    custom: Vec<Entry>,
}

impl ToolsetBuilder {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            options: Options::default(),
            policy: None,
            ruleset: None,
            settings: None,
            mounts: None,
            protected: Vec::new(),
            who: Who::Nobody,
            audit: Audit::default(),
            entries: Vec::new(),
            custom: Vec::new(),
        }
    }

    /// Sets which tools there are and how they behave.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the policy. The options' approvals then count no more. Relative
    /// patterns in it must start at the working directory of the backend.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Sets the rules, compiled for each backend's working directory. The
    /// options' approvals then count no more.
    pub fn ruleset(mut self, ruleset: Ruleset) -> Self {
        self.ruleset = Some(ruleset);
        self
    }

    /// Sets the mounts: what lies in none cannot be reached by file tools. Where
    /// their host directories show on the backend is up to the backend.
    pub fn mounts(mut self, mounts: MountConfig) -> Self {
        self.mounts = Some(mounts);
        self
    }

    /// Protects the files that the policy came from, whatever the policy says: they can
    /// be neither changed nor removed nor moved. See [`Policy::protecting`].
    pub fn protect(mut self, paths: impl IntoIterator<Item = VPath>) -> Self {
        self.protected.extend(paths);
        self
    }

    /// Sets what is set for single tools.
    pub fn tool_settings(mut self, settings: ToolSettings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Sets who is asked. Without anybody, what must be asked is refused.
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.who = Who::Own(Desk::new(Arc::new(approver), Grants::new()));
        self
    }

    /// Sets the desk where questions are brought. What is granted there counts
    /// for the policy under which it was asked, unless the desk was told another
    /// policy's id.
    pub fn desk(mut self, desk: Desk) -> Self {
        self.who = Who::Given(desk);
        self
    }

    /// Sets who is told of every decision.
    pub fn audit(mut self, audit: Audit) -> Self {
        self.audit = audit;
        self
    }

    /// Adds a tool.
    pub fn tool<T: CustomTool>(mut self, tool: T) -> Self {
        self.custom.push(Entry::custom(tool));
        self
    }

    /// Adds a tool that is known only now.
    pub fn handler(mut self, handler: Arc<dyn ToolHandler>) -> Self {
        self.custom.push(Entry::handler(handler));
        self
    }

    /// Adds a tool of this crate that the table does not have.
    #[cfg(test)]
    pub(crate) fn builtin<T: crate::tool::Builtin>(mut self) -> Self {
        self.entries.extend(Entry::builtin::<T>());
        self
    }

    /// The toolset.
    ///
    /// # Errors
    ///
    /// [`BuildError`], which says what to change.
    pub fn build(mut self) -> Result<Toolset, BuildError> {
        let options = self.options;
        if self.entries.is_empty() {
            self.entries = builtin::entries(&options);
        }
        for entry in &mut self.entries {
            if let Some(tool) = entry.tool {
                texts::describe(&mut entry.definition, tool, &options);
            }
        }
        check_names(&self.custom)?;
        let customs = self.custom.iter().map(|entry| entry.name.to_string());
        let customs: Vec<String> = customs.collect();
        let is_made = self.ruleset.is_some() || self.settings.is_some() || self.mounts.is_some();
        let law = match self.policy {
            Some(_) if is_made => return Err(BuildError::TwoPolicies),
            Some(policy) => Law::Policy(policy.protecting(self.protected)),
            None => Law::Made(Box::new(Made {
                ruleset: self.ruleset,
                settings: self.settings.unwrap_or_default(),
                protected: self.protected,
                scope: match self.mounts {
                    Some(mounts) => Some(Scope::new(mounts.build()?)),
                    None => None,
                },
            })),
        };
        let mut entries = self.entries;
        entries.append(&mut self.custom);
        descriptions::replace(&options, &customs, &mut entries)?;
        check_settings(law.settings(), customs)?;
        let names = entries.iter().enumerate();
        let index: HashMap<Arc<str>, usize> = names
            .map(|(index, entry)| (Arc::clone(&entry.name), index))
            .collect();
        Ok(Toolset(Arc::new(Inner {
            source: self.source,
            options: Arc::new(options),
            law,
            who: self.who,
            audit: self.audit,
            entries,
            index,
            policy: Mutex::default(),
            sets: Mutex::default(),
        })))
    }
}

fn check_names(custom: &[Entry]) -> Result<(), BuildError> {
    for (number, entry) in custom.iter().enumerate() {
        let quoted = || Quoted::new(&entry.name);
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let length = (1..=NAME_CHARS).contains(&entry.name.len());
        if !length || !entry.name.bytes().all(letter) {
            return Err(BuildError::InvalidName(quoted()));
        }
        // Also if the tool of that name is not there: what is set for it counts.
        let before = custom.iter().take(number);
        let taken = before
            .map(|entry| &entry.name)
            .any(|name| *name == entry.name);
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

/// A misspelt denial must not go unnoticed.
fn check_settings(settings: &ToolSettings, valid: Vec<String>) -> Result<(), BuildError> {
    let known = |name: &&String| valid.contains(name) || name.parse::<Tool>().is_ok();
    let keys = settings.custom.keys();
    let unknown: Vec<String> = keys.filter(|name| !known(name)).cloned().collect();
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(BuildError::UnknownSetting { unknown, valid }),
    }
}
