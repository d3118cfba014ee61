//! The kinds of backends: their names, their syntax and the names of their settings.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::Table;

use crate::exit::{Failure, usage};

/// The config key of the directories that a local backend reaches besides its own.
pub(crate) const ALLOWED_DIRECTORIES: &str = "allowed_directories";

const LOCAL_KEYS: &str = "\
    allowed_directories commands confinement cpu_seconds environment file_bytes memory_bytes \
    network processes read read_only shell variables write";

const DOCKER_KEYS: &str = "\
    address agent base_images ca_bundle capabilities cpu_shares cpus delivery env idle_timeout \
    image keep labels logins memory mode name network oci_runtime pids read_only relax runtime \
    runtimes seccomp swap tmpfs user volumes work_dir";

const K8S_KEYS: &str = "\
    active_deadline affinity agent agent_image annotations api_access capabilities context cpus \
    delivery empty_dirs env grace idle_timeout image keep kubeconfig labels memory mode name \
    namespace network node_selector overlay owner_pod pull_policy pull_secrets relax \
    request_cpus request_memory runtime runtime_class runtime_images service_account \
    session_volumes start_timeout storage_class tmpfs tolerations user volumes work_dir";

const DAYTONA_KEYS: &str = "\
    agent api_key_file api_url auto_archive auto_delete auto_stop cpus disk env gpus idle_timeout \
    image keep labels memory mode name network public recover runtime secrets snapshot \
    start_timeout target ttl user volumes work_dir";

/// A kind of backend. Every build knows all of them, so that it reads any config file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Local,
    State,
    Docker,
    K8s,
    Daytona,
    Composite,
    Mounts,
}

pub(crate) type Tables = BTreeMap<Kind, Table>;

impl Kind {
    pub(crate) const ALL: [Self; 7] = [
        Self::Local,
        Self::State,
        Self::Docker,
        Self::K8s,
        Self::Daytona,
        Self::Composite,
        Self::Mounts,
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the name before the colon and of its table in the config file.
    pub(crate) fn name(self) -> &'static str {
        let usage = self.usage();
        usage.split([':', '[']).next().unwrap_or(usage)
    }

    /// Returns the syntax of its specification, which begins with its name.
    pub(crate) fn usage(self) -> &'static str {
        match self {
            Self::Local => "local:DIR",
            Self::State => "state[:FILE]",
            Self::Docker => "docker[:IMAGE|:runtime=NAME|:attach=ID]",
            Self::K8s => "k8s[:IMAGE|:runtime=NAME|:attach=POD]",
            Self::Daytona => "daytona[:IMAGE|:snapshot=NAME|:runtime=NAME|:attach=ID]",
            Self::Composite => "composite:FILE",
            Self::Mounts => "mounts:FILE",
        }
    }

    /// Returns the keys of its table, in order.
    pub(crate) fn keys(self) -> impl Iterator<Item = &'static str> {
        let keys = match self {
            Self::Local => LOCAL_KEYS,
            Self::State => "max_file_bytes max_total_bytes",
            Self::Docker => DOCKER_KEYS,
            Self::K8s => K8S_KEYS,
            Self::Daytona => DAYTONA_KEYS,
            Self::Composite | Self::Mounts => "",
        };
        keys.split_whitespace()
    }

    /// Returns the keys of paths of this machine. A colon and more may follow a path.
    pub(crate) fn path_keys(self) -> impl Iterator<Item = &'static str> {
        let keys = match self {
            Self::Local => "allowed_directories read write",
            Self::Docker => "agent ca_bundle logins runtimes seccomp volumes",
            Self::K8s => "agent kubeconfig",
            Self::Daytona => "agent api_key_file",
            Self::State | Self::Composite | Self::Mounts => "",
        };
        keys.split_whitespace()
    }

    pub(crate) fn settings<T: DeserializeOwned>(self, tables: &Tables) -> Result<T, Failure> {
        let settings = tables.get(&self).cloned().unwrap_or_default().try_into();
        settings.map_err(|error: toml::de::Error| {
            let (name, error) = (self.name(), error.to_string().replace('\n', " "));
            usage!(
                "the settings of {name} are wrong: {}; correct them in [{name}] of the config file",
                error.trim(),
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
