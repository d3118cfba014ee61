//! Rules that somebody named: a preset, a file, or a table of the config file.

use std::path::{Path, PathBuf};

use permissions::{Preset, Ruleset};
use toml::Value;

use crate::config::read_text;
use crate::exit::Failure;

/// Rules, and where they stand.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) ruleset: Ruleset,
    pub(crate) source: Source,
}

/// Where rules stand.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Preset(Preset),
    /// The file, and its text.
    File(PathBuf, String),
    /// The config file.
    Config,
}

impl Rules {
    /// Reads a preset's name or a file.
    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        let unknown = match name.parse::<Preset>() {
            Ok(preset) => {
                return Ok(Self {
                    ruleset: preset.ruleset(),
                    source: Source::Preset(preset),
                });
            }
            Err(unknown) => unknown,
        };
        let path = Path::new(name);
        if !path.exists() {
            return Err(Failure::usage(format!(
                "{unknown}, and there is no such file"
            )));
        }
        let text = read_text(path, "ruleset")?;
        let json = path.extension().is_some_and(|end| end == "json");
        let read = match json {
            true => Ruleset::from_json(&text),
            false => Ruleset::from_toml(&text),
        };
        let ruleset =
            read.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        Ok(Self {
            ruleset,
            source: Source::File(path.to_path_buf(), text),
        })
    }

    /// Reads what the configuration says.
    pub(crate) fn configured(value: &Value) -> Result<Self, Failure> {
        match value {
            Value::String(name) => Self::named(name),
            Value::Table(table) => {
                let ruleset = table.clone().try_into();
                let ruleset = ruleset.map_err(|error: toml::de::Error| {
                    let message = error.message();
                    Failure::usage(format!(
                        "[permissions] is no ruleset: {message}; correct it in the config file"
                    ))
                })?;
                Ok(Self {
                    ruleset,
                    source: Source::Config,
                })
            }
            other => Err(Failure::usage(format!(
                "permissions is a {}; give the name of a preset, a file, or rules",
                other.type_str()
            ))),
        }
    }

    /// How they can be named from anywhere; `None` if they stand in the config
    /// file.
    pub(crate) fn name(&self) -> Option<String> {
        match &self.source {
            Source::Preset(preset) => Some(preset.name().to_owned()),
            Source::File(path, _) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                Some(path.to_string_lossy().into_owned())
            }
            Source::Config => None,
        }
    }
}
