//! Converts options into the pod that is created. No I/O.

use std::collections::BTreeMap;

use backend_core::VPath;
use backend_core::ops::ContentHash;
use sandbox_runtime::environment;
use sandbox_shell::Disposal;
use sandbox_wire::agent;
use sandbox_wire::owner::{self, Owner};
use serde_json::{Map, Value, json};

use crate::labels::{self, CONTAINER};
use crate::options::{Network, Relaxation, Source, Volume};
use crate::overlay;
use crate::settings::{DEFAULT_REQUEST_CPUS, DEFAULT_REQUEST_MEMORY, Settings};

/// The directory for the agent, in a volume of its own.
pub(crate) const AGENT_DIRECTORY: &str = "/.agentbox";
/// The home of the user, which most images do not know.
const HOME: &str = "/home/agent";
/// The directory for the files of a working directory that come from the image.
const SEED: &str = "/.agentbox-seed";

/// Keeps the pod alive, reaps the processes that lost their parent, and ends at once when
/// it is asked to. As the first process of a container, `sleep` alone would do neither.
const KEEP_ALIVE: &str = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait; done";
/// Copies the image's files into an empty working directory, which hides them.
const COPY: &str = r#"[ -n "$(ls -A "$2")" ] || cp -RP "$1/." "$2""#;

/// All inputs of a pod.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) name: &'a str,
    pub(crate) settings: &'a Settings,
    pub(crate) image: &'a str,
    pub(crate) working_dir: &'a VPath,
    /// The image of the init container that brings the agent. Without it, the sandbox's
    /// image keeps the pod alive by its own shell.
    pub(crate) agent_image: Option<&'a str>,
    /// Identifies the object that creates the pod.
    pub(crate) creation: &'a str,
}

