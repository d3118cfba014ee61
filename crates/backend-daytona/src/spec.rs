//! The request for a new sandbox. No I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use backend_core::VPath;
use backend_core::ops::ContentHash;
use sandbox_wire::owner::{self, Owner};
use serde_json::{Map, Value, json};

use crate::instance::GIB;
use crate::labels;
use crate::options::Network;
use crate::settings::{Settings, Source, Timer};

/// Everything that a request depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub(crate) name: &'a str,
    pub(crate) settings: &'a Settings,
    pub(crate) source: &'a Source,
    pub(crate) working_dir: &'a VPath,
    pub(crate) target: Option<&'a str>,
    /// A random number of the object that creates it.
    pub(crate) creation: &'a str,
}

impl Plan<'_> {
    /// Returns the body of the request.
    pub(crate) fn body(&self) -> Value {
        let mut body = self.options();
        body.insert("name".to_owned(), json!(self.name));
        body.insert("labels".to_owned(), json!(self.labels()));
        Value::Object(body)
    }

    /// Returns a fingerprint of the options: equal for sandboxes that could be used in
    /// each other's place.
    pub(crate) fn fingerprint(&self) -> String {
        let mut options = self.options();
        options.insert("labels".to_owned(), json!(self.settings.labels));
        options.insert("workingDir".to_owned(), json!(self.working_dir.as_str()));
        let text = Value::Object(options).to_string();
        ContentHash::of(text.as_bytes()).to_string()
    }

    fn labels(&self) -> BTreeMap<String, String> {
        let mut all = self.settings.labels.clone();
        let mut add = |key: &str, value: String| all.insert(key.to_owned(), value);
        add(labels::MANAGED_BY, labels::MANAGER.to_owned());
        add(labels::SANDBOX, self.name.to_owned());
        add(labels::CONFIG, self.fingerprint());
        add(labels::CREATION, self.creation.to_owned());
        add(labels::WORKING_DIR, self.working_dir.to_string());
        let disposal = self.settings.disposal();
        add(labels::DISPOSAL, disposal.as_str().to_owned());
        if let Some(here) = Owner::current() {
            add(labels::OWNER, here.label());
            add(labels::HOST, owner::host());
        }
        if let Source::Dockerfile { image, .. } = self.source {
            add(labels::IMAGE, image.clone());
        }
        all
    }

    /// Returns everything but the name and the labels.
    fn options(&self) -> Map<String, Value> {
        let settings = self.settings;
        let mut all = Map::new();
        let mut set = |key: &str, value: Value| all.insert(key.to_owned(), value);
        let env = settings.env.iter();
        let env: BTreeMap<_, _> = env.map(|(name, value)| (name, value.expose())).collect();
        set("env", json!(env));
        set("public", json!(settings.public));
        match self.source {
            Source::Snapshot(None) => {}
            Source::Snapshot(Some(snapshot)) => drop(set("snapshot", json!(snapshot))),
            Source::Dockerfile { content, .. } => {
                set("buildInfo", json!({"dockerfileContent": content}));
            }
        }
        if let Some(target) = settings.target.as_deref().or(self.target) {
            set("target", json!(target));
        }
        for (key, value) in [
            ("cpu", settings.cpus.map(u64::from)),
            ("gpu", settings.gpus.map(u64::from)),
            ("memory", settings.memory.map(gib)),
            ("disk", settings.disk.map(gib)),
        ] {
            if let Some(value) = value {
                set(key, json!(value));
            }
        }
        if let Some(user) = &settings.user {
            set("user", json!(user));
        }
        match &settings.network {
            Network::None => drop(set("networkBlockAll", json!(true))),
            Network::Open => drop(set("networkBlockAll", json!(false))),
            Network::Allow { addresses, domains } => {
                set("networkBlockAll", json!(false));
                for (key, list) in [
                    ("networkAllowList", addresses),
                    ("domainAllowList", domains),
                ] {
                    if !list.is_empty() {
                        set(key, json!(list.join(",")));
                    }
                }
            }
        }
        for (key, timer, never) in [
            ("autoStopInterval", settings.auto_stop, 0),
            ("autoPauseInterval", settings.auto_pause, 0),
            ("autoArchiveInterval", settings.auto_archive, 0),
            ("autoDeleteInterval", settings.auto_delete, -1),
            ("ttlMinutes", settings.ttl, 0),
        ] {
            if let Some(minutes) = minutes(timer, never) {
                set(key, json!(minutes));
            }
        }
        if !settings.volumes.is_empty() {
            set("volumes", self.volumes());
        }
        if !settings.secrets.is_empty() {
            let one = |(variable, secret): (&String, &String)| json!({variable: secret});
            set("secrets", settings.secrets.iter().map(one).collect());
        }
        all
    }

    fn volumes(&self) -> Value {
        let volumes = self.settings.volumes.iter().map(|volume| {
            let mut one = json!({"volumeId": volume.volume, "mountPath": volume.target});
            if let Some(subpath) = &volume.subpath {
                one["subpath"] = json!(subpath);
            }
            one
        });
        volumes.collect()
    }
}

/// Returns bytes in the service's unit, rounded up.
fn gib(bytes: u64) -> u64 {
    bytes.div_ceil(GIB)
}

