//! The kinds of backends: their names, their syntax and the names of their settings.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::Table;

use crate::exit::{Failure, usage};

/// The config key of the directories that a local backend reaches besides its own.
pub(crate) const ALLOWED_DIRECTORIES: &str = "allowed_directories";

/// The keys of `[local]`, in order.
const LOCAL_KEYS: &[&str] = &[
    ALLOWED_DIRECTORIES,
    "commands",
    "confinement",
    "cpu_seconds",
    "environment",
    "file_bytes",
    "memory_bytes",
    "network",
    "processes",
    "read",
    "read_only",
    "shell",
    "variables",
    "write",
];

/// The keys of `[docker]`, in order.
const DOCKER_KEYS: &[&str] = &[
    "address",
    "agent",
    "base_images",
    "ca_bundle",
    "capabilities",
    "cpu_shares",
    "cpus",
    "delivery",
    "env",
    "idle_timeout",
    "image",
    "keep",
    "labels",
    "logins",
    "memory",
    "mode",
    "name",
    "network",
    "oci_runtime",
    "pids",
    "read_only",
    "relax",
    "runtime",
    "runtimes",
    "seccomp",
    "swap",
    "tmpfs",
    "user",
    "volumes",
    "work_dir",
];

/// A kind of backend. Every build knows all of them, so that a config file works with
/// every build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Local,
    State,
    Docker,
    Composite,
    Mounts,
}

/// The meaning of the text after the colon of a specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Argument {
    /// The directory of this machine that holds the files.
    Directory,
    /// A file of this machine.
    File,
    /// Not a path of this machine.
    Name,
}

/// The config tables of all kinds.
pub(crate) type Tables = BTreeMap<Kind, Table>;

impl Kind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Local,
        Self::State,
        Self::Docker,
        Self::Composite,
        Self::Mounts,
    ];

    /// Returns the kind with a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the name before the colon, which is also that of its table in the config
    /// file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::State => "state",
            Self::Docker => "docker",
            Self::Composite => "composite",
            Self::Mounts => "mounts",
        }
    }

    /// Returns the syntax of its specification.
    pub(crate) fn usage(self) -> &'static str {
        match self {
            Self::Local => "local:DIR",
            Self::State => "state[:FILE]",
            Self::Docker => "docker[:IMAGE|:runtime=NAME|:attach=ID]",
            Self::Composite => "composite:FILE",
            Self::Mounts => "mounts:FILE",
        }
    }

    pub(crate) fn argument(self) -> Argument {
        match self {
            Self::Local => Argument::Directory,
            Self::State | Self::Composite | Self::Mounts => Argument::File,
            Self::Docker => Argument::Name,
        }
    }

    /// Returns the keys of its table.
    pub(crate) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Local => LOCAL_KEYS,
            Self::State => &["max_file_bytes", "max_total_bytes"],
            Self::Docker => DOCKER_KEYS,
            Self::Composite | Self::Mounts => &[],
        }
    }

    /// Returns the keys whose values are paths of this machine, or begin with a path
    /// and a colon.
    pub(crate) fn path_keys(self) -> &'static [&'static str] {
        match self {
            Self::Local => &[ALLOWED_DIRECTORIES, "read", "write"],
            Self::Docker => &[
                "agent",
                "ca_bundle",
                "logins",
                "runtimes",
                "seccomp",
                "volumes",
            ],
            Self::State | Self::Composite | Self::Mounts => &[],
        }
    }

    /// Reads its table.
    pub(crate) fn settings<T: DeserializeOwned>(self, tables: &Tables) -> Result<T, Failure> {
        let settings = tables.get(&self).cloned().unwrap_or_default().try_into();
        settings.map_err(|error: toml::de::Error| {
            let (name, error) = (self.name(), error.to_string());
            let what: Vec<&str> = error.lines().collect();
            usage!(
                "the settings of {name} are wrong: {}; correct them in [{name}] of the config file",
                what.join(" ").trim(),
            )
        })
    }
}

/// Lists the syntax of all kinds.
pub(crate) fn usages(before_last: &str) -> String {
    let mut all: Vec<&str> = Kind::ALL.into_iter().map(Kind::usage).collect();
    let last = all.pop().unwrap_or_default();
    format!("{} {before_last} {last}", all.join(", "))
}
