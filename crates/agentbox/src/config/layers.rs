//! The layers of the configuration: where values come from, and how they are merged.

use std::ffi::OsString;
use std::path::Path;

use permissions::Preset;
use toml::{Table, Value};

use super::keys::{ALIASES, KnownKeys};
use crate::backend::kind::Kind;
use crate::backend::spec;
use crate::exit::{Failure, usage};
use crate::files::{read_toml, resolve_path};

/// Names all variables together, in error messages.
pub(super) const ENVIRONMENT: &str = "the environment (AGENTBOX_*)";

/// The keys that have a flag, or are about listening.
const FLAGS: &str = "\
    backend config edit_format local.allowed_directories log mcp.http mcp.no_token mcp.origins \
    mcp.token_file mcp.workspaces profile require_enforcement";

/// Merges `over` into `table`: tables are merged, other values are replaced.
pub(super) fn merge(table: &mut Table, over: Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(over)) => merge(below, over),
            (_, value) => drop(table.insert(key, value)),
        }
    }
}

pub(super) fn file(path: &Path, known: &KnownKeys) -> Result<Table, Failure> {
    let shown = path.display();
    let table: Table = read_toml(path, "config file")?;
    if let Some(key) = known.unknown("", &table) {
        let suggestion = known.suggestion(&key);
        return Err(usage!(
            "{shown}: there is no option {key}{suggestion}; remove it or correct its name"
        ));
    }
    let mut table = aliased(table, &shown.to_string())?;
    let here = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    if let Some(directory) = here.parent() {
        rebase(&mut table, directory)?;
    }
    Ok(table)
}

/// Makes relative paths in a file absolute, starting at the file's directory.
fn rebase(table: &mut Table, directory: &Path) -> Result<(), Failure> {
    if let Some(Value::String(backend)) = table.get_mut("backend") {
        *backend = spec::absolute(backend, directory)?;
    }
    let absolute = |path: &str| {
        let path = resolve_path(path, directory);
        path.to_string_lossy().into_owned()
    };
    if let Some(Value::String(rules)) = table.get_mut("permissions")
        && rules.parse::<Preset>().is_err()
    {
        *rules = absolute(rules);
    }
    for kind in Kind::ALL {
        if let Some(Value::Table(settings)) = table.get_mut(kind.name()) {
            spec::rebase(settings, kind, directory);
        }
    }
    if let Some(Value::Table(mcp)) = table.get_mut("mcp") {
        for key in ["token_file", "workspaces"] {
            if let Some(Value::String(path)) = mcp.get_mut(key) {
                *path = absolute(path);
            }
        }
    }
    Ok(())
}

/// Reads this program's variables. Quotes around a text can be left out.
pub(super) fn environment(
    variables: &[(OsString, OsString)],
    known: &KnownKeys,
) -> Result<Table, Failure> {
    let mut table = Table::new();
    for (name, value) in variables {
        let Some(name) = name.to_str() else { continue };
        let Some(key) = known.of_variable(name) else {
            continue;
        };
        let key = key.map_err(Failure::usage)?;
        let value = value.to_str().filter(|value| !value.trim().is_empty());
        let value = value.ok_or_else(|| {
            usage!("{name} is empty or not valid UTF-8; unset it or give a value")
        })?;
        put(&mut table, key, scalar(value));
    }
    aliased(table, ENVIRONMENT)
}

/// A variable that sets an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForwardedVariable {
    pub(crate) name: String,
    pub(crate) key: String,
    /// A value that means the same in any directory.
    pub(crate) value: String,
}

/// Returns this program's variables, except those with a flag and about listening.
pub(super) fn forwarded(
    variables: &[(OsString, OsString)],
    known: &KnownKeys,
) -> Vec<ForwardedVariable> {
    let here = std::env::current_dir().unwrap_or_default();
    let forward = |(name, value): &(OsString, OsString)| {
        let (name, value) = (name.to_str()?, value.to_str()?);
        let key = known.of_variable(name)?.ok()?;
        let key_of_option = key.strip_prefix("options.").unwrap_or(key);
        if FLAGS.split_whitespace().any(|flag| flag == key_of_option) {
            return None;
        }
        Some(ForwardedVariable {
            name: name.to_owned(),
            key: key.to_owned(),
            value: from_anywhere(key, value, &here),
        })
    };
    variables.iter().filter_map(forward).collect()
}

/// Makes paths in a value absolute, so that it is valid in any directory.
fn from_anywhere(key: &str, text: &str, here: &Path) -> String {
    let parts = key.split_once('.');
    let setting = parts.and_then(|(kind, last)| Some((Kind::named(kind)?, last)));
    if setting.is_none_or(|(kind, last)| !kind.path_keys().any(|key| key == last)) {
        return text.to_owned();
    }
    let mut value = scalar(text);
    spec::rebase_value(&mut value, here);
    match value {
        Value::String(path) => path,
        value => value.to_string(),
    }
}

/// Parses a number, a boolean or a list; anything else is text.
fn scalar(text: &str) -> Value {
    let read = toml::from_str::<Table>(&format!("value = {text}"));
    let read = read.ok().filter(|table| table.len() == 1);
    match read.and_then(|mut table| table.remove("value")) {
        Some(Value::Datetime(_)) | None => Value::from(text),
        Some(value) => value,
    }
}

fn put(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => drop(table.insert(key.to_owned(), value)),
        Some((first, rest)) => {
            let inner = table
                .entry(first)
                .or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// Moves the values of aliases to their actual keys.
pub(super) fn aliased(mut table: Table, whose: &str) -> Result<Table, Failure> {
    for (alias, key) in ALIASES {
        let Some(value) = take(&mut table, alias) else {
            continue;
        };
        if take(&mut table, key).is_some() {
            return Err(usage!(
                "{whose} sets {alias} and {key}, which are the same option; remove one of them"
            ));
        }
        put(&mut table, key, value);
    }
    Ok(table)
}

/// Removes and returns a value, by its key with dots.
fn take(table: &mut Table, key: &str) -> Option<Value> {
    match key.split_once('.') {
        None => table.remove(key),
        Some((first, rest)) => take(table.get_mut(first)?.as_table_mut()?, rest),
    }
}
