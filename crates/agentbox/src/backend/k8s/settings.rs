//! The table `[k8s]`, and the cluster that it names.

use std::collections::BTreeMap;
use std::path::PathBuf;

use backend_k8s::{Cluster, Delivery, Mode, Network, PullPolicy, Relaxation, Volume};
use serde::Deserialize;
use serde_json::Value;

use crate::backend::kind::{Kind, Tables};
use crate::backend::size::Size;
use crate::exit::{Failure, usage};

/// The table `[k8s]`. Settings that are missing get the library's defaults.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct K8sSettings {
    /// Seconds after which the cluster ends the pod.
    pub(super) active_deadline: Option<u64>,
    /// The rules that choose a node, as in the specification of a pod.
    pub(super) affinity: Option<Value>,
    /// The agent, if the automatic choice is not wanted.
    pub(super) agent: Option<PathBuf>,
    /// An image with the agent, for images without a shell.
    pub(super) agent_image: Option<String>,
    pub(super) annotations: BTreeMap<String, String>,
    /// Whether the pod has the token of its service account.
    pub(super) api_access: bool,
    /// Capabilities that are not dropped.
    pub(super) capabilities: Vec<String>,
    /// The context in the kubeconfig, if it is not the current one.
    context: Option<String>,
    pub(super) cpus: Option<f64>,
    pub(super) delivery: Delivery,
    /// `PATH` or `PATH:SIZE`.
    pub(super) empty_dirs: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    /// Seconds that processes have to end when the pod is deleted.
    pub(super) grace: Option<u64>,
    /// Seconds without a call after which commands end.
    pub(super) idle_timeout: Option<u64>,
    pub(super) image: Option<String>,
    /// Whether the pod is kept when the program ends.
    pub(super) keep: bool,
    /// The file with the cluster; `KUBECONFIG` by default.
    kubeconfig: Option<PathBuf>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) memory: Option<Size>,
    pub(super) mode: Mode,
    pub(super) name: Option<String>,
    /// The namespace, if it is not the one of the context.
    namespace: Option<String>,
    pub(crate) network: Network,
    pub(super) node_selector: BTreeMap<String, String>,
    /// A pod template with anything else, which is merged into the pod.
    pub(super) overlay: Option<Value>,
    /// `NAME:UID` of the pod that this program runs in, with which the new one ends.
    pub(super) owner_pod: Option<String>,
    pub(super) pull_policy: PullPolicy,
    /// The secrets with the logins of registries.
    pub(super) pull_secrets: Vec<String>,
    /// The parts of the hardening that are switched off.
    pub(super) relax: Vec<Relaxation>,
    pub(super) request_cpus: Option<f64>,
    pub(super) request_memory: Option<Size>,
    pub(super) runtime: Option<String>,
    pub(super) runtime_class: Option<String>,
    /// The images of runtimes that have to be built, by their names.
    pub(super) runtime_images: BTreeMap<String, String>,
    pub(super) service_account: Option<String>,
    /// The size of the volume that keeps the files of each session.
    pub(super) session_volumes: Option<Size>,
    /// Seconds that a pod has to become ready.
    pub(super) start_timeout: Option<u64>,
    /// The storage class of these volumes.
    pub(super) storage_class: Option<String>,
    /// `PATH:SIZE`.
    pub(super) tmpfs: Vec<String>,
    pub(super) tolerations: Vec<Value>,
    pub(super) user: Option<String>,
    /// `CLAIM:TARGET` or `CLAIM:TARGET:ro`.
    pub(super) volumes: Vec<String>,
    pub(super) work_dir: Option<String>,
}

impl K8sSettings {
    pub(crate) fn configured(tables: &Tables) -> Result<Self, Failure> {
        Kind::K8s.settings(tables)
    }

    /// Returns the configured cluster, or the one that `kubectl` would use.
    pub(crate) async fn cluster(&self) -> Result<Cluster, Failure> {
        let cluster = match (&self.kubeconfig, self.context.as_deref()) {
            (Some(file), context) => Cluster::from_kubeconfig(file, context).await?,
            (None, None) => Cluster::from_env().await?,
            (None, Some(_)) => {
                return Err(Failure::usage(
                    "[k8s] has a context and no kubeconfig that it is in; set kubeconfig too",
                ));
            }
        };
        Ok(match &self.namespace {
            Some(namespace) => cluster.with_namespace(namespace),
            None => cluster,
        })
    }
}

/// Parses `CLAIM:TARGET[:ro|rw]`.
pub(super) fn claim(text: &str) -> Result<Volume, Failure> {
    let parts: Vec<&str> = text.split(':').collect();
    let (claim, target, read_only) = match *parts {
        [claim, target] | [claim, target, "rw"] => (claim, target, false),
        [claim, target, "ro"] => (claim, target, true),
        _ => ("", "", false),
    };
    if claim.is_empty() || target.is_empty() {
        return Err(usage!(
            "{text:?} is not a valid volume; write CLAIM:TARGET or CLAIM:TARGET:ro in volumes of [k8s]"
        ));
    }
    Ok(Volume::claim(claim, target).read_only(read_only))
}

