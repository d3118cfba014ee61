//! The configuration: flags over variables over a file over defaults.
//!
//! All four are tables with the same keys. Unknown keys are errors, never ignored: a
//! misspelt `permissions` would allow everything.

mod keys;
pub(crate) mod layers;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use backend_core::Enforcement;
use console_tools::{EditFormat, Options, Profile};
use permissions::tool::ToolSettings;
use serde::Deserialize;
use toml::{Table, Value};

use self::keys::KnownKeys;
use self::layers::ForwardedVariable;
use crate::backend::kind::{Kind, Tables};
use crate::exit::{Failure, usage};
use crate::files::{user_directory, user_directory_of};

/// The variable of the user's configuration directory, and its default in the home.
const DIRECTORY: (&str, &str) = ("XDG_CONFIG_HOME", ".config");

/// The name of the config file in this program's directory.
const FILE_NAME: &str = "config.toml";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) backend: Option<String>,
    /// The name of a preset, the path of a file, or inline rules.
    pub(crate) permissions: Option<Value>,
    /// The lowest level at which denied paths must be kept from commands.
    pub(crate) require_enforcement: Option<Level>,
    pub(crate) log: Option<String>,
    pub(crate) options: Options,
    #[serde(default)]
    pub(crate) tools: ToolSettings,
    #[serde(default)]
    pub(crate) run: Run,
    #[serde(default)]
    pub(crate) mcp: Mcp,
    /// Settings of each kind of backend, by its name.
    #[serde(skip)]
    pub(crate) backends: Tables,
    /// The file that was read.
    #[serde(skip)]
    pub(crate) file: Option<PathBuf>,
    /// The edit format and profile that the config file alone would give.
    #[serde(skip)]
    pub(crate) set_by_file: (EditFormat, Profile),
    /// The variables whose settings have no flag.
    #[serde(skip)]
    pub(crate) forwarded: Vec<ForwardedVariable>,
}

/// A level of enforcement, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Words,
    Landlock,
    View,
}

impl From<Level> for Enforcement {
    fn from(level: Level) -> Self {
        match level {
            Level::Words => Self::Words,
            Level::Landlock => Self::Landlock,
            Level::View => Self::View,
        }
    }
}

/// Options of `agentbox run`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Run {
    /// Seconds that a command may run.
    pub(crate) timeout: Option<f64>,
}

/// Options of `agentbox mcp`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Mcp {
    /// The address to listen on, instead of using standard input.
    pub(crate) http: Option<SocketAddr>,
    /// The file with the bearer token.
    pub(crate) token_file: Option<PathBuf>,
    /// Whether clients need no token.
    pub(crate) no_token: bool,
    /// Web origins that may send requests.
    pub(crate) origins: Vec<String>,
    /// Whether results have data besides their text.
    pub(crate) structured: bool,
    /// Whether every failure is marked as an error.
    pub(crate) mark_failures: bool,
    /// The directory in which each session has its files.
    pub(crate) workspaces: Option<PathBuf>,
    /// Seconds without use after which a client is forgotten and a session ends.
    pub(crate) idle_timeout: Option<u64>,
    /// Number of clients that may be connected, and of sessions that may run, at once.
    pub(crate) max_sessions: Option<usize>,
}

