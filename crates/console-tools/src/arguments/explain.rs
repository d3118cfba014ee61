//! Explains what is wrong with arguments, in the terms of their schema.
//!
//! Understands only the part of JSON Schema that the tools' own schemas use. Other
//! keywords are ignored here, and deserialization decides.

use backend_core::Quoted;
use serde_json::{Map, Value};

/// Maximum number of problems in one message.
const LISTED: usize = 5;

/// Maximum number of fields or values that a description lists.
const NAMED: usize = 20;

/// Maximum depth to which schemas are followed.
const DEPTH: usize = 16;

/// Whether unknown and missing fields count as problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strict {
    Yes,
    No,
}

/// Describes the first few problems of `value`, one fragment each.
pub(super) fn problems(schema: &Value, value: &Value, strict: Strict) -> Vec<String> {
    let mut found = Problems {
        strict,
        problems: Vec::new(),
    };
    found.check(schema, value, &FieldPath::Root, 0);
    found.problems
}

/// A position in the arguments.
enum FieldPath<'a> {
    Root,
    Field(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl FieldPath<'_> {
    fn text(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field(Self::Root, name) => (*name).to_owned(),
            Self::Field(parent, name) => format!("{}.{name}", parent.text()),
            Self::Item(parent, index) => format!("{}[{index}]", parent.text()),
        }
    }

    fn quoted(&self) -> String {
        match self {
            Self::Root => "the arguments".to_owned(),
            path => Quoted::new(&path.text()).to_string(),
        }
    }
}

struct Problems {
    strict: Strict,
    problems: Vec<String>,
}

impl Problems {
    fn add(&mut self, problem: String) {
        if self.problems.len() < LISTED {
            self.problems.push(problem);
        }
    }

    fn add_mismatch(&mut self, path: &FieldPath<'_>, schema: &Value, value: &Value) {
        let (path, what, is) = (path.quoted(), described(schema), shown(value));
        self.add(format!("{path} must be {what}, not {is}"));
    }

    fn check(&mut self, schema: &Value, value: &Value, path: &FieldPath<'_>, depth: usize) {
        if depth > DEPTH || self.problems.len() >= LISTED {
            return;
        }
        if let Some(branches) = branches(schema) {
            return self.check_any(schema, branches, value, path, depth);
        }
        let typed = types(schema);
        let fits = typed.is_empty() || typed.iter().any(|name| is_a(name, value));
        let listed = schema.get("enum").and_then(Value::as_array);
        let listed = listed.is_none_or(|values| values.contains(value));
        let constant = schema.get("const").is_none_or(|one| one == value);
        if !fits || !listed || !constant || !in_bounds(schema, value) {
            return self.add_mismatch(path, schema, value);
        }
        match value {
            Value::String(text) => self.check_text(schema, text, path),
            Value::Array(items) => self.check_items(schema, items, path, depth),
            Value::Object(fields) => self.check_fields(schema, fields, path, depth),
            _ => {}
        }
    }

    fn check_any(
        &mut self,
        schema: &Value,
        branches: &[Value],
        value: &Value,
        path: &FieldPath<'_>,
        depth: usize,
    ) {
        let mut closest = None;
        for branch in branches {
            let mut inner = Self {
                strict: self.strict,
                problems: Vec::new(),
            };
            inner.check(branch, value, path, depth + 1);
            if inner.problems.is_empty() {
                return;
            }
            // A branch of the right type explains best what else is wrong.
            let names = types(branch);
            if value.is_object() | value.is_array() && names.iter().any(|name| is_a(name, value)) {
                closest = Some(inner.problems);
            }
        }
        match closest {
            Some(problems) => problems.into_iter().for_each(|problem| self.add(problem)),
            None => self.add_mismatch(path, schema, value),
        }
    }

    fn check_text(&mut self, schema: &Value, text: &str, path: &FieldPath<'_>) {
        let limit = |name| schema.get(name).and_then(Value::as_u64);
        let (least, most) = (limit("minLength"), limit("maxLength"));
        if least.is_none() && most.is_none() {
            return;
        }
        let chars = text.chars().count() as u64;
        let problem = match (least, most) {
            (Some(1..), _) if chars == 0 => "must not be empty".to_owned(),
            (Some(least), _) if chars < least => {
                format!("has {chars} characters and must have at least {least}")
            }
            (_, Some(most)) if chars > most => {
                format!("has {chars} characters and may have at most {most}")
            }
            _ => return,
        };
        self.add(format!("{} {problem}", path.quoted()));
    }

    fn check_items(&mut self, schema: &Value, items: &[Value], path: &FieldPath<'_>, depth: usize) {
        let Some(each) = schema.get("items") else {
            return;
        };
        for (index, item) in items.iter().enumerate() {
            if self.problems.len() >= LISTED {
                return;
            }
            self.check(each, item, &FieldPath::Item(path, index), depth + 1);
        }
    }

