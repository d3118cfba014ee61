//! Replaces the descriptions of tools and arguments with those of the host.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::build_error::BuildError;
use super::builtin;
use super::registered_tool::RegisteredTool;
use crate::options::Options;

/// Applies the descriptions of the options, and checks those of disabled tools.
pub(super) fn replace(
    options: &Options,
    customs: &[String],
    entries: &mut [RegisteredTool],
) -> Result<(), BuildError> {
    check_tools(options, customs)?;
    for (key, text) in &options.descriptions {
        let (tool, argument) = parts(key);
        let mut disabled = builtin::known(options.profile, tool).map(|make| make());
        let enabled = entries.iter_mut().find(|entry| *entry.name == *tool);
        match (enabled.or(disabled.as_mut()), argument) {
            (Some(entry), Some(argument)) => describe(entry, argument, text)?,
            (Some(entry), None) => entry.definition.description.clone_from(text),
            (None, _) => {}
        }
    }
    Ok(())
}

/// Splits a key into the tool and, if present, the argument.
fn parts(key: &str) -> (&str, Option<&str>) {
    match key.split_once('.') {
        Some((tool, argument)) => (tool, Some(argument)),
        None => (key, None),
    }
}

fn check_tools(options: &Options, customs: &[String]) -> Result<(), BuildError> {
    let mut valid: Vec<String> = builtin::names(options.profile).map(String::from).collect();
    valid.extend_from_slice(customs);
    let tools = options.descriptions.keys();
    let tools = tools.map(|key| parts(key).0.to_owned());
    let mut unknown: Vec<String> = tools.filter(|tool| !valid.contains(tool)).collect();
    unknown.dedup();
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(BuildError::UnknownDescription { unknown, valid })
    }
}

fn describe(entry: &mut RegisteredTool, argument: &str, text: &str) -> Result<(), BuildError> {
    let schema = &mut entry.definition.input_schema;
    let pointer = pointer(schema, argument).map_err(|valid| BuildError::UnknownArgument {
        tool: entry.name.to_string(),
        argument: argument.to_owned(),
        valid,
    })?;
    let field = Arc::make_mut(schema).pointer_mut(&pointer);
    if let Some(field) = field.and_then(Value::as_object_mut) {
        field.insert("description".to_owned(), text.into());
    }
    Ok(())
}

/// Returns the JSON pointer to an argument in a schema. Dots lead into objects and into
/// the items of lists. The error is the list of valid names.
fn pointer(schema: &Value, argument: &str) -> Result<String, Vec<String>> {
    let mut pointer = String::new();
    let mut at = schema;
    for name in argument.split('.') {
        if let Some(items) = at.get("items") {
            pointer.push_str("/items");
            at = items;
        }
        let fields = at.get("properties").and_then(Value::as_object);
        let Some(field) = fields.and_then(|fields| fields.get(name)) else {
            let names = fields.into_iter().flat_map(Map::keys);
            return Err(names.cloned().collect());
        };
        pointer.push_str("/properties/");
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        at = field;
    }
    Ok(pointer)
}
