//! Tests of argument parsing.

use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::reply::FailureClass;
use crate::schema::schema_for;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// Only names.
    Files,
    /// Lines too.
    Content,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "read by serde only")]
struct One {
    old: String,
    #[serde(default)]
    all: bool,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "read by serde only")]
struct Args {
    #[serde(alias = "file_path")]
    #[schemars(length(min = 1, max = 10))]
    path: String,
    #[serde(default)]
    #[schemars(range(min = 1, max = 10))]
    limit: Option<u32>,
    #[serde(default)]
    #[schemars(length(max = 2))]
    edits: Vec<One>,
    #[serde(default)]
    mode: Option<Mode>,
    #[serde(default)]
    small: Option<i8>,
}

fn error(value: Value) -> String {
    let schema = schema_for::<Args>();
    let error = typed::<Args>("t", &value, &schema).unwrap_err();
    assert_eq!(error.class(), FailureClass::Fixable);
    let text = error.to_string();
    let text = text.strip_prefix("wrong arguments for t: ").unwrap();
    let end = "; nothing was done, call it again with that corrected";
    text.strip_suffix(end).unwrap().to_owned()
}

#[test]
fn each_problem_names_the_field_and_what_it_must_be() {
    for (value, expected) in expected! {
        {} => "'path' is missing, it must be a string";
        {"path": 3} => "'path' must be a string, not 3";
        {"path": null} => "'path' must be a string, not null";
        {"path": ["a"]} => "'path' must be a string, not a list";
        {"path": ""} => "'path' must not be empty";
        {"path": "aaaaaaaaaaa"} => "'path' has 11 characters and may have at most 10";
        {"path": "a", "limit": "5"} => "'limit' must be an integer from 1 to 10 or null, not '5'";
        {"path": "a", "limit": 0} => "'limit' must be an integer from 1 to 10 or null, not 0";
        {"path": "a", "limit": -1} => "'limit' must be an integer from 1 to 10 or null, not -1";
        {"path": "a", "limit": 2.5} => "'limit' must be an integer from 1 to 10 or null, not 2.5";
        {"path": "a", "limit": 1e300} =>
            "'limit' must be an integer from 1 to 10 or null, not 1e+300";
        {"path": "a", "mode": "lines"} =>
            "'mode' must be 'files' or 'content' or null, not 'lines'";
        {"path": "a", "edits": [{"old": "x"}, {"old": 1}]} =>
            "'edits[1].old' must be a string, not 1";
        {"path": "a", "edits": [{"old": "x", "new": "y"}]} =>
            "'edits[0].new' is not known, the fields are old, all";
        {"path": "a", "edits": [["x", true]]} =>
            "'edits[0]' must be an object with old, all, not a list";
        {"path": "a", "edits": [{"old": "1"}, {"old": "1"}, {"old": "1"}]} =>
            "'edits' must be a list of objects of at most 2, not a list";
        {"path": "a", "small": 300} =>
            "'small' must be an integer from -128 to 127 or null, not 300";
    } {
        assert_eq!(error(value.clone()), expected, "{value}");
    }
}

#[test]
fn several_problems_are_told_at_once_but_not_all() {
    let text = error(json!({"limit": true, "foo": 1}));
    assert_eq!(
        text,
        "'path' is missing, it must be a string; \
         'limit' must be an integer from 1 to 10 or null, not true; \
         'foo' is not known, the fields are path, limit, edits, mode, small"
    );
    let many: Map<String, Value> = (0..1_000).map(|n| (format!("f{n}"), n.into())).collect();
    assert!(error(Value::Object(many)).len() < 1_000);
}

#[test]
fn what_the_type_takes_passes() {
    let schema = schema_for::<Args>();
    for value in [
        json!({"path": "a"}),
        json!({"path": "a", "limit": null, "mode": null}),
        json!({"path": "a", "limit": 10, "mode": "content", "edits": [{"old": ""}]}),
        json!({"file_path": "a"}),
    ] {
        typed::<Args>("t", &value, &schema).unwrap();
    }
    // An alias of a field is not checked against the schema, but it is deserialized.
    typed::<Args>("t", &json!({"file_path": 1}), &schema).unwrap_err();
}

#[test]
fn raw_text_is_read_with_suspicion() {
    let message = |raw: &str| read(raw.into(), 1_000).unwrap_err().to_string();
    for (raw, expected) in [
        ("{", "not valid JSON: EOF"),
        ("{\"path\": \"\\ud800\"}", "not valid JSON in 'path'"),
        ("{\"path\": \"\\ud800x\"}", "not valid JSON in 'path'"),
        ("{\"path\": \"\\udc00\"}", "not valid JSON in 'path'"),
        (
            "{\"path\": \"a\nb\"}",
            "not valid JSON in 'path': control character",
        ),
        ("{\"path\": 1} {}", "trailing characters"),
        ("[]", "must be a JSON object, not an empty list"),
        ("\"{}\"", "must be a JSON object, not '{}'"),
        ("7", "must be a JSON object, not 7"),
    ] {
        let text = message(raw);
        assert!(text.contains(expected), "{raw}: {text}");
    }
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(300), "]".repeat(300));
    assert!(
        message(&deep).contains("recursion limit"),
        "{}",
        message(&deep)
    );
    let text = message(&" ".repeat(1_001));
    assert!(
        text.contains("1001 bytes") && text.contains("1000"),
        "{text}"
    );
    for empty in ["", "  ", "null", "{}"] {
        assert_eq!(read(empty.into(), 1_000).unwrap(), json!({}));
    }
}

#[test]
fn values_have_limits_too() {
    let large = json!({"a": "x".repeat(1_000)});
    let text = read(large.into(), 1_000).unwrap_err().to_string();
    assert!(text.contains("more than the 1000"), "{text}");
    let mut deep = json!({});
    for _ in 0..200_000 {
        deep = Value::Array(vec![deep]);
        deep = Value::Object(Map::from_iter([("a".to_owned(), deep)]));
    }
    let text = read(deep.into(), 10_000_000).unwrap_err().to_string();
    assert!(text.contains("nested more than 128"), "{text}");
}
