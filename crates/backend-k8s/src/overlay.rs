//! A strategic merge of a pod template: maps are merged, lists of named things are merged
//! by their name, and all other values are replaced.
//!
//! `null` removes a key. In a map or an element of a list, `$patch: delete` removes it and
//! `$patch: replace` replaces what was there.

use backend_core::{Quoted, Result};
use serde_json::{Map, Value};

use crate::check::{self, ensure};
use crate::labels::{CONTAINER, MANAGED_BY, PREFIX};

/// The key of a map that says how it is merged.
const DIRECTIVE: &str = "$patch";

/// Levels that an overlay may have.
const LEVELS: usize = 64;

/// The lists of a pod whose elements are merged, and the key that names an element.
const NAMED_BY: [(&str, &str); 12] = [
    ("containers", "name"),
    ("env", "name"),
    ("hostAliases", "ip"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("ownerReferences", "uid"),
    ("ports", "containerPort"),
    ("resourceClaims", "name"),
    ("topologySpreadConstraints", "topologyKey"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
    ("volumes", "name"),
];

fn merge_key(field: &str) -> Option<&'static str> {
    let known = NAMED_BY.iter().find(|(list, _)| *list == field);
    known.map(|(_, key)| *key)
}

/// Merges an overlay that was [checked](check) into a pod.
pub(crate) fn merge(pod: Value, overlay: &Value) -> Value {
    merged("", Some(pod), overlay).unwrap_or_default()
}

/// Returns the value that `overlay` makes of `base`; `None` if it removes it.
fn merged(field: &str, base: Option<Value>, overlay: &Value) -> Option<Value> {
    match overlay {
        Value::Null => None,
        Value::Object(overlay) => merged_map(base, overlay).map(Value::Object),
        Value::Array(overlay) => Some(merged_list(field, base, overlay).into()),
        other => Some(other.clone()),
    }
}

fn merged_map(base: Option<Value>, overlay: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut result = match (directive(overlay), base) {
        (Some("delete"), _) => return None,
        (Some("replace"), _) => Map::new(),
        (_, Some(Value::Object(base))) => base,
        _ => Map::new(),
    };
    for (key, value) in overlay {
        if key != DIRECTIVE
            && let Some(value) = merged(key, result.remove(key), value)
        {
            result.insert(key.clone(), value);
        }
    }
    Some(result)
}

fn merged_list(field: &str, base: Option<Value>, overlay: &[Value]) -> Vec<Value> {
    let Some(key) = merge_key(field) else {
        let elements = overlay.iter();
        return elements.filter_map(|one| merged("", None, one)).collect();
    };
    let is_marker = |one: &&Value| is_replace_marker(one, key);
    let mut result = match base {
        Some(Value::Array(base)) if !overlay.iter().any(|one| is_marker(&one)) => base,
        _ => Vec::new(),
    };
    for element in overlay.iter().filter(|one| !is_marker(one)) {
        let same = |other: &Value| other.get(key) == element.get(key);
        match result.iter().position(same) {
            Some(at) => {
                let before = result.remove(at);
                if let Some(element) = merged("", Some(before), element) {
                    result.insert(at, element);
                }
            }
            None => result.extend(merged("", None, element)),
        }
    }
    result
}

fn directive(map: &Map<String, Value>) -> Option<&str> {
    map.get(DIRECTIVE)?.as_str()
}

/// Whether an element only says that the list replaces the one that was there.
fn is_replace_marker(element: &Value, key: &str) -> bool {
    let map = element.as_object();
    map.is_some_and(|map| directive(map) == Some("replace") && !map.contains_key(key))
}

/// Checks an overlay: a pod template that leaves the sandbox its name, its labels and its
/// container.
pub(crate) fn check(overlay: &Value) -> Result<()> {
    check::object("the overlay", overlay)?;
    check_levels(overlay, LEVELS)?;
    let parts = overlay.as_object().into_iter().flatten();
    for (part, value) in parts {
        ensure!(
            ["metadata", "spec"].contains(&part.as_str()),
            "the overlay has the key {}; it is a pod template with metadata and spec",
            Quoted::new(part)
        );
        check::object(&format!("{part} of the overlay"), value)?;
        ensure!(
            value.get(DIRECTIVE).is_none(),
            "{part} of the overlay has {DIRECTIVE}; use it for a part of {part}"
        );
    }
    check_metadata(&overlay["metadata"])?;
    check_containers(&overlay["spec"]["containers"])?;
    check_value("", overlay)
}

/// Refuses values whose traversal would take a deep stack.
fn check_levels(value: &Value, left: usize) -> Result<()> {
    ensure!(
        left > 0,
        "the overlay has more than {LEVELS} levels; write less"
    );
    match value {
        Value::Array(list) => list.iter().try_for_each(|one| check_levels(one, left - 1)),
        Value::Object(map) => map.values().try_for_each(|one| check_levels(one, left - 1)),
        _ => Ok(()),
    }
}

fn check_metadata(metadata: &Value) -> Result<()> {
    for key in metadata.as_object().into_iter().flat_map(Map::keys) {
        ensure!(
            ["annotations", "finalizers", "labels", "ownerReferences"].contains(&key.as_str()),
            "the overlay changes {} of the metadata; only labels, annotations, finalizers and ownerReferences can be changed",
            Quoted::new(key)
        );
    }
    for map in ["annotations", "labels"] {
        ensure!(
            metadata[map].is_null() || metadata[map].is_object(),
            "{map} of the overlay is not a map; write a map"
        );
        for key in metadata[map].as_object().into_iter().flat_map(Map::keys) {
            ensure!(
                !key.starts_with(PREFIX) && key != MANAGED_BY,
                "the overlay changes {}, which is reserved for sandboxes; leave it out",
                Quoted::new(key)
            );
        }
    }
    Ok(())
}

fn check_containers(containers: &Value) -> Result<()> {
    let Value::Array(containers) = containers else {
        return Ok(());
    };
    for container in containers {
        let map = container.as_object();
        let is_removed = map.is_some_and(|map| directive(map) == Some("delete"))
            && container["name"] == CONTAINER;
        ensure!(
            !is_removed && !is_replace_marker(container, "name"),
            "the overlay removes the container {CONTAINER}, which is the sandbox; change it instead"
        );
    }
    Ok(())
}

fn check_value(field: &str, value: &Value) -> Result<()> {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let is_known = match value.as_str() {
                    Some(word) => ["delete", "merge", "replace"].contains(&word),
                    None => false,
                };
                ensure!(
                    !key.starts_with('$') || (key == DIRECTIVE && is_known),
                    "the overlay has {} with a value that is not known; use {DIRECTIVE} with delete or replace",
                    Quoted::new(key)
                );
                check_value(key, value)?;
            }
            // Without it, the sandbox would have no container at all.
            ensure!(
                map.get("containers").is_none_or(Value::is_array),
                "containers of the overlay is not a list; write a list"
            );
            Ok(())
        }
        Value::Array(list) => {
            let key = merge_key(field);
            for element in list {
                let is_named = key.is_none_or(|key| {
                    element.get(key).is_some() || is_replace_marker(element, key)
                });
                ensure!(
                    is_named,
                    "an element of {field} in the overlay has no {}; write it, because elements are merged by it",
                    key.unwrap_or_default()
                );
                let has_directive = element.get(DIRECTIVE).is_some();
                ensure!(
                    key.is_some() || !has_directive,
                    "{field} of the overlay is replaced as a whole; leave out {DIRECTIVE}"
                );
                check_value("", element)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
