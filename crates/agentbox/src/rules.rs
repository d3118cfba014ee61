//! The configured rules: a preset, a file, or a table in the config file.

use std::path::{Path, PathBuf};

use backend_core::{Enforcement, VPath};
use permissions::{Action, Op, OpClass, Policy, Preset, Ruleset};
use toml::Value;

use crate::exit::{Failure, usage};
use crate::files::{read_text, resolve_parent_dirs};

#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) ruleset: Ruleset,
    pub(crate) source: Source,
}

#[derive(Debug, Clone)]
pub(crate) enum Source {
    Preset(Preset),
    /// A file and its text.
    File(PathBuf, String),
    /// The config file.
    Config,
}

impl Rules {
    /// Reads a preset's name or a file.
    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        let path = Path::new(name);
        let (ruleset, source) = match name.parse::<Preset>() {
            Ok(preset) => (preset.ruleset(), Source::Preset(preset)),
            Err(unknown) if !path.exists() => {
                let shown = path.display();
                return Err(usage!("there is no file {shown}, and {unknown}"));
            }
            Err(_) => {
                let text = read_text(path, "ruleset")?;
                let read = if path.extension().is_some_and(|end| end == "json") {
                    Ruleset::from_json(&text)
                } else {
                    Ruleset::from_toml(&text)
                };
                let ruleset = read.map_err(|error| usage!("{}: {error}", path.display()))?;
                (ruleset, Source::File(path.to_path_buf(), text))
            }
        };
        Ok(Self { ruleset, source })
    }

    pub(crate) fn configured(value: &Value) -> Result<Self, Failure> {
        match value {
            Value::String(name) => Self::named(name),
            Value::Table(table) => {
                let ruleset = table.clone().try_into();
                let ruleset = ruleset.map_err(|error: toml::de::Error| {
                    let message = error.message();
                    usage!(
                        "[permissions] is not a valid ruleset: {message}; correct it in the config file"
                    )
                })?;
                let source = Source::Config;
                Ok(Self { ruleset, source })
            }
            other => Err(usage!(
                "permissions is a {}; give the name of a preset, a file, or rules",
                other.type_str()
            )),
        }
    }

    /// Returns `true` if they can ask about anything. They can if any command may run:
    /// commands that cannot be analyzed are asked about.
    pub(crate) fn can_ask(&self) -> bool {
        let Ruleset {
            default, execute, ..
        } = &self.ruleset;
        let is_path = |op: &Op| op.class() != OpClass::Execute;
        let paths = Op::ALL.into_iter().filter(is_path);
        let asks = |op: Op| match self.ruleset.section(op) {
            Some(section) => {
                let mut rules = section.rules.iter().map(|rule| rule.action);
                section.default == Action::Ask || rules.any(|action| action == Action::Ask)
            }
            None => *default == Action::Ask && !matches!(op, Op::Delete | Op::Move | Op::Copy),
        };
        let runs = match execute {
            Some(section) => {
                let mut rules = section.rules.iter().map(|rule| rule.action);
                section.default != Action::Deny || rules.any(|action| action != Action::Deny)
            }
            None => *default != Action::Deny,
        };
        runs || paths.into_iter().any(asks)
    }

    /// Returns `true` if they deny any path, so that a sandbox can keep it from commands.
    pub(crate) fn keep_paths_from_commands(&self) -> bool {
        let policy = Policy::builder().ruleset(&self.ruleset, &VPath::root());
        let view = policy.build().view().clone();
        !view.is_empty() || view.required > Enforcement::Landlock
    }

    /// Returns a name that works in any directory; `None` for rules of the config file.
    pub(crate) fn name(&self) -> Option<String> {
        match &self.source {
            Source::Preset(preset) => Some(preset.name().to_owned()),
            Source::File(path, _) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                Some(resolve_parent_dirs(&path).to_string_lossy().into_owned())
            }
            Source::Config => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_whether_rules_can_ask() {
        let can_ask = |ruleset: Ruleset| {
            let source = Source::Config;
            Rules { ruleset, source }.can_ask()
        };
        for (preset, asks) in [
            (Preset::Default, true),
            (Preset::Permissive, true),
            (Preset::Readonly, false),
            (Preset::Strict, true),
        ] {
            assert_eq!(can_ask(preset.ruleset()), asks, "{preset:?}");
        }
        for (text, asks) in [
            ("", true),
            ("default = 'deny'", false),
            ("default = 'deny'\n[read]\ndefault = 'allow'", false),
            ("default = 'deny'\n[delete]\ndefault = 'ask'", true),
            (
                "default = 'deny'\n[read]\nrules = [{ pattern = 'a', action = 'ask' }]",
                true,
            ),
            (
                "default = 'deny'\n[execute]\ndefault = 'deny'\nrules = [{ pattern = 'ls', action = 'allow' }]",
                true,
            ),
        ] {
            assert_eq!(can_ask(Ruleset::from_toml(text).unwrap()), asks, "{text}");
        }
    }
}