impl Plan<'_> {
    /// Returns the pod as it is sent to the cluster.
    pub(crate) fn pod(&self) -> Value {
        let mut pod = self.template();
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        let config = self.fingerprint();
        let metadata = &mut pod["metadata"];
        metadata["name"] = self.name.into();
        metadata["labels"][labels::SANDBOX] = self.name.into();
        metadata["labels"][labels::MANAGED_BY] = labels::MANAGER.into();
        metadata["labels"][labels::NETWORK] = self.settings.network.label().into();
        let disposal = self.settings.disposal();
        let annotations = &mut metadata["annotations"];
        annotations[labels::CONFIG] = config.into();
        annotations[labels::CREATION] = self.creation.into();
        annotations[labels::DISPOSAL] = disposal.as_str().into();
        if let Some(owner) = Owner::current() {
            annotations[labels::OWNER] = owner.label().into();
            annotations[labels::HOST] = owner::host().into();
        }
        if let Some(idle) = self.settings.idle_timeout {
            annotations[labels::IDLE] = idle.as_secs().to_string().into();
        }
        if let (Some((name, uid)), Disposal::Remove) = (&self.settings.owner_pod, disposal) {
            let reference = json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid});
            let overlay = json!({"metadata": {"ownerReferences": [reference]}});
            return overlay::merge(pod, &overlay);
        }
        pod
    }

    /// Hashes the configuration of the pod: the options and the image, without the way
    /// the agent gets into it and the process that creates it.
    pub(crate) fn fingerprint(&self) -> String {
        let same = Plan {
            agent_image: None,
            name: "",
            creation: "",
            ..*self
        };
        let mut template = same.template();
        template.sort_all_objects();
        let mut hash = ContentHash::of(template.to_string().as_bytes()).to_string();
        hash.truncate(32);
        hash
    }

    /// Returns the part of the pod that follows from the options.
    fn template(&self) -> Value {
        let settings = self.settings;
        let pod = json!({
            "metadata": {"labels": settings.labels, "annotations": settings.annotations},
            "spec": self.spec(),
        });
        match &settings.overlay {
            Some(overlay) => overlay::merge(pod, overlay),
            None => pod,
        }
    }

    fn spec(&self) -> Value {
        let settings = self.settings;
        let volumes = self.volumes();
        let mounts = volumes.iter().map(Mounted::mount).collect();
        let mut spec = json!({
            "restartPolicy": "Always",
            "automountServiceAccountToken": settings.mount_token,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": settings.grace().as_secs(),
            "securityContext": self.pod_security(),
            "containers": [self.container(CONTAINER, self.image, mounts)],
            "volumes": volumes.iter().map(Mounted::volume).collect::<Vec<_>>(),
        });
        let sandbox = &mut spec["containers"][0];
        sandbox["command"] = match self.agent_image {
            Some(_) => json!([agent_path(), "--hold"]),
            None => json!(["sh", "-c", KEEP_ALIVE]),
        };
        sandbox["workingDir"] = self.working_dir.as_str().into();
        sandbox["env"] = self.environment();
        let init = self.init_containers(&volumes);
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                spec[key] = value;
            }
        };
        set("initContainers", (!init.is_empty()).then(|| init.into()));
        // Where nothing can be reached, the name server of the cluster is of no use.
        let closed = settings.network == Network::None;
        set("dnsPolicy", closed.then(|| "Default".into()));
        let some = |text: &Option<String>| text.clone().map(Value::from);
        set("serviceAccountName", some(&settings.service_account));
        set("runtimeClassName", some(&settings.runtime_class));
        set("affinity", settings.affinity.clone());
        let deadline = settings.active_deadline;
        set(
            "activeDeadlineSeconds",
            deadline.map(|time| time.as_secs().into()),
        );
        let tolerations = &settings.tolerations;
        set(
            "tolerations",
            (!tolerations.is_empty()).then(|| json!(tolerations)),
        );
        let selector = &settings.node_selector;
        set(
            "nodeSelector",
            (!selector.is_empty()).then(|| json!(selector)),
        );
        let secrets = settings.image_pull_secrets.iter();
        let secrets: Vec<_> = secrets.map(|name| json!({"name": name})).collect();
        set(
            "imagePullSecrets",
            (!secrets.is_empty()).then(|| secrets.into()),
        );
        spec
    }

    fn pod_security(&self) -> Value {
        let relaxed = |relaxation| self.settings.relaxed(relaxation);
        let seccomp = if relaxed(Relaxation::UnconfinedSeccomp) {
            "Unconfined"
        } else {
            "RuntimeDefault"
        };
        let mut security = json!({"seccompProfile": {"type": seccomp}});
        if let Some((uid, gid)) = self.settings.user() {
            security["runAsUser"] = uid.into();
            security["runAsGroup"] = gid.into();
            security["fsGroup"] = gid.into();
            security["fsGroupChangePolicy"] = "OnRootMismatch".into();
        }
        if !relaxed(Relaxation::Root) {
            security["runAsNonRoot"] = true.into();
        }
        security
    }

    fn container(&self, name: &str, image: &str, mounts: Vec<Value>) -> Value {
        let settings = self.settings;
        let relaxed = |relaxation| settings.relaxed(relaxation);
        let mut capabilities = json!({"drop": ["ALL"]});
        if !settings.capabilities.is_empty() {
            capabilities["add"] = json!(settings.capabilities);
        }
        json!({
            "name": name,
            "image": image,
            "imagePullPolicy": settings.pull_policy.as_str(),
            "resources": self.resources(),
            "securityContext": {
                "allowPrivilegeEscalation": relaxed(Relaxation::PrivilegeEscalation),
                "readOnlyRootFilesystem": !relaxed(Relaxation::WritableRoot),
                "capabilities": capabilities,
            },
            "volumeMounts": mounts,
        })
    }

    fn resources(&self) -> Value {
        let settings = self.settings;
        let memory = settings.request_memory;
        let memory = memory.unwrap_or(DEFAULT_REQUEST_MEMORY.min(settings.memory()));
        let most = settings.cpus.unwrap_or(f64::INFINITY);
        let cpus = settings.request_cpus;
        let cpus = cpus.unwrap_or(DEFAULT_REQUEST_CPUS.min(most));
        let mut limits = json!({"memory": settings.memory().to_string()});
        if let Some(cpus) = settings.cpus {
            limits["cpu"] = quantity(cpus).into();
        }
        json!({
            "limits": limits,
            "requests": {"memory": memory.to_string(), "cpu": quantity(cpus)},
        })
    }

    /// Returns all variables. The user's values take precedence over the runtime's, and those
    /// over the defaults.
    fn environment(&self) -> Value {
        let settings = self.settings;
        let is_root = settings.user().is_some_and(|(uid, _)| uid == 0);
        let mut all: BTreeMap<&str, &str> = environment(is_root);
        all.extend(self.has_home().then_some(("HOME", HOME)));
        let runtime = settings.runtime.as_ref().map(|runtime| &runtime.env_vars);
        for set in runtime.into_iter().chain([&settings.env]) {
            all.extend(set.iter().map(|(name, value)| (&**name, &**value)));
        }
        let all = all.into_iter();
        all.map(|(name, value)| json!({"name": name, "value": literal(value)}))
            .collect()
    }

    /// Returns the containers that run first: one that brings the agent, and one that
    /// copies the files that a runtime's image has in the working directory.
    fn init_containers(&self, volumes: &[Mounted]) -> Vec<Value> {
        let mut all = Vec::new();
        if let Some(image) = self.agent_image {
            let mount = json!({"name": "agent", "mountPath": AGENT_DIRECTORY});
            let mut container = self.container("agent", image, vec![mount]);
            container["args"] = json!(["--install", agent_path()]);
            all.push(container);
        }
        let work = self.working_dir.as_str();
        let place = volumes.iter().find(|volume| volume.target == work);
        if let (true, Some(place)) = (self.has_files_in_image(), place) {
            let mount = json!({"name": place.name, "mountPath": SEED});
            let mut container = self.container("files", self.image, vec![mount]);
            container["command"] = json!(["sh", "-c", literal(COPY), "sh", literal(work), SEED]);
            all.push(container);
        }
        all
    }

    /// Whether the image of the runtime has packages in its working directory.
    fn has_files_in_image(&self) -> bool {
        let runtime = self.settings.runtime.as_ref();
        runtime.is_some_and(|runtime| {
            let has_packages = !runtime.packages.npm.is_empty();
            has_packages && runtime.work_dir.trim_end_matches('/') == self.working_dir.as_str()
        })
    }

    /// Whether the user gets a home. That of the image's own user is in the image.
    fn has_home(&self) -> bool {
        self.settings.user().is_some()
    }

    /// Returns the volumes: the given ones, and those that make the working directory, the
    /// home and `/tmp` writable.
    fn volumes(&self) -> Vec<Mounted> {
        let given = self.settings.volumes.iter().enumerate();
        let mut all: Vec<_> = given
            .map(|(number, volume)| Mounted::given(number, volume))
            .collect();
        let read_only = !self.settings.relaxed(Relaxation::WritableRoot);
        for (name, target, is_needed) in [
            ("work", self.working_dir.as_str(), true),
            ("home", HOME, self.has_home()),
            ("tmp", "/tmp", read_only),
        ] {
            if is_needed && !all.iter().any(|one| one.is_above(target)) {
                all.push(Mounted::empty(name, target));
            }
        }
        let agent = Mounted {
            // Commands cannot change an agent that was brought.
            read_only: self.agent_image.is_some(),
            ..Mounted::empty("agent", AGENT_DIRECTORY)
        };
        all.push(agent);
        all
    }
}

