//! [`Capability`]: a toolset as part of an agent's specification.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use backend_core::{Backend, Error};
use permissions::approval::{Approver, ApproverMode};
use permissions::mounts::MountConfig;
use permissions::tool::ToolSettings;
use permissions::{Preset, Ruleset};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::table::tables_only;
use crate::{BuildError, Caller, Definition, Options, Resolver, Toolset, ToolsetBuilder, prompt};

/// A toolset as part of an agent's specification: what it offers, what it may do,
/// and who is asked. Nothing that is not understood is passed over.
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
    /// What is allowed; without it the options' approvals count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    /// The mounts that file tools are confined to, in any form that
    /// [`MountConfig`] is read from; without them only `permissions` count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mounts: Option<MountConfig>,
    /// Who is asked.
    pub approver: ApproverMode,
    /// Which tools there are, and how they behave.
    pub options: Options,
    /// What is set for single tools.
    pub tools: ToolSettings,
}

tables_only!(Capability);

/// What is allowed: the name of a preset, or a whole ruleset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permissions {
    /// Rules with a name.
    Preset(Preset),
    /// Rules, written out.
    Ruleset(Box<Ruleset>),
}

impl Permissions {
    /// The rules.
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

impl Serialize for Permissions {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Preset(preset) => preset.serialize(to),
            Self::Ruleset(ruleset) => ruleset.serialize(to),
        }
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

/// Why a text is no capability, or cannot be written as one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the capability is wrong: {0}")]
pub struct CapabilityError(String);

/// A tool that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// Whether every call of it needs somebody's yes.
    pub asks: bool,
}

impl Capability {
    /// Reads TOML.
    ///
    /// # Errors
    ///
    /// [`CapabilityError`] with the place for what is no TOML, and for whatever
    /// is not known.
    pub fn from_toml(text: &str) -> Result<Self, CapabilityError> {
        toml::from_str(text).map_err(|error| CapabilityError(error.to_string()))
    }

    /// Reads JSON.
    ///
    /// # Errors
    ///
    /// [`CapabilityError`] as for [`from_toml`](Self::from_toml).
    pub fn from_json(text: &str) -> Result<Self, CapabilityError> {
        let mut json = serde_json::Deserializer::from_str(text);
        let read = serde_path_to_error::deserialize(&mut json);
        let read = read.map_err(|error| CapabilityError(error.to_string()))?;
        match json.end() {
            Ok(()) => Ok(read),
            Err(error) => Err(CapabilityError(error.to_string())),
        }
    }

    /// The capability as TOML, which [`from_toml`](Self::from_toml) reads.
    ///
    /// # Errors
    ///
    /// [`CapabilityError`], which no capability is known to cause.
    pub fn to_toml(&self) -> Result<String, CapabilityError> {
        toml::to_string(self).map_err(|error| CapabilityError(error.to_string()))
    }

    /// The toolset on a backend. `approver` is asked if the capability says that
    /// somebody is to be asked.
    ///
    /// # Errors
    ///
    /// [`BuildError`], which says what to change.
    pub fn toolset(
        &self,
        backend: Arc<dyn Backend>,
        approver: Option<Arc<dyn Approver>>,
    ) -> Result<Toolset, BuildError> {
        self.apply(Toolset::builder(backend), approver).build()
    }

    /// The toolset on the backends that a resolver picks.
    ///
    /// # Errors
    ///
    /// [`BuildError`], which says what to change.
    pub fn toolset_resolving(
        &self,
        resolver: Arc<dyn Resolver>,
        approver: Option<Arc<dyn Approver>>,
    ) -> Result<Toolset, BuildError> {
        self.apply(Toolset::resolving(resolver), approver).build()
    }

    /// Sets all of it in a builder, to which custom tools can still be added.
    pub fn apply(
        &self,
        builder: ToolsetBuilder,
        approver: Option<Arc<dyn Approver>>,
    ) -> ToolsetBuilder {
        let builder = builder
            .options(self.options.clone())
            .tool_settings(self.tools.clone())
            .approver(self.approver.approver(approver));
        let builder = match &self.permissions {
            Some(permissions) => builder.ruleset(permissions.ruleset()),
            None => builder,
        };
        match &self.mounts {
            Some(mounts) => builder.mounts(mounts.clone()),
            None => builder,
        }
    }

    /// The tools that exist on a backend, in the order in which a model is told of
    /// them.
    ///
    /// # Errors
    ///
    /// [`BuildError`], which says what to change.
    pub fn tools_for(&self, backend: &dyn Backend) -> Result<Vec<Offer>, BuildError> {
        let offers = |definition: &Definition| Offer {
            name: definition.name.clone(),
            asks: definition.asks,
        };
        let definitions = self.on_paper()?.definitions_for(backend);
        Ok(definitions.iter().map(offers).collect())
    }

    /// What to add to a system prompt for a backend.
    ///
    /// # Errors
    ///
    /// [`BuildError`], which says what to change.
    pub fn prompt(&self, backend: &dyn Backend) -> Result<String, BuildError> {
        let definitions = self.on_paper()?.definitions_for(backend);
        Ok(prompt::fragment(&self.options, &definitions))
    }

    /// A toolset that nobody calls.
    fn on_paper(&self) -> Result<Toolset, BuildError> {
        self.toolset_resolving(Arc::new(Nowhere), None)
    }
}

#[derive(Debug)]
struct Nowhere;

#[async_trait]
impl Resolver for Nowhere {
    async fn resolve(&self, _: &Caller) -> backend_core::Result<Arc<dyn Backend>> {
        Err(Error::unsupported(
            "there is no backend yet; build the toolset on one",
        ))
    }
}
