//! The names of all settings.

use console_tools::Options;
use toml::{Table, Value};

use crate::backend::kind::Kind;

/// The keys that are not options of the toolset.
const PROGRAM_KEYS: &str = "\
    backend config log mcp.http mcp.idle_timeout mcp.mark_failures mcp.max_sessions mcp.no_token \
    mcp.origins mcp.structured mcp.token_file mcp.workspaces permissions require_enforcement \
    run.timeout tools";

/// Aliases of keys: those with a flag, and the names that pydantic-ai-backend uses.
pub(super) const ALIASES: &[(&str, &str)] = &[
    ("docker.container_name", "docker.name"),
    ("docker.mem_limit", "docker.memory"),
    ("docker.network_mode", "docker.network"),
    ("docker.pids_limit", "docker.pids"),
    ("edit_format", "options.edit_format"),
    ("local.enable_execute", "local.commands"),
    ("max_document_bytes", "options.limits.document_bytes"),
    ("max_image_bytes", "options.limits.image_bytes"),
    (
        "options.max_document_bytes",
        "options.limits.document_bytes",
    ),
    ("options.max_image_bytes", "options.limits.image_bytes"),
    ("profile", "options.profile"),
];

/// Tables whose keys are not fixed.
const OPEN_TABLES: &[&str] = &["options.descriptions", "permissions", "tools"];

/// Our variables that are no settings: a command's marker, a supervisor's path.
const OTHER_VARIABLES: &[&str] = &["AGENTBOX_COMMAND", "AGENTBOX_SUPERVISOR"];

const PREFIX: &str = "AGENTBOX_";

/// Keys of another file, and the equivalent key in this one.
const MISPLACED_KEYS: &[(&str, &str)] = &[
    ("docker.images", "docker.base_images"),
    // In a file of runtimes.
    ("images", "docker.base_images"),
];

/// All keys, with dots.
#[derive(Debug)]
pub(super) struct KnownKeys(Vec<String>);

pub(super) fn known() -> KnownKeys {
    let mut keys: Vec<String> = PROGRAM_KEYS.split_whitespace().map(str::to_owned).collect();
    keys.extend(ALIASES.iter().map(|(key, _)| (*key).to_owned()));
    for kind in Kind::ALL {
        let name = kind.name();
        keys.extend(kind.keys().map(|key| format!("{name}.{key}")));
    }
    if let Ok(options) = Table::try_from(Options::default()) {
        add("options", &options, &mut keys);
    }
    keys.sort();
    KnownKeys(keys)
}

fn add(above: &str, table: &Table, keys: &mut Vec<String>) {
    for (key, value) in table {
        let key = format!("{above}.{key}");
        match value {
            Value::Table(inner) if !OPEN_TABLES.contains(&key.as_str()) => add(&key, inner, keys),
            _ => keys.push(key),
        }
    }
}

impl KnownKeys {
    /// Returns the first unknown key of a table, whose own key is `above` with a dot.
    pub(super) fn unknown(&self, above: &str, table: &Table) -> Option<String> {
        table.iter().find_map(|(key, value)| {
            let key = format!("{above}{key}");
            let beneath = format!("{key}.");
            let is_table = self.0.iter().any(|known| known.starts_with(&beneath));
            match value {
                Value::Table(inner) if is_table => self.unknown(&beneath, inner),
                // The code that reads it reports a value that should be a table.
                _ if is_table || (self.0.contains(&key) && key != "config") => None,
                _ => Some(key),
            }
        })
    }

    /// Returns every key with its variable.
    #[cfg(test)]
    pub(super) fn with_variables(self) -> Vec<(String, String)> {
        let keys = self.0.into_iter();
        keys.map(|key| (key.clone(), variable(&key))).collect()
    }

    /// Returns the key that a variable sets, or `None` for a variable that is not ours.
    pub(super) fn of_variable(&self, name: &str) -> Option<Result<&str, String>> {
        if !name.starts_with(PREFIX) || OTHER_VARIABLES.contains(&name) {
            return None;
        }
        let found = self.0.iter().find(|key| variable(key) == name);
        Some(found.map(String::as_str).ok_or_else(|| {
            let suggestion = suggestion(name, PREFIX, self.0.iter().map(|key| variable(key)));
            format!("no option has the variable {name}{suggestion}; unset it or correct its name")
        }))
    }

    /// Returns `, did you mean X?` for an unknown key.
    pub(super) fn suggestion(&self, key: &str) -> String {
        match MISPLACED_KEYS.iter().find(|(other, _)| *other == key) {
            Some((_, here)) => format!(", did you mean {here}?"),
            None => suggestion(key, "", self.0.iter().cloned()),
        }
    }
}

fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "_").to_ascii_uppercase())
}

/// Suggests the most similar name, if one is similar. The prefix does not count.
fn suggestion(name: &str, prefix: &str, known: impl Iterator<Item = String>) -> String {
    let name = name.strip_prefix(prefix).unwrap_or(name);
    // A key may also be in the wrong table.
    let similarity = |known: &str| {
        let known = known.strip_prefix(prefix).unwrap_or(known);
        let (_, last) = name.rsplit_once('.').unwrap_or(("", name));
        let (_, last_known) = known.rsplit_once('.').unwrap_or(("", known));
        let of_last = strsim::jaro_winkler(last, last_known) - 0.01;
        strsim::jaro_winkler(name, known).max(of_last)
    };
    let scored = known.map(|known| (similarity(&known), known));
    let best = scored.max_by(|one, two| one.0.total_cmp(&two.0));
    match best {
        Some((score, best)) if score > 0.8 => format!(", did you mean {best}?"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_variable_of_its_own() {
        let KnownKeys(keys) = known();
        let mut variables: Vec<String> = keys.iter().map(|key| variable(key)).collect();
        variables.sort();
        variables.dedup();
        assert_eq!(variables.len(), keys.len());
        assert!(keys.len() > 50, "the options are among them");
    }
}