/// A volume of the pod and its place in the sandbox.
#[derive(Debug)]
struct Mounted {
    name: String,
    /// The source of the volume, as in the manifest of a pod.
    source: Map<String, Value>,
    target: String,
    read_only: bool,
}

impl Mounted {
    fn given(number: usize, volume: &Volume) -> Self {
        let (kind, source) = match &volume.source {
            Source::EmptyDir { size, in_memory } => {
                let mut source = Map::new();
                if let Some(size) = size {
                    source.insert("sizeLimit".to_owned(), size.to_string().into());
                }
                if *in_memory {
                    source.insert("medium".to_owned(), "Memory".into());
                }
                ("emptyDir", source.into())
            }
            // The mount says whether it can be written to, so that one claim can be
            // mounted in both ways.
            Source::Claim(name) => ("persistentVolumeClaim", json!({"claimName": name})),
        };
        let target = VPath::parse(&volume.target);
        Self {
            name: format!("volume-{number}"),
            source: Map::from_iter([(kind.to_owned(), source)]),
            target: target.map_or_else(|_| volume.target.clone(), |target| target.to_string()),
            read_only: volume.read_only,
        }
    }

    fn empty(name: &str, target: &str) -> Self {
        Self {
            name: name.to_owned(),
            source: Map::from_iter([("emptyDir".to_owned(), json!({}))]),
            target: target.to_owned(),
            read_only: false,
        }
    }

    fn volume(&self) -> Value {
        let mut volume = self.source.clone();
        volume.insert("name".to_owned(), self.name.clone().into());
        volume.into()
    }

    fn mount(&self) -> Value {
        let mut mount = json!({"name": self.name, "mountPath": self.target});
        if self.read_only {
            mount["readOnly"] = true.into();
        }
        mount
    }

    /// Whether it is mounted at or above a path.
    fn is_above(&self, path: &str) -> bool {
        let (target, path) = (VPath::parse(&self.target), VPath::parse(path));
        target.is_ok_and(|target| path.is_ok_and(|path| path.starts_with(&target)))
    }
}

/// Returns the path of an agent that was brought by an init container.
pub(crate) fn agent_path() -> String {
    format!("{AGENT_DIRECTORY}/{}", agent::PROGRAM)
}

/// Returns CPUs as Kubernetes writes them. It has no smaller unit than a thousandth.
fn quantity(cpus: f64) -> String {
    format!("{}m", (cpus * 1000.0).ceil())
}

/// Returns a text in which Kubernetes replaces nothing: it would expand `$(NAME)`.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests;
