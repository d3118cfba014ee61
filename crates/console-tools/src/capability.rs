//! [`Capability`]: a toolset as part of an agent's specification.

use std::fmt;
use std::sync::Arc;

use backend_core::Backend;
use backend_mounts::MountConfig;
use permissions::approval::{Approver, ApproverMode};
use permissions::tool::ToolSettings;
use permissions::{Preset, Ruleset};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::options::Options;
use crate::resolver::Resolver;
use crate::toolset::{BuildError, Toolset, ToolsetBuilder};

/// A toolset as part of an agent's specification: its tools, permissions and approver.
/// Unknown fields and values are errors.
///
/// ```
/// use std::sync::Arc;
/// use backend_state::StateBackend;
/// use console_tools::Capability;
///
/// let capability = Capability::from_toml(
///     r#"
///     permissions = "readonly"
///     approver = "strict"
///
///     [options]
///     profile = "lean"
///
///     [tools.tools.grep]
///     action = "ask"
///     "#,
/// )?;
/// let toolset = capability.toolset(Arc::new(StateBackend::new()), None)?;
/// assert!(toolset.definitions().get("write_file").is_none());
///
/// let error = Capability::from_toml("permission = 'readonly'").unwrap_err();
/// assert!(error.to_string().contains("permission"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Capability {
    /// The permissions. Without them the approvals of the options apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    /// The mounts that file tools are confined to, in any form that [`MountConfig`] can
    /// be read from. Without them only `permissions` apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mounts: Option<MountConfig>,
    /// The approver.
    pub approver: ApproverMode,
    /// The options, which select the tools and their behaviour.
    pub options: Options,
    /// The settings of individual tools.
    pub tools: ToolSettings,
}

permissions::tables_only!(Capability);

/// The permissions: the name of a preset, or a whole ruleset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Permissions {
    /// A named ruleset.
    Preset(Preset),
    /// An explicit ruleset.
    Ruleset(Box<Ruleset>),
}

impl Permissions {
    /// Returns the rules.
    pub fn ruleset(&self) -> Ruleset {
        match self {
            Self::Preset(preset) => preset.ruleset(),
            Self::Ruleset(ruleset) => (**ruleset).clone(),
        }
    }
}

impl From<Preset> for Permissions {
    fn from(preset: Preset) -> Self {
        Self::Preset(preset)
    }
}

impl From<Ruleset> for Permissions {
    fn from(ruleset: Ruleset) -> Self {
        Self::Ruleset(Box::new(ruleset))
    }
}

impl<'de> Deserialize<'de> for Permissions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Permissions;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a preset or a ruleset")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Permissions, E> {
                name.parse().map(Permissions::Preset).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Permissions, A::Error> {
                let ruleset = Ruleset::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ruleset.into())
            }
        }
        from.deserialize_any(Either)
    }
}

/// The reason a text is not a valid capability, or a capability cannot be serialized.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid capability: {0}")]
pub struct CapabilityError(String);

impl Capability {
    /// Parses TOML.
    ///
    /// # Errors
    ///
    /// Returns a [`CapabilityError`] with the position for invalid TOML and for
    /// anything unknown.
    pub fn from_toml(text: &str) -> Result<Self, CapabilityError> {
        toml::from_str(text).map_err(|error| CapabilityError(error.to_string()))
    }

    /// Parses JSON.
    ///
    /// # Errors
    ///
    /// Returns a [`CapabilityError`] as [`from_toml`](Self::from_toml) does.
    pub fn from_json(text: &str) -> Result<Self, CapabilityError> {
        let mut json = serde_json::Deserializer::from_str(text);
        let read = serde_path_to_error::deserialize(&mut json);
        let read = read.map_err(|error| CapabilityError(error.to_string()))?;
        let end = json.end();
        end.map_err(|error| CapabilityError(error.to_string()))?;
        Ok(read)
    }

    /// Serializes the capability as TOML, which [`from_toml`](Self::from_toml) reads.
    ///
    /// # Errors
    ///
    /// Returns a [`CapabilityError`], although no capability is known to cause one.
    pub fn to_toml(&self) -> Result<String, CapabilityError> {
        toml::to_string(self).map_err(|error| CapabilityError(error.to_string()))
    }

    /// Builds the toolset on a backend. `approver` is used if the capability says that
    /// questions are asked.
    ///
    /// # Errors
    ///
    /// Returns a [`BuildError`] that says what to change.
    pub fn toolset(
        &self,
        backend: Arc<dyn Backend>,
        approver: Option<Arc<dyn Approver>>,
    ) -> Result<Toolset, BuildError> {
        self.apply(Toolset::builder(backend), approver).build()
    }

    /// Builds the toolset on the backends that a resolver picks.
    ///
    /// # Errors
    ///
    /// Returns a [`BuildError`] that says what to change.
    pub fn toolset_resolving(
        &self,
        resolver: Arc<dyn Resolver>,
        approver: Option<Arc<dyn Approver>>,
    ) -> Result<Toolset, BuildError> {
        self.apply(Toolset::resolving(resolver), approver).build()
    }

    /// Applies the capability to a builder, to which custom tools can still be added.
    pub fn apply(
        &self,
        builder: ToolsetBuilder,
        approver: Option<Arc<dyn Approver>>,
    ) -> ToolsetBuilder {
        let mut builder = builder
            .options(self.options.clone())
            .tool_settings(self.tools.clone())
            .approver(self.approver.approver(approver));
        if let Some(permissions) = &self.permissions {
            builder = builder.ruleset(permissions.ruleset());
        }
        if let Some(mounts) = &self.mounts {
            builder = builder.mounts(mounts.clone());
        }
        builder
    }
}