/// Parses `PATH` or `PATH:SIZE`, a directory on the node.
pub(super) fn empty_dir(text: &str) -> Result<Volume, Failure> {
    let (path, size) = sized(text).ok_or_else(|| {
        usage!("{text:?} is not a directory; write PATH or PATH:SIZE in empty_dirs of [k8s]")
    })?;
    Ok(Volume::empty_dir(path, size))
}

/// Parses `PATH:SIZE`, a directory in memory.
pub(super) fn tmpfs(text: &str) -> Result<Volume, Failure> {
    let Some((path, Some(size))) = sized(text) else {
        return Err(usage!(
            "{text:?} is not a directory with a size; write PATH:SIZE in tmpfs of [k8s]"
        ));
    };
    Ok(Volume::memory(path, size))
}

fn sized(text: &str) -> Option<(&str, Option<u64>)> {
    match text.split_once(':') {
        None => Some((text, None)),
        Some((path, size)) => Some((path, Some(Size::parse(size)?.0))),
    }
}

/// Parses `UID` or `UID:GID`; the group has the number of the user unless it is given.
pub(super) fn user(text: &str) -> Option<(u32, u32)> {
    let (uid, gid) = text.split_once(':').unwrap_or((text, text));
    Some((uid.parse().ok()?, gid.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read_and_no_other() {
        let table = r#"
            active_deadline = 3600
            affinity = { podAntiAffinity = {} }
            agent = "/usr/lib/sandbox-agent"
            agent_image = "registry.example/sandbox-agent:1"
            annotations = { team = "x" }
            api_access = true
            capabilities = ["NET_BIND_SERVICE"]
            context = "staging"
            cpus = 1.5
            delivery = "exec"
            empty_dirs = ["/cache:1g"]
            env = { A = "1" }
            grace = 5
            idle_timeout = 600
            image = "python:3.12"
            keep = true
            kubeconfig = "/etc/kubeconfig"
            labels = { team = "x" }
            memory = "512Mi"
            mode = "portable"
            name = "box"
            namespace = "agents"
            network = "open"
            node_selector = { "kubernetes.io/arch" = "amd64" }
            overlay = { spec = { priorityClassName = "low" } }
            owner_pod = "server-0:0b1c"
            pull_policy = "always"
            pull_secrets = ["registry"]
            relax = ["writable-root"]
            request_cpus = 0.5
            request_memory = "256Mi"
            runtime = "python-minimal"
            runtime_class = "gvisor"
            runtime_images = { python-web = "registry.example/python-web:1" }
            service_account = "agents"
            session_volumes = "10g"
            start_timeout = 60
            storage_class = "fast"
            tmpfs = ["/dev/shm:64m"]
            tolerations = [{ key = "agents", operator = "Exists" }]
            user = "1000:1000"
            volumes = ["data:/data:ro"]
            work_dir = "/workspace"
        "#;
        let settings: K8sSettings = toml::from_str(table).unwrap();
        assert_eq!(settings.memory, Some(Size(512 << 20)));
        assert_eq!(settings.network, Network::Open);
        let table: toml::Table = toml::from_str(table).unwrap();
        assert!(table.keys().eq(Kind::K8s.keys()), "{table}");
        assert!(toml::from_str::<K8sSettings>("privileged = true").is_err());
        let init = "delivery = { init = { image = 'registry.example/sandbox-agent:1' } }";
        assert!(toml::from_str::<K8sSettings>(init).is_ok());
    }

    #[test]
    fn volumes_are_claims_and_two_places() {
        let data = Volume::claim("data", "/b");
        assert_eq!(claim("data:/b").unwrap(), data);
        assert_eq!(claim("data:/b:ro").unwrap(), data.read_only(true));
        for bad in ["/b", ":/b", "data:", "data:/b:rwx", "data:/b:ro:z"] {
            assert!(claim(bad).unwrap_err().is_usage(), "{bad}");
        }
    }

    #[test]
    fn users_and_directories_have_two_parts() {
        assert_eq!(user("7"), Some((7, 7)));
        assert_eq!(user("7:8"), Some((7, 8)));
        for bad in ["", "root", "7:", "7:8:9", "-1"] {
            assert_eq!(user(bad), None, "{bad}");
        }
        let cache = |size| Volume::empty_dir("/cache", size);
        assert_eq!(empty_dir("/cache").unwrap(), cache(None));
        assert_eq!(empty_dir("/cache:1g").unwrap(), cache(Some(1 << 30)));
        assert_eq!(tmpfs("/a:1k").unwrap(), Volume::memory("/a", 1024));
        assert!(empty_dir("/cache:lots").unwrap_err().is_usage());
        assert!(tmpfs("/a").unwrap_err().is_usage());
    }
}
