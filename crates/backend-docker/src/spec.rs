//! Converts options into the request to the daemon. No I/O: the results of all lookups
//! are passed in.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use backend_core::VPath;
use backend_core::ops::ContentHash;
use bollard::models::{ContainerCreateBody, HealthConfig, HostConfig, Mount, MountType};
use sandbox_runtime::SYSTEM_DIRECTORIES;
use sandbox_wire::owner::{self, Owner};

use crate::environment::{self, EnvironmentSources};
use crate::labels;
use crate::options::{Network, Relaxation, Source};
use crate::settings::{DEFAULT_PIDS, Settings};

/// Directory of our bind mounts. `/dev` is a fresh file system in every container, so
/// the mount points are not part of any layer.
const OURS: &str = "/dev/.agentbox";
/// Mount point of the agent.
pub(crate) const BOUND_AGENT: &str = "/dev/.agentbox/sandbox-agent";
/// Mount point of the directory for sockets.
pub(crate) const BOUND_SOCKETS: &str = "/dev/.agentbox/sockets";
/// Mount point of the additional certificates.
const BOUND_CERTIFICATES: &str = "/dev/.agentbox/ca.crt";
/// The home of a user that the image does not know.
const HOME: &str = "/home/agent";
/// The user in an image that does not name one.
const UNPRIVILEGED: (u32, u32) = (1000, 1000);

/// Further directories whose owner is never changed.
const MORE_SYSTEM_DIRECTORIES: [&str; 3] = ["/lib32", "/usr/bin", "/usr/lib"];

#[derive(Debug, Clone, Default)]
pub(crate) struct ImageFacts {
    /// The reference used in requests.
    pub(crate) reference: String,
    pub(crate) id: String,
    /// Its user, unless that is root.
    pub(crate) user: Option<String>,
    /// The working directory of its commands.
    pub(crate) working_dir: String,
    /// The architecture it was built for.
    pub(crate) architecture: String,
}

/// The user that commands run as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    /// The user as passed to the daemon.
    pub(crate) name: String,
    /// The uid and gid, if the user is given by numbers.
    pub(crate) ids: Option<(u32, u32)>,
    /// Whether the image may not know this user.
    pub(crate) unknown_to_image: bool,
}

impl User {
    /// Picks the user: the one in the options, the runtime's, the image's, the owner of
    /// the shared directory, else an unprivileged one.
    pub(crate) fn choose(
        settings: &Settings,
        facts: &ImageFacts,
        shared: Option<(u32, u32)>,
    ) -> Self {
        let runtime = || settings.runtime.as_ref()?.run_as_uid;
        let named = settings.user.clone();
        let named = named.or_else(|| runtime().map(|uid| format!("{uid}:{uid}")));
        if let Some(name) = named.or_else(|| facts.user.clone()) {
            return Self::named(name);
        }
        let (uid, gid) = shared.filter(|(uid, _)| *uid != 0).unwrap_or(UNPRIVILEGED);
        Self {
            unknown_to_image: true,
            ..Self::named(format!("{uid}:{gid}"))
        }
    }

    pub(crate) fn named(name: String) -> Self {
        let (user, group) = name.split_once(':').unwrap_or((&name, &name));
        let ids = match user {
            "root" => Some((0, 0)),
            _ => user.parse().ok().zip(group.parse().ok()),
        };
        Self {
            name,
            ids,
            unknown_to_image: false,
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.ids.is_some_and(|(uid, _)| uid == 0)
    }
}

/// A directory that must exist and belong to the sandbox's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedDir {
    pub(crate) path: String,
    pub(crate) mode: u32,
}

/// All inputs of a container's configuration.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) name: &'a str,
    /// A random number that no other container has.
    pub(crate) nonce: &'a str,
    pub(crate) settings: &'a Settings,
    pub(crate) working_dir: &'a VPath,
    pub(crate) facts: &'a ImageFacts,
    pub(crate) user: &'a User,
    /// The agent's path on the host, if it is mounted.
    pub(crate) agent: Option<&'a str>,
    /// Identifies that agent, for its label.
    pub(crate) stamp: Option<&'a str>,
    /// The directory of the host for sockets, if it is mounted.
    pub(crate) sockets: Option<&'a str>,
    /// The program that keeps the container alive.
    pub(crate) keep_alive: Vec<String>,
}

