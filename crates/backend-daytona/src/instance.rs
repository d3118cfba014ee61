//! [`Instance`]: a sandbox of the service, as it was read.

use std::collections::BTreeMap;
use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::Value;

use crate::check;
use crate::labels;
use crate::state::InstanceState;

/// The bytes of the unit in which the service counts memory and disk space.
pub(crate) const GIB: u64 = 1024 * 1024 * 1024;

/// A sandbox of the service, as it was read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Instance {
    /// Its id.
    pub id: String,
    /// Its name, which is unique in the organization.
    pub name: String,
    /// Its state.
    pub state: InstanceState,
    /// Why it is in an error, in the service's words.
    pub reason: Option<String>,
    /// All of its labels.
    pub labels: BTreeMap<String, String>,
    /// Its region.
    pub target: String,
    /// The snapshot that it was created from.
    pub snapshot: Option<String>,
    /// Its number of CPUs.
    pub cpus: Option<f64>,
    /// Its memory in bytes.
    pub memory: Option<u64>,
    /// Its disk space in bytes.
    pub disk: Option<u64>,
    /// The time it was created.
    pub created: Option<SystemTime>,
    /// The time it was last used, as far as the service knows.
    pub last_activity: Option<SystemTime>,
    /// The address of its toolbox, without its id.
    pub(crate) toolbox: Option<String>,
}

impl Instance {
    /// Reads the service's description. `None` if it has no id that can be part of an
    /// address. Whatever else is missing, unknown or of another type is left out.
    pub(crate) fn read(description: &Value) -> Option<Self> {
        let field = |name: &str| description.get(name);
        let text = |name: &str| {
            let text = field(name).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let time = |name: &str| {
            let time: Timestamp = text(name)?.parse().ok()?;
            Some(SystemTime::from(time))
        };
        let bytes = |name: &str| {
            let gib = field(name)
                .and_then(Value::as_f64)
                .filter(|gib| *gib >= 0.0)?;
            // Saturates.
            Some((gib * GIB as f64) as u64)
        };
        let id = text("id").filter(|id| check::is_word(id))?;
        let state = field("state").and_then(Value::as_str);
        let recoverable = field("recoverable").and_then(Value::as_bool);
        let labels = field("labels").and_then(Value::as_object);
        let labels = labels.into_iter().flatten().filter_map(|(key, value)| {
            let value = value.as_str()?;
            Some((key.clone(), value.to_owned()))
        });
        Some(Self {
            // Messages and lists show it.
            name: text("name")
                .filter(|name| check::name("a sandbox", name).is_ok())
                .unwrap_or_else(|| id.clone()),
            id,
            state: InstanceState::read(state, recoverable.unwrap_or_default()),
            reason: text("errorReason"),
            labels: labels.collect(),
            target: text("target").unwrap_or_default(),
            snapshot: text("snapshot"),
            cpus: field("cpu").and_then(Value::as_f64),
            memory: bytes("memory"),
            disk: bytes("disk"),
            created: time("createdAt"),
            last_activity: time("lastActivityAt"),
            toolbox: text("toolboxProxyUrl"),
        })
    }

    /// Whether this crate created it.
    pub fn is_ours(&self) -> bool {
        labels::is_ours(&self.name, &self.labels)
    }

    /// Whether the process that created it is certainly gone. `false` for processes of
    /// other hosts and pid namespaces.
    pub fn is_abandoned(&self) -> bool {
        labels::judge()(&self.labels)
    }

    /// Returns the snapshot or the image that it was created from, to be shown.
    pub(crate) fn origin(&self) -> String {
        let image = self.labels.get(labels::IMAGE);
        image
            .or(self.snapshot.as_ref())
            .cloned()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_description_is_read() {
        let read = Instance::read(&json!({
            "id": "id-1", "name": "box", "state": "started", "target": "us",
            "labels": {"a": "b"}, "cpu": 2, "memory": 1.5, "disk": 3,
            "createdAt": "1970-01-01T00:00:07.000Z", "toolboxProxyUrl": "https://p/toolbox",
            "snapshot": "base", "futureField": {"x": [1]}
        }));
        let read = read.unwrap();
        assert_eq!((&*read.id, &*read.name), ("id-1", "box"));
        assert_eq!(read.state, InstanceState::Started);
        assert_eq!(read.labels["a"], "b");
        assert_eq!((read.cpus, read.memory), (Some(2.0), Some(GIB + GIB / 2)));
        assert_eq!(read.created, Some(UNIX_EPOCH + Duration::from_secs(7)));
        assert_eq!(read.toolbox.as_deref(), Some("https://p/toolbox"));
        assert_eq!(read.origin(), "base");
        assert!(!read.is_ours());
    }

    #[test]
    fn only_an_id_is_needed() {
        let read = Instance::read(&json!({"id": "x"})).unwrap();
        assert_eq!((&*read.name, read.state), ("x", InstanceState::Starting));
        assert_eq!(Instance::read(&json!({"name": "x"})), None);
        for bad in ["", "..", "a/b", "a b"] {
            assert_eq!(Instance::read(&json!({"id": bad})), None);
        }
        assert_eq!(Instance::read(&json!([])), None);
        let odd = json!({
            "id": "x", "name": null, "state": 7, "labels": ["a"], "cpu": "two", "memory": -1,
            "createdAt": "yesterday", "recoverable": "yes", "toolboxProxyUrl": ""
        });
        assert_eq!(Instance::read(&odd), Instance::read(&json!({"id": "x"})));
        for shown in ["\u{1b}[2J", &*"x".repeat(1_000)] {
            let read = Instance::read(&json!({"id": "x", "name": shown})).unwrap();
            assert_eq!(read.name, "x");
        }
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(text in ".{0,40}", number in any::<f64>(), word in "[a-z_]{0,20}") {
            for value in [json!(text), json!(number), json!(null), json!({&*text: number})] {
                let read = Instance::read(&json!({
                    "id": "x", "name": value, "state": word, "labels": {"k": value}, "memory": value,
                    "disk": value, "createdAt": value, "lastActivityAt": value, "errorReason": value
                }));
                prop_assert!(read.is_some());
            }
        }
    }
}
