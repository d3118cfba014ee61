//! [`PortRules`]: the ports that may be connected to.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use backend_core::Quoted;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::action::{Action, Op};
use crate::verdict::{Layer, MatchedRule, Reason, Vote};

/// The rules for connecting to ports. The first match decides.
///
/// ```
/// use backend_core::VPath;
/// use permissions::{Action, Ruleset};
///
/// let rules = Ruleset::from_toml(
///     r#"
///     [connect]
///     default = "deny"
///
///     [[connect.rules]]
///     ports = "3000-3999"
///     action = "allow"
///     "#,
/// )?
/// .compile(&VPath::root());
/// assert_eq!(rules.judge_port(3000).action, Action::Allow);
/// assert_eq!(rules.judge_port(5432).action, Action::Deny);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct PortRules {
    /// The action for ports that no rule matches.
    pub default: Action,
    /// The rules, in order.
    pub rules: Vec<PortRule>,
}

impl Default for PortRules {
    fn default() -> Self {
        Self {
            default: Action::Allow,
            rules: Vec::new(),
        }
    }
}

/// The action for a port or a range of ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[non_exhaustive]
pub struct PortRule {
    /// The ports.
    pub ports: PortRange,
    /// The action for these ports.
    pub action: Action,
    /// The reason, for people and models.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

crate::tables_only!(PortRules, PortRule);

impl PortRule {
    /// Creates a rule without a description.
    pub fn new(ports: PortRange, action: Action) -> Self {
        Self {
            ports,
            action,
            description: String::new(),
        }
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }
}

/// A port, such as `8080`, or a range of ports with both ends, such as `3000-3999`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Whether the port is in the range.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl From<u16> for PortRange {
    fn from(port: u16) -> Self {
        Self {
            first: port,
            last: port,
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.first == self.last {
            return Ok(());
        }
        write!(f, "-{}", self.last)
    }
}

/// The error for a text that is not a port or a range of ports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a port; use a number from 1 to 65535, or two with a dash, as in 3000-3999")]
pub struct PortRangeError(Quoted);

impl FromStr for PortRange {
    type Err = PortRangeError;

    fn from_str(text: &str) -> Result<Self, PortRangeError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            let port = text.parse().ok().filter(|port| *port > 0 && is_number);
            port.ok_or_else(|| PortRangeError(Quoted::new(text)))
        };
        let (first, last) = (port(first.trim())?, port(last.trim())?);
        if first > last {
            return Err(PortRangeError(Quoted::new(text)));
        }
        Ok(Self { first, last })
    }
}

impl Serialize for PortRange {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(PortVisitor)
    }
}

/// Reads a number, or a text.
struct PortVisitor;

impl Visitor<'_> for PortVisitor {
    type Value = PortRange;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a port or a range of ports")
    }

    fn visit_i64<E: serde::de::Error>(self, port: i64) -> Result<PortRange, E> {
        self.visit_str(&port.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, port: u64) -> Result<PortRange, E> {
        self.visit_str(&port.to_string())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PortRange, E> {
        text.parse().map_err(E::custom)
    }
}

/// The compiled rules for ports.
#[derive(Debug)]
pub(super) struct PortSection {
    default: Action,
    rules: Vec<(PortRange, Arc<MatchedRule>)>,
}

impl PortSection {
    /// Compiles a section. Without one, `default` applies to every port.
    pub(super) fn new(section: Option<&PortRules>, default: Action) -> Self {
        let rules = section.map_or(&[][..], |section| &section.rules);
        let compiled = rules.iter().enumerate().map(|(index, rule)| {
            let matched = MatchedRule {
                op: Op::Connect,
                index,
                pattern: rule.ports.to_string(),
                action: rule.action,
                description: rule.description.clone(),
            };
            (rule.ports, Arc::new(matched))
        });
        Self {
            default: section.map_or(default, |section| section.default),
            rules: compiled.collect(),
        }
    }

    pub(super) fn judge(&self, port: u16) -> Vote {
        let mut rules = self.rules.iter();
        match rules.find(|(ports, _)| ports.contains(port)) {
            Some((_, rule)) => Vote::new(Layer::Rules, rule.action, Reason::Rule(Arc::clone(rule))),
            None => Vote::new(Layer::Rules, self.default, Reason::Default(Op::Connect)),
        }
    }

    /// Returns the most lenient action for any port.
    pub(super) fn most_lenient(&self) -> Action {
        let rules = self.rules.iter().map(|(_, rule)| rule.action);
        rules.chain([self.default]).min().unwrap_or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use backend_core::VPath;

    use super::*;
    use crate::rules::{Preset, Ruleset};

    #[test]
    fn ranges_are_parsed_strictly() {
        for (text, shown) in [
            ("1", "1"),
            ("80-90", "80-90"),
            ("7 - 7", "7"),
            ("65535", "65535"),
        ] {
            assert_eq!(text.parse::<PortRange>().unwrap().to_string(), shown);
        }
        for text in [
            "", "0", "65536", "-1", "90-80", "1-", "-", "+8", "1-2-3", "http", "0-9",
        ] {
            assert!(text.parse::<PortRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_first_match_decides() {
        let text = r#"
            default = "allow"
            [connect]
            default = "ask"
            rules = [
                { ports = 3005, action = "deny", description = "the metrics" },
                { ports = "3000-3999", action = "allow" },
            ]
        "#;
        let ruleset = Ruleset::from_toml(text).unwrap();
        let again = Ruleset::from_json(&ruleset.to_json().unwrap()).unwrap();
        assert_eq!(again, ruleset);
        let rules = ruleset.compile(&VPath::root());
        for (port, action) in [
            (2999, Action::Ask),
            (3000, Action::Allow),
            (3005, Action::Deny),
            (3999, Action::Allow),
            (4000, Action::Ask),
        ] {
            assert_eq!(rules.judge_port(port).action, action, "{port}");
        }
        let denied = rules.judge_port(3005).to_string();
        assert_eq!(
            denied,
            "rules: deny, by rule 1 of connect ('3005'): the metrics"
        );
        assert_eq!(rules.most_lenient(Op::Connect), Action::Allow);
    }

    #[test]
    fn without_a_section_the_default_applies() {
        for (preset, action) in [
            (Preset::Default, Action::Ask),
            (Preset::Permissive, Action::Allow),
            (Preset::Readonly, Action::Deny),
            (Preset::Strict, Action::Ask),
        ] {
            let rules = preset.ruleset().compile(&VPath::root());
            assert_eq!(rules.judge_port(8080).action, action, "{preset:?}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for ports in ["0", "\"99999\"", "true", "\"80-\"", "[80]"] {
            let text = format!("[[connect.rules]]\nports = {ports}\naction = \"allow\"\n");
            let error = Ruleset::from_toml(&text).unwrap_err();
            assert!(error.to_string().contains("port"), "{error}");
        }
    }
}
