//! Parsing of runtimes from TOML.

use std::collections::BTreeMap;
use std::fmt;

use backend_core::Result;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor, value};
use serde::{Deserialize, Deserializer};

use crate::error::config;
use crate::runtime::{PackageManager, Packages, Runtime, WORK_DIR};

/// The longest text that is read.
const LONGEST: usize = 1 << 20;

/// A file of runtimes.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawFile {
    pub(crate) images: BTreeMap<String, String>,
    pub(crate) runtimes: BTreeMap<String, RawRuntime>,
}

/// A runtime without its name, which is its key in the table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawRuntime {
    name: Option<String>,
    description: String,
    image: Option<String>,
    base_image: Option<String>,
    packages: RawPackages,
    package_manager: Option<PackageManager>,
    setup_commands: Vec<String>,
    env_vars: BTreeMap<String, String>,
    work_dir: Option<String>,
    cache_image: Option<bool>,
    run_as_uid: Option<u32>,
}

/// Either one list, for the manager in `package_manager`, or a table with a list for
/// each manager.
#[derive(Debug)]
enum RawPackages {
    List(Vec<String>),
    Table(Packages),
}

impl Default for RawPackages {
    fn default() -> Self {
        Self::Table(Packages::default())
    }
}

impl<'de> Deserialize<'de> for RawPackages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Both;
        impl<'de> Visitor<'de> for Both {
            type Value = RawPackages;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of packages, or a table with lists for apt, pip, npm and cargo")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Deserialize::deserialize(value::SeqAccessDeserializer::new(list))
                    .map(RawPackages::List)
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
                Deserialize::deserialize(value::MapAccessDeserializer::new(table))
                    .map(RawPackages::Table)
            }
        }
        deserializer.deserialize_any(Both)
    }
}

impl RawRuntime {
    /// Returns the runtime with this name.
    pub(crate) fn named(self, name: &str) -> Result<Runtime, String> {
        if let Some(own) = self.name.filter(|own| own != name) {
            return Err(format!(
                "name: it is {own:?} and is listed under {name:?}; remove it"
            ));
        }
        let packages = match (self.packages, self.package_manager) {
            (RawPackages::List(list), manager) => {
                let mut packages = Packages::default();
                *packages.of_mut(manager.unwrap_or(PackageManager::Pip)) = list;
                packages
            }
            (RawPackages::Table(packages), None) => packages,
            (RawPackages::Table(_), Some(_)) => {
                return Err(
                    "package_manager: it goes with a list of packages; remove it".to_owned(),
                );
            }
        };
        Ok(Runtime {
            name: name.to_owned(),
            description: self.description,
            image: self.image,
            base_image: self.base_image,
            packages,
            setup_commands: self.setup_commands,
            env_vars: self.env_vars,
            work_dir: self.work_dir.unwrap_or_else(|| WORK_DIR.to_owned()),
            cache_image: self.cache_image.unwrap_or(true),
            run_as_uid: self.run_as_uid,
        })
    }
}

impl<'de> Deserialize<'de> for Runtime {
    /// Reads a runtime that holds its own name, and validates it.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut written = RawRuntime::deserialize(deserializer)?;
        let name = written
            .name
            .take()
            .ok_or_else(|| D::Error::missing_field("name"))?;
        let runtime = written.named(&name).map_err(D::Error::custom)?;
        runtime
            .validate()
            .map_err(|error| D::Error::custom(error.message()))?;
        Ok(runtime)
    }
}

/// Parses TOML. Errors include the key and the line.
pub(crate) fn toml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    if text.len() > LONGEST {
        return Err(config(format!(
            "the text of runtimes is longer than {LONGEST} bytes; split it"
        )));
    }
    let line_of = |error: &toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start);
        text.bytes()
            .take(start)
            .filter(|&byte| byte == b'\n')
            .count()
            + 1
    };
    let describe = |path: &str, error: &toml::de::Error| {
        let at = if path == "." {
            String::new()
        } else {
            format!("{path}: ")
        };
        config(format!(
            "runtimes, line {}: {at}{}; correct it there",
            line_of(error),
            error.message().trim_end()
        ))
    };
    let parsed = toml::Deserializer::parse(text).map_err(|error| describe(".", &error))?;
    serde_path_to_error::deserialize(parsed)
        .map_err(|error| describe(&error.path().to_string(), error.inner()))
}
