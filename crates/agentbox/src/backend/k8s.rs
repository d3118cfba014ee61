//! `k8s[:IMAGE]`: a pod of a cluster, created on demand and deleted when the program ends.

mod pod;
pub(crate) mod settings;

use std::path::Path;
use std::sync::Arc;

use backend_core::ops::StopMode;
use backend_k8s::Cluster;
use sandbox_runtime::Runtime;
use sessions::{K8sEngine, K8sEngineBuilder};

use self::settings::K8sSettings;
use super::kind::Kind;
use super::open_backend::OpenBackend;
use super::runtimes::of_docker as runtimes;
use super::spec::BackendSpec;
use super::target::Target;
use crate::exit::{Failure, usage};

/// The space of the sessions of all servers in a namespace.
const SPACE: &str = "agentbox";

impl K8sSettings {
    fn target<'a>(&'a self, argument: Option<&'a str>) -> Result<Target<'a>, Failure> {
        let (image, runtime) = (self.image.as_deref(), self.runtime.as_deref());
        Target::choose(Kind::K8s, argument, image, runtime)
    }

    /// Returns the runtime of sessions.
    fn session_runtime(&self, spec: &BackendSpec) -> Result<Runtime, Failure> {
        let runtime = match self.target(spec.argument.as_deref())? {
            Target::Runtime(name) => runtimes(spec)?.get(name)?,
            Target::Image(image) => Runtime::from_image("image", image),
            Target::Attach(_) => {
                return Err(Failure::usage(
                    "k8s:attach=POD is one pod for all, and each session has its own; write k8s:IMAGE \
                     or k8s:runtime=NAME",
                ));
            }
        };
        let other = [
            ("idle_timeout", self.idle_timeout.is_some()),
            ("keep", self.keep),
            ("name", self.name.is_some()),
        ];
        if let Some((key, _)) = other.into_iter().find(|(_, is_set)| *is_set) {
            return Err(usage!(
                "{key} in [k8s] is not for pods of sessions, which have names and times of their own; \
                 remove it"
            ));
        }
        Ok(match &self.work_dir {
            Some(directory) => runtime.with_work_dir(directory),
            None => runtime,
        })
    }

    /// Returns the options of the sessions in a cluster.
    pub(crate) fn engine_builder(&self, cluster: Cluster) -> K8sEngineBuilder {
        let mut builder = K8sEngine::builder(cluster).space(SPACE);
        apply! { builder,
            volumes: self.session_volumes.map(|size| size.0),
            storage_class: &self.storage_class,
        }
        builder
    }
}

/// Refuses a directory of this machine for the files of sessions.
fn check_root(root: Option<&Path>) -> Result<(), Failure> {
    match root {
        None => Ok(()),
        Some(_) => Err(Failure::usage(
            "pods do not reach directories of this machine; leave out --workspaces, and set \
             session_volumes in [k8s] to keep files",
        )),
    }
}

pub(super) fn check(spec: &BackendSpec) -> Result<(), Failure> {
    let k8s: K8sSettings = spec.settings()?;
    if let Target::Runtime(name) = k8s.target(spec.argument.as_deref())? {
        runtimes(spec)?.get(name)?;
    }
    pod::without_agents(&k8s).map(drop)
}

pub(super) async fn open(spec: &BackendSpec) -> Result<OpenBackend, Failure> {
    let k8s: K8sSettings = spec.settings()?;
    let builder = match k8s.target(spec.argument.as_deref())? {
        // This program did not create it, and leaves it running.
        Target::Attach(pod) => {
            let attach = pod::attach(&k8s, pod)?.cluster(k8s.cluster().await?);
            return Ok(OpenBackend::new(Arc::new(attach.open().await?), None));
        }
        Target::Image(image) => pod::builder(&k8s)?.image(image),
        Target::Runtime(name) => pod::builder(&k8s)?.runtime(runtimes(spec)?.get(name)?),
    };
    let stop = if k8s.keep || k8s.name.is_some() {
        StopMode::Keep
    } else {
        StopMode::Purge
    };
    // Last, so that mistakes in the settings are reported even without a cluster.
    let builder = builder.cluster(k8s.cluster().await?);
    Ok(OpenBackend::new(Arc::new(builder.build()?), Some(stop)))
}

/// Checks that a server can have sessions, without asking the cluster.
pub(super) fn check_sessions(spec: &BackendSpec, root: Option<&Path>) -> Result<(), Failure> {
    check_root(root)?;
    let k8s: K8sSettings = spec.settings()?;
    k8s.session_runtime(spec)?;
    pod::without_agents(&k8s).map(drop)
}

/// Returns the engine of the sessions that exist, which creates none.
pub(super) async fn session_engine(
    spec: &BackendSpec,
    root: Option<&Path>,
) -> Result<K8sEngine, Failure> {
    check_root(root)?;
    let k8s: K8sSettings = spec.settings()?;
    Ok(k8s.engine_builder(k8s.cluster().await?).build()?)
}

/// Returns the engine of a server's sessions.
pub(super) async fn serving_engine(
    spec: &BackendSpec,
    root: Option<&Path>,
) -> Result<K8sEngine, Failure> {
    let k8s: K8sSettings = spec.settings()?;
    let runtime = k8s.session_runtime(spec)?;
    let template = pod::builder(&k8s)?;
    check_root(root)?;
    let builder = k8s.engine_builder(k8s.cluster().await?);
    Ok(builder.template(template).runtime(runtime).build()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::kind::Tables;

    fn runtime(table: &str, spec: &str) -> Result<Runtime, Failure> {
        let tables = Tables::from([(Kind::K8s, toml::from_str(table).unwrap())]);
        let spec = BackendSpec::new(Some(spec), &tables)?;
        spec.settings::<K8sSettings>()?.session_runtime(&spec)
    }

    #[test]
    fn each_session_has_a_pod_of_its_own() {
        let image = runtime("work_dir = '/srv/x'", "k8s:python:3.12").unwrap();
        assert_eq!(image.image.as_deref(), Some("python:3.12"));
        assert_eq!(image.work_dir, "/srv/x");
        image.validate().unwrap();
        let named = runtime("", "k8s:runtime=python-minimal").unwrap();
        assert_eq!(named.name, "python-minimal");
        assert!(runtime("", "k8s:attach=box").unwrap_err().is_usage());
        for table in ["idle_timeout = 1", "keep = true", "name = 'a'"] {
            assert!(runtime(table, "k8s:a").unwrap_err().is_usage(), "{table}");
        }
    }

    #[test]
    fn files_of_sessions_are_not_on_this_machine() {
        let error = check_root(Some(Path::new("files"))).unwrap_err();
        assert!(error.to_string().contains("session_volumes"), "{error}");
    }

    #[test]
    fn runtimes_are_those_of_docker() {
        let docker = "base_images = { 'python:3.12-slim' = 'mirror.example/python:3.12' }";
        let tables = Tables::from([(Kind::Docker, toml::from_str(docker).unwrap())]);
        let spec = BackendSpec::new(Some("k8s"), &tables).unwrap();
        let python = runtimes(&spec).unwrap().get("python-minimal").unwrap();
        assert_eq!(python.image.as_deref(), Some("mirror.example/python:3.12"));
    }
}