/// Returns a timer in minutes, rounded up; `None` if the service chooses.
fn minutes(timer: Timer, never: i64) -> Option<i64> {
    let minutes = |time: Duration| i64::try_from(time.as_secs().div_ceil(60)).unwrap_or(i64::MAX);
    timer.map(|time| time.map_or(never, minutes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::DaytonaBuilder;
    use crate::options::Volume;
    use crate::sandbox::DaytonaSandbox;

    fn planned<T>(builder: DaytonaBuilder, look: impl FnOnce(Plan<'_>) -> T) -> T {
        let account = crate::Account::builder().api_key("k").target("us").build();
        let valid = builder
            .account(account.unwrap())
            .settings
            .validate()
            .unwrap();
        look(Plan {
            name: "box",
            settings: &valid.settings,
            source: &valid.source,
            working_dir: &valid.working_dir,
            target: valid.account.target(),
            creation: "7",
        })
    }

    fn body(builder: DaytonaBuilder) -> Value {
        planned(builder, |plan| plan.body())
    }

    #[test]
    fn a_plain_sandbox_has_no_network_and_says_whose_it_is() {
        let body = body(DaytonaSandbox::builder());
        assert_eq!(body["networkBlockAll"], true);
        assert_eq!(
            (&body["name"], &body["target"]),
            (&json!("box"), &json!("us"))
        );
        for absent in [
            "snapshot",
            "buildInfo",
            "cpu",
            "autoStopInterval",
            "volumes",
            "secrets",
        ] {
            assert_eq!(body.get(absent), None, "{absent}");
        }
        let labels = body["labels"].as_object().unwrap();
        assert_eq!(labels[labels::SANDBOX], "box");
        assert_eq!(labels[labels::DISPOSAL], "remove");
        assert_eq!(labels[labels::WORKING_DIR], "/home/daytona");
        assert!(labels.contains_key(labels::OWNER));
        assert!(!labels.contains_key(labels::IMAGE));
    }

    #[test]
    fn every_option_is_sent() {
        let hour = Duration::from_secs(3_600);
        let body = body(
            DaytonaSandbox::builder()
                .image("python:3.12-slim")
                .env("A", "1")
                .label("team", "red")
                .secret("TOKEN", "prod-token")
                .cpus(2)
                .gpus(1)
                .memory(1536 * 1024 * 1024)
                .disk(3 * GIB)
                .user("root")
                .target("eu")
                .public(true)
                .volume(Volume::new("vol-1", "/data").subpath("a"))
                .network(Network::Allow {
                    addresses: vec!["192.0.2.0/24".into(), "198.51.100.0/24".into()],
                    domains: vec!["pypi.org".into()],
                })
                .auto_stop(None::<Duration>)
                .auto_archive(hour)
                .auto_delete(Duration::ZERO)
                .ttl(Duration::from_secs(61)),
        );
        for (key, value) in [
            (
                "buildInfo",
                json!({"dockerfileContent": "FROM python:3.12-slim\n"}),
            ),
            ("env", json!({"A": "1"})),
            ("secrets", json!([{"TOKEN": "prod-token"}])),
            ("cpu", json!(2)),
            ("gpu", json!(1)),
            ("memory", json!(2)),
            ("disk", json!(3)),
            ("user", json!("root")),
            ("target", json!("eu")),
            ("public", json!(true)),
            (
                "volumes",
                json!([{"volumeId": "vol-1", "mountPath": "/data", "subpath": "a"}]),
            ),
            ("networkBlockAll", json!(false)),
            ("networkAllowList", json!("192.0.2.0/24,198.51.100.0/24")),
            ("domainAllowList", json!("pypi.org")),
            ("autoStopInterval", json!(0)),
            ("autoArchiveInterval", json!(60)),
            ("autoDeleteInterval", json!(0)),
            ("ttlMinutes", json!(2)),
        ] {
            assert_eq!(body[key], value, "{key}");
        }
        assert_eq!(body["labels"]["team"], "red");
        assert_eq!(body["labels"][labels::IMAGE], "python:3.12-slim");
        assert_eq!(body["labels"][labels::WORKING_DIR], "/workspace");
    }

    #[test]
    fn a_runtime_is_sent_as_its_dockerfile() {
        let runtime = crate::Runtime::builtin("python-web").unwrap();
        let body = body(DaytonaSandbox::builder().runtime(runtime));
        let text = body["buildInfo"]["dockerfileContent"].as_str().unwrap();
        assert!(
            text.starts_with("FROM ") && text.contains("RUN ["),
            "{text}"
        );
        assert!(!text.contains("--mount"), "{text}");
        let image = body["labels"][labels::IMAGE].as_str().unwrap();
        assert!(image.starts_with("agentbox-runtime:python-web-"), "{image}");
    }

    #[test]
    fn the_fingerprint_is_that_of_the_options() {
        let of = |builder: DaytonaBuilder| planned(builder, |plan| plan.fingerprint());
        let plain = DaytonaSandbox::builder;
        assert_eq!(of(plain()), of(plain().name("other").keep(true)));
        let others = [
            plain().env("A", "1"),
            plain().snapshot("base"),
            plain().working_dir("/srv"),
            plain().network(Network::Open),
            plain().label("a", "b"),
            plain().auto_stop(None::<Duration>),
        ];
        for other in others {
            assert_ne!(of(plain()), of(other.clone()), "{other:?}");
        }
    }
}