impl Config {
    /// Merges the layers.
    pub(crate) fn load(
        flags: Table,
        file: Option<PathBuf>,
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Failure> {
        let variables: Vec<_> = variables.collect();
        let known = keys::known();
        let mut environment = layers::environment(&variables, &known)?;
        let named = environment.remove("config");
        let named = file.or_else(|| named.as_ref().and_then(Value::as_str).map(PathBuf::from));
        let file = named.or_else(|| {
            let named = |name: &str| variables.iter().find(|(known, _)| known == name);
            let variable = |name: &str| Some(named(name)?.1.clone());
            let directory = user_directory_of(variable, DIRECTORY.0, DIRECTORY.1)?;
            Some(directory.join(FILE_NAME)).filter(|file| file.is_file())
        });
        let mut table = defaults()?;
        let mut config = read(table.clone(), "the defaults")?;
        if let Some(file) = &file {
            let whose = format!("the config file {}", file.display());
            layers::merge(&mut table, layers::file(file, &known)?);
            config = read(table.clone(), &whose)?;
        }
        let set_by_file = (config.options.edit_format, config.options.profile);
        if !environment.is_empty() {
            let below = table.clone();
            layers::merge(&mut table, environment);
            config = read(table.clone(), layers::ENVIRONMENT).map_err(|failure| {
                error_of_variable(&below, &variables, &known).unwrap_or(failure)
            })?;
        }
        if !flags.is_empty() {
            layers::merge(&mut table, layers::aliased(flags, "the command line")?);
            config = read(table, "the command line")?;
        }
        config.file = file;
        config.set_by_file = set_by_file;
        config.forwarded = layers::forwarded(&variables, &known);
        Ok(config)
    }
}

/// Returns the program's defaults. They are the library's, with one difference: a user
/// who starts this program has decided to let the model work. Commands need no
/// approval, files can be moved, and images and documents can be viewed.
fn defaults() -> Result<Table, Failure> {
    let mut options = Options::default();
    options.require_execute_approval = false;
    options.include_file_operations = true;
    options.image_support = true;
    options.document_support = true;
    let options = Table::try_from(options);
    let options = options.map_err(|error| Failure::environment(error.to_string()))?;
    Ok(Table::from_iter([("options".to_owned(), options.into())]))
}

/// A setting: its key, its variable, and the key that it is another name of.
#[cfg(test)]
pub(crate) struct Setting {
    pub(crate) key: String,
    pub(crate) variable: String,
    pub(crate) alias_of: Option<&'static str>,
}

/// Returns all settings.
#[cfg(test)]
pub(crate) fn settings() -> Vec<Setting> {
    let alias_of = |key: &str| {
        let alias = keys::ALIASES.iter().find(|(alias, _)| *alias == key);
        alias.map(|(_, key)| *key)
    };
    let pairs = keys::known().with_variables();
    let all = pairs.into_iter().map(|(key, variable)| Setting {
        alias_of: alias_of(&key),
        key,
        variable,
    });
    all.collect()
}

/// Returns the program's defaults as a table.
#[cfg(test)]
pub(crate) fn default_table() -> Table {
    defaults().unwrap_or_default()
}

fn read(mut table: Table, whose: &str) -> Result<Config, Failure> {
    let mut backends = Tables::new();
    for kind in Kind::ALL {
        let name = kind.name();
        match table.remove(name) {
            None => {}
            Some(Value::Table(settings)) => drop(backends.insert(kind, settings)),
            Some(_) => {
                return Err(usage!(
                    "{whose} sets {name:?} to something that is not a table; write [{name}]"
                ));
            }
        }
    }
    let mut config: Config = table.try_into().map_err(|error: toml::de::Error| {
        let what = error.to_string();
        let words = what.split_whitespace().map(|word| match word {
            // Plain words for the user.
            "usize" | "u64" | "u32" | "u16" => "a whole number",
            word => word,
        });
        let what = words.collect::<Vec<&str>>().join(" ");
        usage!("{whose} is wrong: {what}; correct it there")
    })?;
    config.backends = backends;
    Ok(config)
}

/// Returns the error of the first variable that is wrong by itself.
fn error_of_variable(
    below: &Table,
    variables: &[(OsString, OsString)],
    known: &KnownKeys,
) -> Option<Failure> {
    variables.iter().find_map(|variable| {
        let one = layers::environment(std::slice::from_ref(variable), known).ok()?;
        let name = variable.0.to_str().filter(|_| !one.is_empty())?;
        let mut table = below.clone();
        layers::merge(&mut table, one);
        table.remove("config");
        read(table, name).err()
    })
}

/// Returns the user's configuration directory for this program.
pub(crate) fn config_directory() -> Option<PathBuf> {
    user_directory(DIRECTORY.0, DIRECTORY.1)
}

pub(crate) fn default_config_path() -> Option<PathBuf> {
    Some(config_directory()?.join(FILE_NAME))
}

#[cfg(test)]
mod tests;