impl Plan<'_> {
    pub(crate) fn body(&self) -> ContainerCreateBody {
        let settings = self.settings;
        let certificates = settings.ca_bundle.is_some().then_some(BOUND_CERTIFICATES);
        let home = if settings.read_only_root {
            "/tmp"
        } else {
            HOME
        };
        let parts = EnvironmentSources {
            root: self.user.is_root(),
            home: self.user.unknown_to_image.then_some(home),
            certificates,
            runtime: settings.runtime.as_ref().map(|runtime| &runtime.env_vars),
        };
        let mut body = ContainerCreateBody {
            image: Some(self.facts.reference.clone()),
            user: Some(self.user.name.clone()),
            env: Some(environment::merged(&parts, &settings.env)),
            entrypoint: Some(self.keep_alive.clone()),
            cmd: Some(Vec::new()),
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            working_dir: Some(self.working_dir.to_string()),
            stop_signal: Some("SIGTERM".to_owned()),
            host_config: Some(self.host_config()),
            ..ContainerCreateBody::default()
        };
        body.labels = Some(self.labels(&body));
        body
    }

    fn host_config(&self) -> HostConfig {
        let settings = self.settings;
        let relaxed = |relaxation| settings.relaxed(relaxation);
        let mut security = Vec::new();
        if !relaxed(Relaxation::NewPrivileges) {
            security.push("no-new-privileges:true".to_owned());
        }
        if relaxed(Relaxation::UnconfinedSeccomp) {
            security.push("seccomp=unconfined".to_owned());
        } else if let Some(profile) = &settings.seccomp {
            security.push(format!("seccomp={profile}"));
        }
        let network = match &settings.network {
            _ if relaxed(Relaxation::HostNetwork) => "host",
            Network::None => "none",
            Network::Bridge => "bridge",
            Network::Named(name) => name,
        };
        let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let memory = bytes(settings.memory());
        let limited = !relaxed(Relaxation::UnlimitedMemory);
        let pids = if relaxed(Relaxation::UnlimitedProcesses) {
            -1
        } else {
            i64::from(settings.pids.unwrap_or(DEFAULT_PIDS))
        };
        HostConfig {
            cap_drop: Some(vec!["ALL".to_owned()]),
            cap_add: Some(settings.capabilities.iter().cloned().collect()),
            security_opt: Some(security),
            memory: limited.then_some(memory),
            memory_swap: limited.then(|| memory.saturating_add(bytes(settings.swap))),
            nano_cpus: settings.cpus.map(|cpus| (cpus * 1e9) as i64),
            cpu_shares: settings.cpu_shares.map(i64::from),
            pids_limit: Some(pids),
            init: Some(!settings.without_init),
            network_mode: Some(network.to_owned()),
            pid_mode: relaxed(Relaxation::HostProcesses).then(|| "host".to_owned()),
            ipc_mode: Some("private".to_owned()),
            readonly_rootfs: Some(settings.read_only_root),
            tmpfs: Some(self.tmpfs()),
            mounts: Some(self.mounts()),
            runtime: settings.oci_runtime.clone(),
            log_config: Some(labels::log_config(self.nonce)),
            ..HostConfig::default()
        }
    }

    fn tmpfs(&self) -> HashMap<String, String> {
        let owner = self.user.ids;
        let owner = owner.map(|(uid, gid)| format!("uid={uid},gid={gid}"));
        let asked = self.settings.tmpfs.iter();
        let mut all: HashMap<_, _> = asked
            .map(|(target, options)| {
                let mut words: Vec<&str> =
                    options.split(',').filter(|one| !one.is_empty()).collect();
                let has = |name: &str| words.iter().any(|one| one.split('=').next() == Some(name));
                let executable = !has("exec") && !has("noexec");
                // The user should be able to write there, unless the options say
                // otherwise.
                let has_owner = ["mode", "uid", "gid"].iter().any(|name| has(name));
                words.extend(executable.then_some("exec"));
                words.extend(owner.as_deref().filter(|_| !has_owner));
                (target.clone(), words.join(","))
            })
            .collect();
        if self.settings.read_only_root {
            if !self.is_mounted("/tmp") {
                all.insert("/tmp".to_owned(), "exec,mode=1777".to_owned());
            }
            if !self.is_mounted(self.working_dir.as_str()) {
                let options = match owner {
                    Some(owner) => format!("exec,mode=755,{owner}"),
                    None => "exec,mode=1777".to_owned(),
                };
                all.insert(self.working_dir.to_string(), options);
            }
        }
        all
    }

    fn mounts(&self) -> Vec<Mount> {
        let mount = |kind, source: &str, target: &str, read_only| Mount {
            typ: Some(kind),
            source: Some(source.to_owned()),
            target: Some(target.to_owned()),
            read_only: Some(read_only),
            ..Mount::default()
        };
        let mut all = Vec::new();
        for volume in &self.settings.volumes {
            let (kind, source) = match &volume.source {
                Source::Host(path) => (MountType::BIND, path.to_string_lossy()),
                Source::Named(name) => (MountType::VOLUME, name.into()),
            };
            all.push(mount(kind, &source, &volume.target, volume.read_only));
        }
        let mut bind =
            |source: &str, target| all.push(mount(MountType::BIND, source, target, true));
        if let Some(agent) = self.agent {
            bind(agent, BOUND_AGENT);
        }
        if let Some(sockets) = self.sockets {
            // A socket on a read-only mount can be connected to, and none can be made there.
            bind(sockets, BOUND_SOCKETS);
        }
        if let Some(path) = &self.settings.ca_bundle {
            bind(&path.to_string_lossy(), BOUND_CERTIFICATES);
        }
        all
    }

    fn labels(&self, body: &ContainerCreateBody) -> HashMap<String, String> {
        let mut all: HashMap<_, _> = self.settings.labels.clone().into_iter().collect();
        let mut set = |key: &str, value: String| all.insert(key.to_owned(), value);
        set(labels::SANDBOX, self.name.to_owned());
        set(labels::NONCE, self.nonce.to_owned());
        set(labels::CONFIG, self.fingerprint(body));
        let disposal = self.settings.disposal().as_str();
        set(labels::DISPOSAL, disposal.to_owned());
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map(|since| since.as_secs()).unwrap_or_default();
        set(labels::CREATED, now.to_string());
        if let Some(owner) = Owner::current() {
            set(labels::OWNER, owner.label());
            set(labels::HOST, owner::host());
        }
        if let Some(idle) = self.settings.idle_timeout {
            set(labels::IDLE, idle.as_secs().to_string());
        }
        if let (Some(_), Some(stamp)) = (self.agent, self.stamp) {
            set(labels::AGENT, stamp.to_owned());
        }
        if let Some(sockets) = self.sockets {
            set(labels::SOCKETS, sockets.to_owned());
        }
        all
    }

    /// Hashes the container's configuration: the options and the image, without the
    /// agent, the way to it, the program that keeps it alive, the nonce and the process that creates
    /// it.
    pub(crate) fn fingerprint(&self, body: &ContainerCreateBody) -> String {
        let mut same = body.clone();
        same.labels = Some(self.settings.labels.clone().into_iter().collect());
        same.image = Some(self.facts.id.clone());
        same.entrypoint = None;
        if let Some(config) = &mut same.host_config {
            config.log_config = None;
            if let Some(mounts) = &mut config.mounts {
                mounts.retain(|mount| {
                    let target = mount.target.as_deref();
                    target != Some(BOUND_AGENT) && target != Some(BOUND_SOCKETS)
                });
            }
        }
        // Converted into a value to sort its maps: those of a body have no order.
        let mut value = serde_json::to_value(&same).unwrap_or_default();
        value.sort_all_objects();
        let mut hash = ContentHash::of(value.to_string().as_bytes()).to_string();
        hash.truncate(32);
        hash
    }

    /// Returns the directories that must be given to the user once the container is
    /// created. Volumes in `fresh` were just created for it.
    pub(crate) fn owned(&self, fresh: &[String]) -> Vec<OwnedDir> {
        let settings = self.settings;
        let mut all = Vec::new();
        if self.user.is_root() || settings.read_only_root {
            return all;
        }
        let mut add = |path: &str, mode| {
            let path = path.to_owned();
            all.push(OwnedDir { path, mode });
        };
        if self.user.unknown_to_image && !self.is_mounted(HOME) {
            add(HOME, 0o700);
        }
        let work = self.working_dir.as_str();
        // An image that sets a user and this directory has given it to that user.
        let arranged = self.facts.user.is_some()
            && settings.user.is_none()
            && self.facts.working_dir.trim_end_matches('/') == work;
        let is_system =
            SYSTEM_DIRECTORIES.contains(&work) || MORE_SYSTEM_DIRECTORIES.contains(&work);
        if !arranged && !self.is_mounted(work) && !is_system {
            add(work, 0o755);
        }
        for volume in &settings.volumes {
            let given = match &volume.source {
                Source::Named(name) => fresh.contains(name),
                Source::Host(_) => volume.owned,
            };
            if given {
                add(&volume.target, 0o755);
            }
        }
        all
    }

    /// Whether a requested mount is at or above a path.
    fn is_mounted(&self, path: &str) -> bool {
        let volumes = self.settings.volumes.iter().map(|volume| &volume.target);
        let mut targets = volumes.chain(self.settings.tmpfs.keys());
        let Ok(path) = VPath::parse(path) else {
            return false;
        };
        targets.any(|target| VPath::parse(target).is_ok_and(|target| path.starts_with(&target)))
    }
}

/// Whether a path in a container is one of our mount points.
pub(crate) fn is_ours(path: &str) -> bool {
    path.starts_with(OURS)
}

#[cfg(test)]
mod tests;
