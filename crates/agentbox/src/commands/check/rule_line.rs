//! The line of a rule in its file.

use std::collections::HashMap;

use permissions::{Op, Reason, Vote};
use serde::Deserialize;
use serde_json::value::RawValue;
use toml::de::DeTable;

use crate::rules::{Rules, Source};

/// Returns the line of the rule or default that decided a vote.
pub(super) fn line(vote: &Vote, rules: &Rules) -> Option<usize> {
    let Source::File(path, text) = &rules.source else {
        return None;
    };
    let (section, rule) = match &vote.reason {
        Reason::Rule(rule) => (rule.op, Some(rule.index)),
        Reason::Default(op) => (*op, None),
        _ => return None,
    };
    let json = path.extension().is_some_and(|end| end == "json");
    let offset = if json {
        in_json(text, section, rule)
    } else {
        in_toml(text, section, rule)
    };
    let before = text.get(..offset?)?;
    Some(before.matches('\n').count() + 1)
}

/// Returns the offset of a rule, or of the section's default, else the global one.
fn in_toml(text: &str, section: Op, rule: Option<usize>) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let table = table.get_ref();
    let section = table.get(section.as_str());
    let section = section.and_then(|section| section.get_ref().as_table());
    match rule {
        Some(index) => {
            let rules = section?.get("rules")?.get_ref().as_array()?;
            Some(rules.get(index)?.span().start)
        }
        None => {
            let default = section.and_then(|section| section.get("default"));
            Some(default.or_else(|| table.get("default"))?.span().start)
        }
    }
}

#[derive(Deserialize)]
struct Section<'t> {
    #[serde(borrow, default)]
    default: Option<&'t RawValue>,
    #[serde(borrow, default)]
    rules: Vec<&'t RawValue>,
}

fn in_json(text: &str, section: Op, rule: Option<usize>) -> Option<usize> {
    let table: HashMap<&str, &RawValue> = serde_json::from_str(text).ok()?;
    let section = table.get(section.as_str());
    let section = section.and_then(|raw| serde_json::from_str::<Section<'_>>(raw.get()).ok());
    let raw = match rule {
        Some(index) => *section?.rules.get(index)?,
        None => {
            let default = section.and_then(|section| section.default);
            default.or_else(|| table.get("default").copied())?
        }
    };
    // A raw value borrows from the text, so its address gives the offset.
    (raw.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str = "default = \"ask\"\n\n[read]\ndefault = \"allow\"\n\n[[read.rules]]\npattern = \"/a\"\naction = \"deny\"\n\n[[read.rules]]\npattern = \"/b\"\naction = \"deny\"\n\n[write]\nrules = [\n  { pattern = \"/c\", action = \"deny\" },\n]\n";

    const JSON: &str = "{\n  \"default\": \"ask\",\n  \"read\": {\n    \"rules\": [\n      {\"pattern\": \"/a\", \"action\": \"deny\"},\n      {\"pattern\": \"/b\", \"action\": \"deny\"}\n    ]\n  }\n}\n";

    #[test]
    fn rules_are_found() {
        let line = |text: &str, offset: Option<usize>| {
            offset.map(|offset| text[..offset].matches('\n').count() + 1)
        };
        let toml = |op, rule| line(TOML, in_toml(TOML, op, rule));
        assert_eq!(toml(Op::Read, Some(0)), Some(6));
        assert_eq!(toml(Op::Read, Some(1)), Some(10));
        assert_eq!(toml(Op::Read, None), Some(4));
        assert_eq!(toml(Op::Write, Some(0)), Some(16));
        assert_eq!(toml(Op::Edit, None), Some(1));
        assert_eq!(toml(Op::Read, Some(2)), None);
        let json = |op, rule| line(JSON, in_json(JSON, op, rule));
        assert_eq!(json(Op::Read, Some(1)), Some(6));
        assert_eq!(json(Op::Read, None), Some(2));
        assert_eq!(json(Op::Edit, Some(0)), None);
    }
}