    fn check_fields(
        &mut self,
        schema: &Value,
        fields: &Map<String, Value>,
        path: &FieldPath<'_>,
        depth: usize,
    ) {
        let Some(known) = schema.get("properties").and_then(Value::as_object) else {
            return;
        };
        for (name, field) in known {
            if let Some(value) = fields.get(name) {
                self.check(field, value, &FieldPath::Field(path, name), depth + 1);
            } else if self.strict == Strict::Yes && required(schema, name) {
                let path = FieldPath::Field(path, name).quoted();
                self.add(format!(
                    "{path} is missing, it must be {}",
                    described(field)
                ));
            }
        }
        if self.strict == Strict::No
            || schema.get("additionalProperties") != Some(&Value::Bool(false))
        {
            return;
        }
        let unknown = fields.keys().filter(|name| !known.contains_key(*name));
        let unknown = unknown.map(|name| FieldPath::Field(path, name).quoted());
        let unknown: Vec<String> = unknown.take(LISTED).collect();
        let are = match unknown.len() {
            0 => return,
            1 => "is",
            _ => "are",
        };
        let unknown = unknown.join(", ");
        self.add(if known.is_empty() {
            format!("{unknown} {are} not known, there are no fields")
        } else {
            format!("{unknown} {are} not known, the fields are {}", names(known))
        });
    }
}

fn required(schema: &Value, name: &str) -> bool {
    let listed = schema.get("required").and_then(Value::as_array);
    listed.is_some_and(|listed| listed.iter().any(|one| one == name))
}

fn branches(schema: &Value) -> Option<&[Value]> {
    let any = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    any.and_then(Value::as_array).map(Vec::as_slice)
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_a(name: &str, value: &Value) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // Unknown type: deserialization decides.
        _ => true,
    }
}

fn in_bounds(schema: &Value, value: &Value) -> bool {
    let bound = |name| schema.get(name).and_then(Value::as_f64);
    let within = |number: f64, least, most| {
        bound(least).is_none_or(|least| number >= least)
            && bound(most).is_none_or(|most| number <= most)
    };
    if let Value::Array(items) = value {
        return within(items.len() as f64, "minItems", "maxItems");
    }
    value.as_f64().is_none_or(|number| {
        within(number, "minimum", "maximum")
            && bound("exclusiveMinimum").is_none_or(|least| number > least)
            && bound("exclusiveMaximum").is_none_or(|most| number < most)
    })
}

/// Describes the expected value as a noun phrase.
fn described(schema: &Value) -> String {
    if let Some(branches) = branches(schema) {
        let each: Vec<String> = branches.iter().take(NAMED).map(described).collect();
        return each.join(" or ");
    }
    if let Some(one) = schema.get("const") {
        return shown(one);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let each: Vec<String> = values.iter().take(NAMED).map(shown).collect();
        return each.join(" or ");
    }
    let names = types(schema);
    let each: Vec<String> = names.iter().map(|name| noun(name, schema)).collect();
    match each.as_slice() {
        [] => "a value".to_owned(),
        each => each.join(" or "),
    }
}

fn noun(name: &str, schema: &Value) -> String {
    match name {
        "string" => "a string".to_owned(),
        "integer" => format!("an integer{}", range(schema, "minimum", "maximum")),
        "number" => format!("a number{}", range(schema, "minimum", "maximum")),
        "boolean" => "true or false".to_owned(),
        "array" => {
            let of = schema.get("items").map(plural).unwrap_or_default();
            format!("a list{of}{}", range(schema, "minItems", "maxItems"))
        }
        "object" => match schema.get("properties").and_then(Value::as_object) {
            Some(known) if !known.is_empty() => format!("an object with {}", self::names(known)),
            _ => "an object".to_owned(),
        },
        other => other.to_owned(),
    }
}

fn plural(items: &Value) -> String {
    match types(items).first() {
        Some(&"object") => " of objects".to_owned(),
        Some(&"boolean") | None => String::new(),
        Some(name) => format!(" of {name}s"),
    }
}

fn range(schema: &Value, least: &str, most: &str) -> String {
    let exclusive = schema
        .get("exclusiveMinimum")
        .filter(|_| least == "minimum");
    match (schema.get(least), schema.get(most), exclusive) {
        (Some(least), Some(most), _) => format!(" from {least} to {most}"),
        (Some(least), None, _) => format!(" of at least {least}"),
        (None, None, Some(above)) => format!(" above {above}"),
        (None, Some(most), _) => format!(" of at most {most}"),
        (None, None, None) => String::new(),
    }
}

fn names(known: &Map<String, Value>) -> String {
    let all: Vec<&str> = known.keys().take(NAMED).map(String::as_str).collect();
    all.join(", ")
}

/// Formats a value for a message.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => {
            let quoted = Quoted::new(&number.to_string()).to_string();
            quoted.replace('\'', "")
        }
        Value::String(text) => Quoted::new(text).to_string(),
        Value::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
